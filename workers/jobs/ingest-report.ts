/**
 * Turns raw reports into events of messages. Reports of a batch are read one by one and applied in one transaction.
 * An unreadable report is parked with the reason and delays no other. A report whose message isn't there yet is
 * retried for an hour, then parked. A report of a provider that only a newer version knows is left to newer workers.
 * DECISIONS: Delivery reports.
 */

import { MAIL_REPORTER } from '../../db/channels/email.ts'
import type { EventResult } from '../../db/delivery/reports/event-result.ts'
import {
  deleteReports,
  endReports,
  type PendingReport,
  type Provider,
  pendingReports,
  reportBodies,
  rewriteReports,
} from '../../db/delivery/reports/reports.sql.ts'
import { errorWords } from '../../db/errors.ts'
import { applyEvents, followEvents, type ReportedEvent } from '../../db/messages/apply-reports.ts'
import { forwardToOperator, type OperatorMail } from '../../db/messages/operator-mail.ts'
import { isDatabaseUnavailable } from '../../db/postgres/pool.ts'
import { isUuid, textFault } from '../../db/validation/strings.ts'
import { impersonal, storableWords } from '../../db/validation/words.ts'
import { type Batch, LEFT_TO_NEWER, LEFT_TO_NEWER_WORDS } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'
import { Uneventful, UnreadableReport } from '../providers/report.ts'
import { readOperatorMail } from '../reports/operator-mail.ts'
import { REPORT_CUTS } from '../reports/readers.ts'
import {
  endJobs,
  isShared,
  isToSeparate,
  reportIds,
  separate,
  toParts,
  type WaitingReport,
} from '../reports/report-jobs.ts'

type KnownReport = PendingReport & { provider: Provider }

/** One report, read: its events, why it gives none, or why it could not be read. */
type ParsedReport = {
  report: KnownReport
  events: readonly ReportedEvent[]
  fault: string | null
  uneventful?: Uneventful
  /** It is for the operator, as they get it. */
  forwarded?: OperatorMail | null
  /** The part of its bytes to keep. null means nothing, undefined means all. */
  kept?: Buffer | null | undefined
}

type ReportOutcome = 'applied' | 'repeated' | 'ignored' | 'auto_reply' | 'parked'

/** How a report ends this time. `wait` is the seconds until the next attempt. */
type Verdict = { id: string } & (
  | { state: 'deleted' }
  | { state: 'done' | 'parked'; reason: string | null; team_ids: string[] }
  | { state: 'waiting'; wait: number }
)

/** The bytes of reports in memory at a time. No other report is read together with a larger one. */
const CHUNK_BYTES = 16 * 1024 * 1024
/** Seconds between attempts, by the report's age in seconds. Most are only a moment early. */
const RETRY_PAUSES_S: readonly [age: number, wait: number][] = [
  [30, 5],
  [300, 30],
  [Number.POSITIVE_INFINITY, 300],
]

/** How many reports share a transaction. */
const REPORTS_AT_ONCE = 200

/** Processes one batch in parts. */
export async function ingestReports(
  { jobs, settle }: Batch<'ingest-report'>,
  deps: WorkerDeps,
): Promise<void> {
  await separate(jobs.filter(isToSeparate), settle, deps)
  const others = jobs.filter((job) => !isToSeparate(job))
  for (const part of toParts(others, REPORTS_AT_ONCE)) await ingestPart({ jobs: part, settle }, deps)
}

/** Processes jobs in one transaction. If it fails, each report gets a separate one. */
async function ingestPart(batch: Batch<'ingest-report'>, deps: WorkerDeps): Promise<void> {
  const { jobs, settle } = batch
  const reports = jobs.flatMap(reportIds).length
  try {
    await ingest(batch, deps)
    return
  } catch (error) {
    if (reports === 1 || isDatabaseUnavailable(error)) throw error
    deps.log.warn(
      { err: error, reports },
      'failed to ingest a batch of reports, so they are ingested one by one',
    )
  }
  await separate(jobs.filter(isShared), settle, deps)
  for (const job of jobs.filter((job) => !isShared(job))) {
    await ingest({ jobs: [job], settle }, deps).catch((error: unknown) => {
      deps.log.error({ err: error, report_id: job.id }, 'failed to ingest a report')
    })
  }
}

