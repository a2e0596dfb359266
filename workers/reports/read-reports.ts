/**
 * Reads raw reports: their events, and mail for the operator. A fault in a report is part of the result, and its
 * other reports are unaffected.
 */
import { MAIL_REPORTER } from '../../db/channels/email.ts'
import { type PendingReport, type Provider, reportBodies } from '../../db/delivery/reports/reports.sql.ts'
import { errorWords } from '../../db/errors.ts'
import type { ReportedEvent } from '../../db/messages/apply-reports.ts'
import { operatorSubject } from '../../db/messages/emails/report-envelope.ts'
import type { OperatorMail } from '../../db/messages/operator-mail.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import { isUuid, textFault } from '../../db/validation/strings.ts'
import { impersonal, storableWords } from '../../db/validation/words.ts'
import { Uneventful, UnreadableReport } from '../providers/report.ts'
import { REPORT_CUTS, type Readers } from './readers.ts'
import { toParts } from './report-jobs.ts'

export type KnownReport = PendingReport & { provider: Provider }

/** One report, read: its events, why it gives none, or why it could not be read. */
export type ParsedReport = {
  report: KnownReport
  events: readonly ReportedEvent[]
  fault: string | null
  uneventful?: Uneventful
  /** It is for the operator, as they get it. */
  forwarded?: OperatorMail | null
  /** The part of its bytes to keep. null means nothing, undefined means all. */
  kept: Buffer | null | undefined
}

type Reading = { readers: Readers; log: Log }

/** The bytes of reports in memory at a time. No other report is read together with a larger one. */
const CHUNK_BYTES = 16 * 1024 * 1024

/** Reads reports in chunks, so that a batch of large ones is never in memory at once. */
export async function readReports(
  reports: readonly KnownReport[],
  deps: Reading & { database: Database },
): Promise<ParsedReport[]> {
  const parsed: ParsedReport[] = []
  for (const chunk of toParts(reports, ({ bytes }) => bytes, CHUNK_BYTES)) {
    const large = chunk.flatMap(({ id, body }) => (body === null ? [id] : []))
    const bodies = large.length === 0 ? null : await reportBodies(deps.database, large)
    for (const report of chunk)
      parsed.push(await readOne(report, report.body ?? bodies?.get(report.id), deps))
  }
  return parsed
}

async function readOne(
  report: KnownReport,
  body: Buffer | undefined,
  { readers, log }: Reading,
): Promise<ParsedReport> {
  const parsed: ParsedReport = { report, events: [], fault: null, kept: body && reduceReport(report, body) }
  try {
    if (!body) throw new Error('its content has been deleted')
    if (parsed.kept === null) return parsed
    if (report.provider === MAIL_REPORTER) parsed.forwarded = await readOperatorMail(body)
    const received_at = new Date(report.received_at)
    const events = await readers[report.provider]({ body: parsed.kept ?? body, received_at })
    events.forEach(assertStorable)
    return { ...parsed, events: events.map((event) => ofReport(event, report)) }
  } catch (error) {
    if (error instanceof Uneventful) return { ...parsed, uneventful: error }
    const fault = storableWords(errorWords(error))
    const known = { report_id: report.id, provider: report.provider }
    log.warn({ ...known, reason: impersonal(fault) }, 'failed to read a report')
    const about = error instanceof UnreadableReport ? [ofReport(error.event, report)] : []
    return { ...parsed, events: about, fault }
  }
}

/** Returns the part of a report's bytes to keep (see `ParsedReport`). A web process of 0.1.0 stores more. */
function reduceReport({ provider }: KnownReport, body: Buffer): Buffer | null | undefined {
  const cut = REPORT_CUTS[provider]
  if (!cut) return undefined
  const left = cut(body)
  const kept = left === null ? Buffer.alloc(0) : left.body
  return kept?.equals(body) ? undefined : kept
}

/** Converts mail to postmaster@ and abuse@ for the operator. Returns null for other mail. */
async function readOperatorMail(body: Buffer): Promise<OperatorMail | null> {
  const subject = operatorSubject(body)
  if (subject === null) return null
  const { decodeWords } = await import('postal-mime')
  return { subject: storableWords(decodeWords(subject)), body }
}

/** An event dated before this is misdated, because no email was sent then. */
const EARLIEST_PLAUSIBLE = Date.UTC(2000)

/**
 * Adds the report's ID to an email event, so that operators can find what suppressed a contact. Events dated after
 * the report, or at implausible times, get the time of the report.
 */
function ofReport(event: ReportedEvent, { id, received_at }: PendingReport): ReportedEvent {
  const received = new Date(received_at)
  const plausible = event.occurred_at.getTime() >= EARLIEST_PLAUSIBLE && event.occurred_at <= received
  const dated = plausible ? event : { ...event, occurred_at: received }
  return dated.channel === 'email' ? { ...dated, report_id: id } : dated
}

/** Rejects an event that PostgreSQL can't store, because it would fail all events in the batch. @throws Error */
function assertStorable(event: ReportedEvent): void {
  const fault = textFault(event)
  if (fault) throw new Error(`${fault.field} ${fault.problem}`)
  if (Number.isNaN(event.occurred_at.getTime())) throw new Error('occurred_at must be a time')
  if (!('ref' in event) || 'provider_message_id' in event.ref) return
  if (!isUuid(event.ref.team_id) || !isUuid(event.ref.id)) throw new Error('ref must be two UUIDs')
}
