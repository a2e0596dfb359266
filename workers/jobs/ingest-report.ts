/**
 * Turns raw reports into events of messages. Reports of a batch are read one by one and applied in one transaction.
 * An unreadable report is parked with the reason and delays no other. A report whose message isn't there yet is
 * retried for an hour, then parked. A report of a provider that only a newer version knows is left to newer workers.
 * DECISIONS: Delivery reports.
 */

import type { EventResult } from '../../db/delivery/reports/event-result.ts'
import { PARKED_REASONS } from '../../db/delivery/reports/parked-reasons.ts'
import {
  deleteReports,
  endReports,
  type PendingReport,
  pendingReports,
  rewriteReports,
} from '../../db/delivery/reports/reports.sql.ts'
import { applyEvents, followEvents, type ReportedEvent } from '../../db/messages/apply-reports.ts'
import { forwardToOperator, type OperatorMail } from '../../db/messages/operator-mail.ts'
import { isDatabaseUnavailable } from '../../db/postgres/pool.ts'
import { impersonal, storableWords } from '../../db/validation/words.ts'
import { type Batch, LEFT_TO_NEWER, LEFT_TO_NEWER_WORDS } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'
import { type KnownReport, type ParsedReport, readReports } from '../reports/read-reports.ts'
import {
  endJobs,
  isShared,
  isToSeparate,
  reportIds,
  separate,
  toParts,
  type WaitingReport,
} from '../reports/report-jobs.ts'

type ReportOutcome = 'applied' | 'repeated' | 'ignored' | 'auto_reply' | 'parked'

/** How a report ends this time. `wait` is the seconds until the next attempt. */
type Verdict = { id: string } & (
  | { state: 'deleted' }
  | { state: 'done' | 'parked'; reason: string | null; team_ids: string[] }
  | { state: 'waiting'; wait: number }
)

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
  for (const part of toParts(others, (job) => reportIds(job).length, REPORTS_AT_ONCE))
    await ingestPart({ jobs: part, settle }, deps)
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
  const parsed = await readReports(known, deps)
  const now = deps.clock()
  const { results, judged } = await deps.database.transaction(async (tx) => {
    const results = await applyEvents(
      tx,
      parsed.flatMap(({ events }) => events),
      now,
      { sentCountsMs: deps.sent_counts_ms, secrets: deps.secrets },
    )
    const judged = parsed.map((one) => ({ ...one, verdict: reportVerdict(one, results, now) }))
    const verdicts = judged.map(({ verdict }) => verdict)
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
    return { results, judged }
  })
  await forward(
    judged.flatMap(({ forwarded, verdict }) => (forwarded && verdict.state !== 'waiting' ? [forwarded] : [])),
    deps,
  )
  logPauses(results, deps)
  deps.stats?.applied(results)
  for (const one of judged) {
    const { provider, received_at } = one.report
    const age = (now.getTime() - Date.parse(received_at)) / 1_000
    if (one.verdict.state !== 'waiting') deps.stats?.reported(provider, toOutcome(one, results), age)
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

/** Returns the teams whose messages the events are about. Empty unless all are known. */
function findTeams(events: readonly ReportedEvent[], results: ReadonlyMap<ReportedEvent, EventResult>) {
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
    if (left <= 0) return { id, state: 'parked', reason: PARKED_REASONS.noMessage, team_ids }
    const age = (now.getTime() - new Date(report.received_at).getTime()) / 1_000
    const pause = RETRY_PAUSES_S.find(([until]) => age < until)?.[1] ?? 300
    return { id, state: 'waiting', wait: Math.max(1, Math.min(pause, Math.ceil(left))) }
  }
  const reasons = own.flatMap((result) => (result?.kind === 'ignored' ? [result.reason] : []))
  const reason = reasons.length === 0 ? null : storableWords([...new Set(reasons)].join('; '))
  return { id, state: 'done', reason, team_ids }
}

/** Returns the metric's outcome of a processed report. */
function toOutcome(
  { verdict, uneventful, events }: ParsedReport & { verdict: Verdict },
  results: ReadonlyMap<ReportedEvent, EventResult>,
): ReportOutcome {
  if (verdict.state === 'parked') return 'parked'
  if (uneventful) return uneventful.outcome
  const applied = events.flatMap((event) => {
    const result = results.get(event)
    return result?.kind === 'applied' ? [{ event, repeated: result.repeated === true }] : []
  })
  const fresh = applied.filter(({ repeated }) => !repeated)
  if (fresh.length === 0) return applied.length > 0 ? 'repeated' : 'ignored'
  const isReply = ({ event }: { event: ReportedEvent }) =>
    event.channel === 'email' && event.kind === 'auto_reply'
  return fresh.every(isReply) ? 'auto_reply' : 'applied'
}
