/**
 * Reports for an operator: to look at, and parked ones to be tried again or dropped.
 * Promises: a replay of what was applied before changes nothing; only parked reports are dropped; each is in the audit
 * trail. Must not need a reader.
 */

import { type AuditEntry, type By, record } from '../../accounts/audit/record.ts'
import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/producer.ts'
import { TEXTS } from '../texts.ts'
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
import { UNMATCHED_TRIES_MS } from './store.ts'

const refused = (id: string) => new RequestError('not_found', fill(TEXTS.noReport, { id }))

/** A report with its bytes, as text where they are text. @throws RequestError not_found. */
export async function showReport(tx: Tx, id: string): Promise<ReportRow & { body: string }> {
  const row = await reportById(tx, id)
  const body = (await reportBodies(tx, [id])).get(id)
  if (!row || !body) throw refused(id)
  return { ...row, body: body.toString('utf8') }
}

/** As `showReport`, for the dashboard: an operator's look at what a provider said of people is noted. */
export async function readReport(by: By, id: string): Promise<ReportRow & { body: string }> {
  const shown = await showReport(by.tx, id)
  await record(by, { team_id: null, action: 'report.read', subject: shown.id })
  return shown
}

/** What the audit trail says of many: their ids, or the filter. */
function entryOf(action: string, { ids, provider, reason, before }: ParkedFilter): AuditEntry {
  const filters = { provider, reason, before: before?.toISOString() }
  const detail = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}: ${value}`,
  )
  return { team_id: null, action, subject: ids ? ids.join(' ') : 'parked', detail: detail.join(', ') }
}

/** Makes a report pending again, with a job that tries for an hour. @throws RequestError not_found. */
export async function replayReport(
  by: By,
  queue: Pick<Producer, 'reenqueue'>,
  id: string,
): Promise<ReportRow> {
  const { tx, now } = by
  const row = await reopenReport(tx, id, new Date(now.getTime() + UNMATCHED_TRIES_MS))
  if (!row) throw refused(id)
  await queue.reenqueue(tx, 'ingest-report', [{ report_id: id }])
  await record(by, { team_id: null, action: 'report.replay', subject: id })
  return row
}

/** Removes a parked report that someone has looked at. @returns it. @throws RequestError not_found, bad_request */
export async function dropReport(by: By, id: string): Promise<ReportRow> {
  const { tx } = by
  const dropped = await deleteParkedReport(tx, id)
  if (dropped) {
    await record(by, { team_id: null, action: 'report.drop', subject: id })
    return dropped
  }
  const row = await reportById(tx, id)
  if (!row) throw refused(id)
  throw new RequestError('bad_request', fill(TEXTS.notParked, { id, state: row.state }))
}

/** As `replayReport`, for all parked ones that fit. */
export async function replayParked(by: By, queue: Pick<Producer, 'reenqueue'>, filter: ParkedFilter) {
  const { tx, now } = by
  const ids = await reopenReports(tx, filter, new Date(now.getTime() + UNMATCHED_TRIES_MS))
  const payloads = ids.map((report_id) => ({ report_id }))
  await queue.reenqueue(tx, 'ingest-report', payloads)
  await record(by, entryOf('report.replay', filter))
  return { replayed: ids.length }
}

/** As `dropReport`, for all parked ones that fit; those that are not parked stay. */
export async function dropParked(by: By, filter: ParkedFilter): Promise<{ dropped: number }> {
  const dropped = await deleteParkedReports(by.tx, filter)
  await record(by, entryOf('report.drop', filter))
  return { dropped }
}
