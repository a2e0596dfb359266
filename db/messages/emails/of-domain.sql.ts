/** Emails of broadcasts by the name of their sending domain. */
import { type FragmentSqlToken, sql } from 'slonik'

/** Selects the IDs of broadcast emails that wait to be sent from a domain with this name. */
export const waitingOfDomain = (name: string): FragmentSqlToken => sql.fragment`
  select s.id from domains d
    join email_states s on s.team_id = d.team_id and s.unfinished and s.broadcast_id is not null
    join accepted_emails e on e.team_id = s.team_id and e.id = s.id and e.domain_id = d.id
  where d.name = ${name}`
