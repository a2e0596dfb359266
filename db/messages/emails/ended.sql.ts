/** Returns the ends of unsent emails. Their status doesn't show them. */
import { sql } from 'slonik'
import { string } from 'yup'
import { EMAIL } from '../../channels/email.sql.ts'
import { gaveUp } from '../../delivery/requeue.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'

/**
 * An email is skipped if all of its recipients are suppressed. It has expired if it wasn't sent in time, and failed
 * after its last attempt.
 */
const ENDS = ['skipped', 'expired', 'failed'] as const
export type EmailEnd = (typeof ENDS)[number]

const endedRow = idRow.concat(row({ ended: string().oneOf(ENDS) }))

type Candidate = { id: string; status: string; created_at: string }

/** Emails expire after a minute or later, and few fail sooner. */
const NEW_MS = 60_000

const mayHaveEnded = ({ status, created_at }: Candidate, now: Date | null): boolean =>
  status === 'bounced' ||
  (status === 'queued' && (now === null || now.getTime() - Date.parse(created_at) > NEW_MS))

/**
 * Returns the ends of those among a team's emails that were never sent, by their IDs.
 * @param now leaves out emails of the last minute. Null includes them.
 */
export async function findEnds(
  tx: Tx,
  teamId: string,
  emails: readonly Candidate[],
  now: Date | null,
): Promise<ReadonlyMap<string, EmailEnd>> {
  const ids = emails.filter((email) => mayHaveEnded(email, now)).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const rows = await tx.any(sql.type(endedRow)`
    select id, case
        when status = 'bounced' then 'skipped'
        when expired_at is not null then 'expired'
        else 'failed' end as ended
    from email_states m
    where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and (
      status = 'bounced' and suppression = 'applied'
      or status = 'queued' and provider_message_id is null and (expired_at is not null or ${gaveUp(EMAIL)}))`)
  return new Map(rows.map(({ id, ended }) => [id, ended]))
}
