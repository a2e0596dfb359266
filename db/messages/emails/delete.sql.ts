/**
 * Deletes emails: their states first, in ID order, then the accepted emails, then their events. Transactions that
 * record events lock the states, so that no event is left behind. Triggers update the stats.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

const deletedRow = row({
  id: string(),
  created_at: string(),
  status: string(),
  broadcast_id: string().nullable(),
  contact_id: string().nullable(),
  /** Its first recipient. */
  email: string(),
  person: string().nullable(),
})

/** Deletes the emails whose states a query has locked. @param held the query for their IDs. */
export async function deleteEmails(tx: Tx, teamId: string, held: FragmentSqlToken) {
  const deleted = await tx.any(sql.type(deletedRow)`
    with held as materialized (${held}), states as (
      delete from email_states s where s.team_id = ${teamId} and s.id in (select id from held)
      returning s.id, s.status
    )
    delete from accepted_emails e using states s where e.team_id = ${teamId} and e.id = s.id
    returning e.id, e.created_at, s.status, e.broadcast_id, e.contact_id, e.to_emails[1] as email, e.person`)
  const ids = deleted.map(({ id }) => id)
  await tx.query(sql.unsafe`
    delete from email_events where team_id = ${teamId} and email_id = any(${sql.array(ids, 'uuid')})`)
  return deleted
}

const SKIP = { broadcast_id: 'uuid', contact_id: 'uuid', email: 'text', person: 'text' }

/**
 * Deletes emails by ID. Contacts with an email of a broadcast become skips, so that a resend doesn't reach them
 * again.
 * @returns the deleted emails.
 */
export async function deleteEmailsById(tx: Tx, teamId: string, ids: readonly string[]) {
  const these = sql.array(ids, 'uuid')
  const deleted = await deleteEmails(
    tx,
    teamId,
    sql.fragment`
      select id from email_states where team_id = ${teamId} and id = any(${these}) order by id for update`,
  )
  const reached = deleted.filter(
    ({ broadcast_id, contact_id }) => broadcast_id !== null && contact_id !== null,
  )
  if (reached.length === 0) return deleted
  await tx.query(sql.type(object())`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at, person)
    select ${teamId}, broadcast_id, contact_id, email, 'deleted', 'its email was deleted', service_time(), person
    from ${rowsOf('reached', SKIP, reached)}
    on conflict do nothing`)
  return deleted
}
