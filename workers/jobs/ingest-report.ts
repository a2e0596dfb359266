/**
 * Turns raw reports into what happened to messages: a batch is read one by one and applied in one transaction.
 * Promises: the same few statements for one report or a hundred; a report that cannot be read is parked with the
 * reason and holds up no other; one whose message is not there is tried again for an hour, then parked; nothing is
 * lost, whenever the process dies. Must not know a provider's words. Design §7; decisions: delivery reports.
 */
import { isDatabaseUnavailable, type Tx } from '../../db/postgres/pool.ts'
import type { FetchedJob, Settlement } from '../../db/queue/boss.ts'
import type { Fate } from '../../db/reports/fate.ts'
import {
  type PendingReport,
  pendingReports,
  reportBodies,
  settleReports,
} from '../../db/reports/reports.sql.ts'
import { isUuid, textFault } from '../../db/text/strings.ts'
import { storableWords } from '../../db/text/words.ts'
import { applyEvents } from '../channels.ts'
import type { WorkerDeps } from '../deps.ts'
import type { ReportedEvent } from '../providers/report.ts'

type IngestJob = FetchedJob<'ingest-report'>

/** One report, read: its events, or why it could not be. */
type Reading = { report: PendingReport; events: readonly ReportedEvent[]; fault: string | null }

/** How a report ends this time. `wait`: seconds until the next try. */
type Verdict = { id: string } & (
  | { state: 'done' | 'parked'; reason: string | null }
  | { state: 'waiting'; wait: number }
)

/** A job whose report is early, and the seconds until its next try. */
type Wait = { job: IngestJob; seconds: number }

/** How many bytes of reports are in memory at a time; one beyond it is read alone. */
const LOT_BYTES = 16 * 1024 * 1024
/** Seconds between tries, by the seconds since the report came: most are only a moment early. */
const PAUSES: readonly [age: number, wait: number][] = [
  [30, 5],
  [300, 30],
  [Number.POSITIVE_INFINITY, 300],
]

/** Works on one fetched batch. */
export async function ingestReports(jobs: IngestJob[], deps: WorkerDeps): Promise<Settlement[]> {
  try {
    await ingest(jobs, deps, putOff)
    return jobs.map(({ id }) => ({ id, status: 'completed' }))
  } catch (error) {
    if (jobs.length === 1 || isDatabaseUnavailable(error)) throw error
    deps.log.warn(
      { err: error, jobs: jobs.length },
      'cannot ingest this batch; taking its reports one by one',
    )
  }
  const settled: Settlement[] = []
  const waits: Wait[] = []
  for (const job of jobs) settled.push(await ingestAlone(job, waits, deps))
  // Not before: what is put off may be fetched anew, while this batch still holds its job.
  await deps.database.transaction((tx) => putOff(tx, waits, deps))
  return settled
}

async function ingestAlone(job: IngestJob, waits: Wait[], deps: WorkerDeps): Promise<Settlement> {
  try {
    waits.push(...(await ingest([job], deps)))
    return { id: job.id, status: 'completed' }
  } catch (error) {
    deps.log.error({ err: error, report_id: job.id }, 'cannot ingest this report')
    return { id: job.id, status: 'failed', output: { reason: 'the report could not be ingested' } }
  }
}

/**
 * Ingests reports together: all of them, or none.
 * @param last what to do in the same transaction with the jobs that have to wait. @returns those jobs.
 */
async function ingest(
  jobs: readonly IngestJob[],
  deps: WorkerDeps,
  last: typeof putOff = async () => {},
): Promise<Wait[]> {
  const ids = jobs.map(({ data }) => data.report_id)
  const readings = await readAll(await pendingReports(deps.database, ids), deps)
  const now = deps.clock()
  const { fates, waits } = await deps.database.transaction(async (tx) => {
    const fates = await applyEvents(
      tx,
      readings.flatMap(({ events }) => events),
      now,
    )
    const verdicts = readings.map((reading) => verdictOf(reading, fates, now))
    const waits = await settle(tx, jobs, verdicts, deps)
    await last(tx, waits, deps)
    return { fates, waits }
  })
  tellPauses(fates, deps)
  return waits
}

/** What an operator has to know at once, as deliver-email and deliver-whatsapp tell it; once for each sender. */
function tellPauses(fates: ReadonlyMap<ReportedEvent, Fate>, { log }: WorkerDeps): void {
  const pauses = [...fates].flatMap(([event, { kind }]) =>
    event.channel === 'sender' && kind === 'applied' ? [event] : [],
  )
  for (const { sender, seconds, reason } of new Map(pauses.map((pause) => [pause.sender, pause])).values()) {
    log.error({ sender, seconds, words: reason }, 'nothing can be sent for now')
  }
}

