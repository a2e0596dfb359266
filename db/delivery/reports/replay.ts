/**
 * Reports for an operator: to look at, and parked ones to be tried again or dropped.
 * Promises: a replay of what was applied before changes nothing; only parked reports are dropped. Must not need a
 * reader.
 */
import { Refusal } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/boss.ts'
import {
  deleteParkedReport,
  deleteParkedReports,
  type ParkedFilter,
  type ReportRow,
  reopenReport,
  reopenReports,
  reportBodies,
  reportById,
} from './reports.sql.ts'
import { PATIENCE } from './store.ts'

const refused = (id: string) => new Refusal('not_found', `there is no report ${id}`)

/** A report with its bytes, as text where they are text. @throws Refusal not_found. */
export async function showReport(tx: Tx, id: string): Promise<ReportRow & { body: string }> {
  const row = await reportById(tx, id)
  const body = (await reportBodies(tx, [id])).get(id)
  if (!row || !body) throw refused(id)
  return { ...row, body: body.toString('utf8') }
}

/** Makes a report pending again, with a job that tries for an hour. @throws Refusal not_found. */
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

/** Removes a parked report that someone has looked at. @returns it. @throws Refusal not_found, bad_request */
export async function dropReport(tx: Tx, id: string): Promise<ReportRow> {
  const dropped = await deleteParkedReport(tx, id)
  if (dropped) return dropped
  const row = await reportById(tx, id)
  if (!row) throw refused(id)
  throw new Refusal('bad_request', `report ${id} is ${row.state}: only parked ones are dropped`)
}

/** As `replayReport`, for all parked ones that fit. */
export async function replayParked(
  { tx, now }: { tx: Tx; now: Date },
  queue: Pick<Producer, 'reenqueue'>,
  filter: ParkedFilter,
): Promise<{ replayed: number }> {
  const ids = await reopenReports(tx, filter, new Date(now.getTime() + PATIENCE))
  await queue.reenqueue(
    tx,
    'ingest-report',
    ids.map((report_id) => ({ report_id })),
  )
  return { replayed: ids.length }
}

/** As `dropReport`, for all parked ones that fit; those that are not parked stay. */
export async function dropParked(tx: Tx, filter: ParkedFilter): Promise<{ dropped: number }> {
  return { dropped: await deleteParkedReports(tx, filter) }
}
