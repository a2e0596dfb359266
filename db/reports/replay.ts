/**
 * Reports for an operator's eyes, and a second try for one that was parked.
 * Promises: a replay of what was applied before changes nothing. Must not need a reader.
 */
import { Refusal } from '../errors.ts'
import type { Tx } from '../pool.ts'
import type { Producer } from '../queue.ts'
import { PATIENCE } from './store.ts'
import { type ReportRow, reopenReport, reportBodies, reportById } from './table.ts'

const refused = (id: string) => new Refusal('not_found', `there is no report ${id}`)

/** A report with its bytes, as text where they are text. @throws Refusal not_found. */
export async function showReport(tx: Tx, id: string): Promise<ReportRow & { body: string }> {
  const row = await reportById(tx, id)
  const body = (await reportBodies(tx, [id])).get(id)
  if (!row || !body) throw refused(id)
  return { ...row, body: body.toString('utf8') }
}

/** Makes a report pending again, with a job and an hour's patience. @throws Refusal not_found. */
export async function replayReport(
  { tx, now }: { tx: Tx; now: Date },
  queue: Pick<Producer, 'reenqueue'>,
  id: string,
): Promise<ReportRow> {
  const row = await reopenReport(tx, id, new Date(now.getTime() + PATIENCE))
  if (!row) throw refused(id)
  await queue.reenqueue(tx, 'ingest-report', [{ report_id: id }])
  return row
}
