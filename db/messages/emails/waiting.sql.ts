/** Selects the IDs of emails that wait to be sent, to bring them forward. */
import { type FragmentSqlToken, sql } from 'slonik'

/** Selects a team's items of batches. */
export const waitingBatchItems = (teamId: string): FragmentSqlToken => sql.fragment`
  select s.id from email_states s join accepted_emails a on a.team_id = s.team_id and a.id = s.id
  where s.team_id = ${teamId} and s.unfinished and a.batch`

/** Selects broadcast emails from a domain with this name. */
export const waitingOfDomain = (name: string): FragmentSqlToken => sql.fragment`
  select s.id from domains d
    join email_states s on s.team_id = d.team_id and s.unfinished and s.broadcast_id is not null
    join accepted_emails e on e.team_id = s.team_id and e.id = s.id and e.domain_id = d.id
  where d.name = ${name}`
