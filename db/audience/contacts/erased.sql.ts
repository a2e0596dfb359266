/** What is left of contacts that were erased and must not be mailed by marketing: keyed hashes, no address. */
import { sql } from 'slonik'
import { type InferType, mixed, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'

const erasedRow = object({
  hash: mixed<Buffer>().defined(),
  status: string().oneOf(['unsubscribed', 'bounced', 'complained']).defined(),
  suppression: string().oneOf(['bounced', 'complained']).defined().nullable(),
})
export type ErasedRow = InferType<typeof erasedRow>

/** Whether the team has erased anybody who must not be mailed. */
export async function hasErased(tx: Tx, teamId: string): Promise<boolean> {
  return tx.exists(sql.prepared('has_erased', object())`
    select 1 from erased_contacts where team_id = ${teamId}`)
}

/** Those of these hashes that the team has kept. */
export async function erasedByHashes(
  tx: Tx,
  teamId: string,
  hashes: readonly Buffer[],
): Promise<readonly ErasedRow[]> {
  return tx.any(sql.type(erasedRow)`
    select hash, status, suppression from erased_contacts
    where team_id = ${teamId} and hash = any(${sql.array([...hashes], 'bytea')})`)
}

/** Keeps a hash; the later state of the same address counts. */
export async function keepErased(tx: Tx, teamId: string, erased: ErasedRow, now: Date): Promise<void> {
  await tx.query(sql.type(object())`
    insert into erased_contacts (team_id, hash, status, suppression, erased_at)
    values (${teamId}, ${sql.binary(erased.hash)}, ${erased.status}, ${erased.suppression}, ${sql.timestamp(now)})
    on conflict (team_id, hash) do update
      set status = excluded.status, suppression = excluded.suppression, erased_at = excluded.erased_at`)
}