async function ingest({ jobs, settle }: Batch<'ingest-report'>, deps: WorkerDeps): Promise<void> {
  const ids = jobs.flatMap(reportIds)
  const pending = await pendingReports(deps.database, ids)
  const known = pending.filter((report) => isKnown(report, deps))
  const newer = pending.filter((report) => !isKnown(report, deps))
  if (newer.length > 0) deps.log.warn({ jobs: newer.length }, LEFT_TO_NEWER_WORDS)
  const parsed = await readAll(known, deps)
  const now = deps.clock()
  const { results, verdicts } = await deps.database.transaction(async (tx) => {
    const results = await applyEvents(
      tx,
      parsed.flatMap(({ events }) => events),
      now,
      { sentCountsMs: deps.sent_counts_ms, secrets: deps.secrets },
    )
    const verdicts = parsed.map((one) => reportVerdict(one, results, now))
    const ended = verdicts.flatMap((verdict) =>
      verdict.state === 'done' || verdict.state === 'parked' ? [verdict] : [],
    )
    if (ended.length > 0) await endReports(tx, ended)
    await rewriteReports(
      tx,
      parsed.flatMap(({ report: { id }, kept: body }) => (body === undefined ? [] : [{ id, body }])),
    )
    const unkept = verdicts.flatMap(({ id, state }) => (state === 'deleted' ? [id] : []))
    if (unkept.length > 0) await deleteReports(tx, unkept)
    await followEvents({ tx, queue: deps.queue }, [...results.values()])
    const waiting = verdicts.filter((verdict) => verdict.state === 'waiting')
    await endJobs({ tx, queue: deps.queue, settle }, jobs, [...waiting, ...newer.map(leaving)])
    return { results, verdicts }
  })
  await forward(
    parsed.flatMap(({ forwarded }, at) =>
      forwarded && verdicts[at]?.state !== 'waiting' ? [forwarded] : [],
    ),
    deps,
  )
  logPauses(results, deps)
  deps.stats?.applied(results)
  for (const [at, { report }] of parsed.entries()) {
    const age = (now.getTime() - Date.parse(report.received_at)) / 1_000
    const outcome = toOutcome(verdicts[at], parsed[at], results)
    if (outcome !== null) deps.stats?.reported(report.provider, outcome, age)
  }
}

/** Sends the operator their mail. It is already counted, so a failure is only logged. */
async function forward(
  mails: readonly OperatorMail[],
  { database, queue, versions, notices, log }: WorkerDeps,
): Promise<void> {
  if (mails.length === 0) return
  try {
    const count = await database.transaction((tx) =>
      forwardToOperator({ tx, queue, versions }, mails, notices),
    )
    if (count > 0) queue.wake('deliver-email')
  } catch (error) {
    log.error({ err: error, emails: mails.length }, 'failed to forward email to the operator')
  }
}

const isKnown = (report: PendingReport, { readers }: WorkerDeps): report is KnownReport =>
  Object.hasOwn(readers, report.provider)

const leaving = ({ id }: PendingReport): WaitingReport => ({ id, wait: LEFT_TO_NEWER.seconds })

/** Logs sender pauses, once per sender, as the delivery jobs do. */
function logPauses(results: ReadonlyMap<ReportedEvent, EventResult>, { log }: WorkerDeps): void {
  const pauses = [...results].flatMap(([event, { kind }]) =>
    event.channel === 'sender' && kind === 'applied' ? [event] : [],
  )
  for (const { sender, seconds, reason } of new Map(pauses.map((pause) => [pause.sender, pause])).values()) {
    log.error({ sender, seconds, reason: impersonal(reason) }, 'sender paused')
  }
}

/** Reads reports in chunks, so that a batch of large ones is never in memory at once. */
async function readAll(reports: readonly KnownReport[], deps: WorkerDeps): Promise<ParsedReport[]> {
  const parsed: ParsedReport[] = []
  for (const chunk of toChunks(reports)) {
    const large = chunk.flatMap(({ id, body }) => (body === null ? [id] : []))
    const bodies = large.length === 0 ? null : await reportBodies(deps.database, large)
    for (const report of chunk)
      parsed.push(await readOne(report, report.body ?? bodies?.get(report.id), deps))
  }
  return parsed
}

