/** Returns which audited starts were for a later time. */
import { sql } from 'slonik'
import { boolean, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

const startRow = row({ id: string(), scheduled: boolean() })
const START = { id: 'uuid', team_id: 'uuid', broadcast_id: 'uuid' }

/**
 * Returns whether these starts, by the ID of their entry, were for a later time. A broadcast keeps its time, and only
 * a scheduled one can be unscheduled. Leaves out deleted broadcasts.
 */
export async function scheduledStarts(
  tx: Tx,
  starts: readonly { id: string; team_id: string; broadcast_id: string }[],
): Promise<ReadonlyMap<string, boolean>> {
  if (starts.length === 0) return new Map()
  const rows = await tx.any(sql.type(startRow)`
    select s.id, b.send_at is not null or exists (
      select from audit_entries u
      where u.team_id = s.team_id and u.detail = s.broadcast_id::text and split_part(u.action, '.', 1) = 'broadcast'
        and u.action = 'broadcast.unschedule' and u.id > s.id) as scheduled
    from ${rowsOf('s', START, starts)} join broadcasts b on b.team_id = s.team_id and b.id = s.broadcast_id`)
  return new Map(rows.map(({ id, scheduled }) => [id, scheduled]))
}
