/** Rows of broadcast_skips: contacts of the audience that get no email, with the reason. */
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
export type Skip = InferType<typeof skipRow>

const SKIP = {
  ...{ team_id: 'uuid', broadcast_id: 'uuid', contact_id: 'uuid' },
  ...{ email: 'text', reason: 'text', detail: 'text' },
}

/** Stores skips. A contact keeps its first one. */
export async function insertSkips(tx: Tx, skips: readonly Skip[], at: Date): Promise<void> {
  if (skips.length === 0) return
  await tx.query(sql.prepared('insert_skips', object())`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
    select s.*, ${sql.timestamp(at)}
    from ${rowsOf('s', SKIP, skips)}
    on conflict do nothing`)
}