/** Reads reports lot by lot, so that a batch of large ones never lies in memory whole. */
async function readAll(reports: readonly PendingReport[], deps: WorkerDeps): Promise<Reading[]> {
  const readings: Reading[] = []
  for (const lot of lotsOf(reports)) {
    const bodies = await reportBodies(
      deps.database,
      lot.map(({ id }) => id),
    )
    for (const report of lot) readings.push(await readOne(report, bodies.get(report.id), deps))
  }
  return readings
}

function lotsOf(reports: readonly PendingReport[]): PendingReport[][] {
  const lots: PendingReport[][] = []
  let room = 0
  for (const report of reports) {
    if (lots.length === 0 || room < report.bytes) {
      lots.push([])
      room = LOT_BYTES
    }
    lots.at(-1)?.push(report)
    room -= report.bytes
  }
  return lots
}

async function readOne(report: PendingReport, body: Buffer | undefined, deps: WorkerDeps): Promise<Reading> {
  const read = deps.readers[report.provider]
  try {
    if (!body) throw new Error('its bytes are gone')
    const events = await read({ body, received_at: new Date(report.received_at) })
    events.forEach(assertStorable)
    return { report, events: events.map((event) => ofReport(event, report)), fault: null }
  } catch (error) {
    const fault = storableWords(error instanceof Error ? error.message : String(error))
    deps.log.warn({ report_id: report.id, provider: report.provider, fault }, 'unreadable report')
    return { report, events: [], fault }
  }
}

/** What suppresses a contact is to be found again. */
const ofReport = (event: ReportedEvent, { id }: PendingReport): ReportedEvent =>
  event.channel === 'email' ? { ...event, report_id: id } : event

/** An event that PostgreSQL refused would fail the whole batch. @throws Error naming what is wrong with it. */
function assertStorable(event: ReportedEvent): void {
  const fault = textFault(event)
  if (fault) throw new Error(`${fault.path} ${fault.problem}`)
  if (Number.isNaN(event.occurred_at.getTime())) throw new Error('occurred_at must be a time')
  if (!('ref' in event) || 'provider_message_id' in event.ref) return
  if (!isUuid(event.ref.team_id) || !isUuid(event.ref.id)) throw new Error('ref must be two UUIDs')
}

function verdictOf(
  { report, events, fault }: Reading,
  fates: ReadonlyMap<ReportedEvent, Fate>,
  now: Date,
): Verdict {
  const { id } = report
  if (fault !== null) return { id, state: 'parked', reason: fault }
  const own = events.map((event) => fates.get(event))
  if (own.some((fate) => fate?.kind === 'unknown')) {
    const left = (new Date(report.retry_until).getTime() - now.getTime()) / 1_000
    if (left <= 0) return { id, state: 'parked', reason: 'there is no such message' }
    const age = (now.getTime() - new Date(report.received_at).getTime()) / 1_000
    const pause = PAUSES.find(([until]) => age < until)?.[1] ?? 300
    return { id, state: 'waiting', wait: Math.max(1, Math.min(pause, Math.ceil(left))) }
  }
  const reasons = own.flatMap((fate) => (fate?.kind === 'ignored' ? [fate.reason] : []))
  const reason = reasons.length === 0 ? null : storableWords([...new Set(reasons)].join('; '))
  return { id, state: 'done', reason }
}

/** Ends what is done with, in the transaction that applied its events. @returns the jobs of the others. */
async function settle(
  tx: Tx,
  jobs: readonly IngestJob[],
  verdicts: readonly Verdict[],
  { queue }: WorkerDeps,
): Promise<Wait[]> {
  const ended = verdicts.filter((verdict) => verdict.state !== 'waiting')
  const waits = new Map(
    verdicts.flatMap((verdict) => (verdict.state === 'waiting' ? [[verdict.id, verdict.wait]] : [])),
  )
  if (ended.length > 0) await settleReports(tx, ended)
  const done = jobs.filter(({ data }) => !waits.has(data.report_id))
  if (done.length > 0) await queue.complete(tx, 'ingest-report', done)
  return jobs.flatMap((job) => {
    const seconds = waits.get(job.data.report_id)
    return seconds === undefined ? [] : [{ job, seconds }]
  })
}

/** Lets jobs wait without counting an attempt: one statement or two for each of the few pauses. */
async function putOff(tx: Tx, waits: readonly Wait[], { queue }: WorkerDeps): Promise<void> {
  for (const [seconds, group] of Map.groupBy(waits, (wait) => wait.seconds)) {
    const jobs = group.map(({ job }) => job)
    await queue.snooze(tx, 'ingest-report', jobs, seconds)
  }
}
