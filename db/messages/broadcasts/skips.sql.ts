/** Rows of broadcast_skips: contacts that a broadcast picked and that get nothing from it. */
import { sql } from 'slonik'
import { type InferType, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

const SKIP_REASONS = [
  'variables',
  'unsubscribed',
  'suppressed',
  'left_topic',
  'deleted',
  'cancelled',
] as const

const skipRow = row({
  team_id: string(),
  broadcast_id: string(),
  contact_id: string(),
  email: string(),
  reason: string().oneOf(SKIP_REASONS),
  detail: string(),
})
/** A contact that gets nothing from a broadcast, and why. */
export type Skip = InferType<typeof skipRow>

const SKIP = {
  ...{ team_id: 'uuid', broadcast_id: 'uuid', contact_id: 'uuid' },
  ...{ email: 'text', reason: 'text', detail: 'text' },
}

/** Notes skips; a contact that is noted already keeps its first. */
export async function insertSkips(tx: Tx, skips: readonly Skip[], at: Date): Promise<void> {
  if (skips.length === 0) return
  await tx.query(sql.prepared('insert_skips', object())`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
    select s.*, ${sql.timestamp(at)}
    from ${rowsOf('s', SKIP, skips)}
    on conflict do nothing`)
}
