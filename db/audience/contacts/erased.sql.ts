/** Keyed hashes of addresses without a contact that must not get marketing at all, or none about some topics. */
import { sql } from 'slonik'
import { array, type InferType, mixed, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { CONTACT_STATUSES } from './contacts.sql.ts'
import { CAUSES } from './effect.ts'

const erasedRow = row({
  hash: mixed<Buffer>(),
  status: string().oneOf(CONTACT_STATUSES),
  suppression: string().oneOf(['bounced', 'complained']).nullable(),
  /** Why the address is suppressed. Null in rows of version 0.1.0. */
  cause: string().oneOf(CAUSES).nullable(),
  left_topic_ids: array(string()),
})
export type ErasedRow = InferType<typeof erasedRow>

export const hasErased = async (tx: Tx, teamId: string): Promise<boolean> =>
  tx.exists(sql.prepared('has_erased', object())`
    select 1 from erased_contacts where team_id = ${teamId}`)

/** Returns the team's rows for these hashes, the latest last. */
export const erasedByHashes = (tx: Tx, teamId: string, hashes: readonly Buffer[]) =>
  tx.any(sql.type(erasedRow)`
    select hash, status, suppression, cause, left_topic_ids from erased_contacts
    where team_id = ${teamId} and hash = any(${sql.array(hashes, 'bytea')}) order by erased_at`)

const statusRow = erasedRow.pick(['status'])

/**
 * Returns the status to store for a contact: `unsubscribed` if it had unsubscribed before it was suppressed. The
 * suppression is stored separately.
 */
export const statusToKeep = (tx: Tx, teamId: string, id: string) =>
  tx.oneFirst(sql.type(statusRow)`
    select case status_before when 'unsubscribed' then status_before else status end as status
    from contacts where team_id = ${teamId} and id = ${id}`)

/** Stores a hash. Replaces an earlier row of the same address. */
export const keepErased = (tx: Tx, teamId: string, erased: ErasedRow, now: Date) =>
  tx.query(sql.type(object())`
    insert into erased_contacts (team_id, hash, status, suppression, cause, left_topic_ids, erased_at)
    values (${teamId}, ${sql.binary(erased.hash)}, ${erased.status}, ${erased.suppression}, ${erased.cause},
      ${sql.array(erased.left_topic_ids, 'uuid')}, ${sql.timestamp(now)})
    on conflict (team_id, hash) do update set status = excluded.status, suppression = excluded.suppression,
      cause = excluded.cause, left_topic_ids = excluded.left_topic_ids, erased_at = excluded.erased_at`)

export const deleteErased = (tx: Tx, teamId: string, hashes: readonly Buffer[]) =>
  tx.query(sql.type(object())`
    delete from erased_contacts where team_id = ${teamId} and hash = any(${sql.array(hashes, 'bytea')})`)

/** Records that a recipient without a contact left topics, or everything if `left_topic_ids` is null. */
export const storeOptOut = (
  tx: Tx,
  teamId: string,
  { hash, left_topic_ids: left }: { hash: Buffer; left_topic_ids: readonly string[] | null },
  now: Date,
) =>
  tx.query(sql.type(object())`
    insert into erased_contacts as e (team_id, hash, status, left_topic_ids, erased_at)
    values (${teamId}, ${sql.binary(hash)}, ${left === null ? 'unsubscribed' : 'subscribed'},
      ${sql.array(left ?? [], 'uuid')}, ${sql.timestamp(now)})
    on conflict (team_id, hash) do update set
      status = case when e.status = 'subscribed' or excluded.status = 'unsubscribed' then excluded.status
        else e.status end,
      left_topic_ids = array(select unnest(e.left_topic_ids) union select unnest(excluded.left_topic_ids)),
      erased_at = excluded.erased_at`)
