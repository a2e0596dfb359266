/** Finds an address in a team's rows. erase.sql.ts deletes them, export.sql.ts exports them. */
import { sql } from 'slonik'
import { array, boolean, type InferType, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'

/** A range of rows in ID order. */
export type IdRange = { after: string; limit: number }

export const foundRow = row({
  id: string(),
  to_emails: array(string()),
  /** True if some of them are in cc or bcc. */
  has_copies: boolean(),
  /** True if it waits to be delivered, now or at its scheduled time. */
  waits: boolean(),
})
export type FoundEmail = InferType<typeof foundRow>

const hasCopies = sql.fragment`coalesce(first_cc, first_bcc) is not null as has_copies`
const waits = sql.fragment`unfinished or due_at is not null as waits`

export const foundColumns = sql.fragment`id, to_emails, ${hasCopies}, ${waits}`

/**
 * Returns the team's emails to one of these identities, in ID order, up to a limit. Uses the recipients' index only:
 * with the team, the planner scans everything that a large team has sent.
 */
export const emailsTo = (tx: Tx, teamId: string, identities: readonly string[], { after, limit }: IdRange) =>
  tx.any(sql.type(foundRow)`
    select e.id, e.to_emails, e.has_copies, s.waits from (
      select id, to_emails, has_copies from (
        select team_id, id, to_emails, ${hasCopies} from accepted_emails
        where recipient_identities(to_emails) && ${sql.array(identities, 'text')} offset 0) e
      where team_id = ${teamId} and id > ${after} order by id limit ${limit}) e
    cross join lateral (
      select ${waits} from email_states
      where team_id = ${teamId} and id = e.id offset 0) s
    order by e.id`)

/** Returns the IDs of broadcast tests that show the contact of this identity, up to a limit. */
export const testsShowing = (tx: Tx, teamId: string, identity: string, { after, limit }: IdRange) =>
  tx.anyFirst(sql.type(idRow)`
    select id from accepted_emails
    where team_id = ${teamId} and broadcast_id is null and person = ${identity} and id > ${after}
    order by id limit ${limit}`)

/** True if an event `v` contains the address that `pattern` matches. */
export const isEventNaming = (pattern: string) =>
  sql.fragment`lower(coalesce(v.recipient, '') || ' ' || v.detail) ~ ${pattern}`

/** True if a webhook message is about one of these emails or contacts. */
export const isAbout = (teamId: string, subjects: readonly string[]) =>
  sql.fragment`team_id = ${teamId} and subject_id = any(${sql.array(subjects, 'uuid')})`

/**
 * True if a webhook message `w` is about a deleted email or contact and contains the address that `pattern` matches.
 */
export const isAboutDeleted = (pattern: string) => {
  const data = sql.fragment`(w.body::json -> 'data')`
  const said = ['email', 'recipient', 'to', 'cc', 'bcc', 'detail'].map(
    (field) => sql.fragment`${data} ->> ${field}`,
  )
  return sql.fragment`
    split_part(w.type, '.', 1) in ('email', 'contact')
    and lower(w.body) ~ ${pattern} and lower(concat_ws(' ', ${sql.join(said, sql.fragment`, `)})) ~ ${pattern}
    and not exists (select from email_states s where s.team_id = w.team_id and s.id = w.subject_id)
    and not exists (select from contacts c where c.team_id = w.team_id and c.id = w.subject_id)`
}

/** True if a skip of a broadcast is about the address. */
export const matchesSkip = (teamId: string, spellings: readonly string[]) =>
  sql.fragment`team_id = ${teamId} and lower(email) = any(${sql.array(spellings, 'text')})`

/** True if a settled report is only about this team, and its content contains the address that `pattern` matches. */
export const isReportNaming = (teamId: string, pattern: string) => sql.fragment`
  state <> 'pending' and team_ids = ${sql.array([teamId], 'uuid')} and lower(encode(body, 'escape')) ~ ${pattern}`
