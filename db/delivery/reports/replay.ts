/** Shows reports to operators, and retries or drops parked ones. A replay of an applied report changes nothing. */

import { type AuditEntry, type By, record } from '../../accounts/audit/record.ts'
import { requestError } from '../../errors.ts'
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

const refused = (id: string) => requestError('not_found', TEXTS.noReport, { id })

/** Returns a report with its content, as text if possible. @throws RequestError not_found. */
export async function showReport(tx: Tx, id: string): Promise<ReportRow & { body: string }> {
  const row = await reportById(tx, id)
  const body = (await reportBodies(tx, [id])).get(id)
  if (!row || !body) throw refused(id)
  return { ...row, body: body.toString('utf8') }
}

/** Does the same for the dashboard, and records the access in the audit log. @throws RequestError not_found. */
export async function readReport(by: By, id: string): Promise<ReportRow & { body: string }> {
  const shown = await showReport(by.tx, id)
  await record(by, { team_id: null, action: 'report.read', subject: shown.id })
  return shown
}

function toEntry(action: string, { ids, provider, reason, before }: ParkedFilter): AuditEntry {
  const filters = { provider, reason, before: before?.toISOString() }
  const detail = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}: ${value}`,
  )
  return { team_id: null, action, subject: ids ? ids.join(' ') : 'parked', detail: detail.join(', ') }
}

/** Makes a report pending again, with a job that retries for an hour. @throws RequestError not_found. */
export async function replayReport(by: By, queue: Pick<Producer, 'reenqueue'>, id: string) {
  const { tx, now } = by
  const row = await reopenReport(tx, id, new Date(now.getTime() + UNMATCHED_TRIES_MS))
  if (!row) throw refused(id)
  await queue.reenqueue(tx, 'ingest-report', [{ report_id: id }])
  await record(by, { team_id: null, action: 'report.replay', subject: id })
  return row
}

/** Deletes a parked report. @returns it. @throws RequestError not_found, bad_request */
export async function dropReport(by: By, id: string): Promise<ReportRow> {
  const { tx } = by
  const dropped = await deleteParkedReport(tx, id)
  if (dropped) {
    await record(by, { team_id: null, action: 'report.drop', subject: id })
    return dropped
  }
  const row = await reportById(tx, id)
  if (!row) throw refused(id)
  throw requestError('bad_request', TEXTS.notParked, { id, state: row.state })
}

/** Does the same as `replayReport` for all matching parked reports. */
export async function replayParked(by: By, queue: Pick<Producer, 'reenqueue'>, filter: ParkedFilter) {
  const { tx, now } = by
  const ids = await reopenReports(tx, filter, new Date(now.getTime() + UNMATCHED_TRIES_MS))
  const payloads = ids.map((report_id) => ({ report_id }))
  await queue.reenqueue(tx, 'ingest-report', payloads)
  await record(by, toEntry('report.replay', filter))
  return { replayed: ids.length }
}

/** Does the same as `dropReport` for all matching parked reports. */
export async function dropParked(by: By, filter: ParkedFilter): Promise<{ dropped: number }> {
  const dropped = await deleteParkedReports(by.tx, filter)
  await record(by, toEntry('report.drop', filter))
  return { dropped }
}