function toChunks(reports: readonly KnownReport[]): KnownReport[][] {
  const chunks: KnownReport[][] = []
  let room = 0
  for (const report of reports) {
    if (chunks.length === 0 || room < report.bytes) {
      chunks.push([])
      room = CHUNK_BYTES
    }
    chunks.at(-1)?.push(report)
    room -= report.bytes
  }
  return chunks
}

async function readOne(
  report: KnownReport,
  body: Buffer | undefined,
  deps: WorkerDeps,
): Promise<ParsedReport> {
  const read = deps.readers[report.provider]
  const kept = body && reduceReport(report, body)
  let forwarded: OperatorMail | null = null
  try {
    if (!body) throw new Error('its content has been deleted')
    if (kept === null) return { report, events: [], fault: null, kept }
    forwarded = report.provider === MAIL_REPORTER ? await readOperatorMail(body) : null
    const events = await read({ body: kept ?? body, received_at: new Date(report.received_at) })
    events.forEach(assertStorable)
    return { report, events: events.map((event) => ofReport(event, report)), fault: null, kept, forwarded }
  } catch (error) {
    if (error instanceof Uneventful)
      return { report, events: [], fault: null, uneventful: error, kept, forwarded }
    const fault = storableWords(errorWords(error))
    const known = { report_id: report.id, provider: report.provider }
    deps.log.warn({ ...known, reason: impersonal(fault) }, 'failed to read a report')
    const about = error instanceof UnreadableReport ? [ofReport(error.event, report)] : []
    return { report, events: about, fault, kept, forwarded }
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

/** Returns the teams whose messages the events are about. Empty unless all are known. */
function findTeams(
  events: readonly ReportedEvent[],
  results: ReadonlyMap<ReportedEvent, EventResult>,
): string[] {
  const teams = new Set<string>()
  for (const event of events) {
    const result = results.get(event)
    const found = result?.kind === 'applied' ? result.team_id : undefined
    const named =
      'ref' in event && !('provider_message_id' in event.ref) ? event.ref.team_id.toLowerCase() : found
    if (named === undefined) return []
    teams.add(named)
  }
  return [...teams]
}

function reportVerdict(
  { report, events, fault, uneventful }: ParsedReport,
  results: ReadonlyMap<ReportedEvent, EventResult>,
  now: Date,
): Verdict {
  const { id } = report
  if (uneventful?.kept === false) return { id, state: 'deleted' }
  const team_ids = findTeams(events, results)
  if (fault !== null) return { id, state: 'parked', reason: fault, team_ids }
  const own = events.map((event) => results.get(event))
  if (own.some((result) => result?.kind === 'unknown')) {
    const left = (new Date(report.retry_until).getTime() - now.getTime()) / 1_000
    if (left <= 0) return { id, state: 'parked', reason: 'no such message', team_ids }
    const age = (now.getTime() - new Date(report.received_at).getTime()) / 1_000
    const pause = RETRY_PAUSES_S.find(([until]) => age < until)?.[1] ?? 300
    return { id, state: 'waiting', wait: Math.max(1, Math.min(pause, Math.ceil(left))) }
  }
  const reasons = own.flatMap((result) => (result?.kind === 'ignored' ? [result.reason] : []))
  const reason = reasons.length === 0 ? null : storableWords([...new Set(reasons)].join('; '))
  return { id, state: 'done', reason, team_ids }
}

/** Returns the metric's outcome of a processed report. Null while it waits for its message. */
function toOutcome(
  verdict: Verdict | undefined,
  parsed: ParsedReport | undefined,
  results: ReadonlyMap<ReportedEvent, EventResult>,
): ReportOutcome | null {
  if (verdict === undefined || parsed === undefined || verdict.state === 'waiting') return null
  if (verdict.state === 'parked') return 'parked'
  if (parsed.uneventful) return parsed.uneventful.outcome
  const applied = parsed.events.flatMap((event) => {
    const result = results.get(event)
    return result?.kind === 'applied' ? [{ event, repeated: result.repeated === true }] : []
  })
  const fresh = applied.filter(({ repeated }) => !repeated)
  if (fresh.length === 0) return applied.length > 0 ? 'repeated' : 'ignored'
  const isReply = ({ event }: { event: ReportedEvent }) =>
    event.channel === 'email' && event.kind === 'auto_reply'
  return fresh.every(isReply) ? 'auto_reply' : 'applied'
}
