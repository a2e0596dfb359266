/**
 * The job queue: pg-boss behind `enqueue(tx, job, payloads)` and the claims that workers fetch and settle (claims.ts).
 * Promises: a job is stored by the caller's transaction or not at all; a job's id is its row's id, so a row never
 * has two jobs; jobs of dead workers are found, but never those of living ones after the database was away. The
 * only module that imports pg-boss.
 */
import { PgBoss } from 'pg-boss'
import { sql } from 'slonik'
import { poolConfig } from '../postgres/connect.ts'
import { onCommit, type Tx } from '../postgres/pool.ts'
import { SettingsFault } from '../process/config.ts'
import { type Claims, openClaims } from './claims.ts'
import { takeDeadLetters } from './dead-letters.sql.ts'
import { faultReporter } from './fault-reporter.ts'
import { claimByGroup } from './group-claims.sql.ts'
import { deleteEndedJobs, deleteIdleJobs } from './jobs.sql.ts'
import {
  BY_GROUP,
  deadLetterOf,
  isShared,
  JOBS,
  type JobName,
  type Payload,
  RETENTION,
  SCHEDULES,
  type ScheduleName,
  type SharedJob,
} from './jobs.ts'
import { createLines, type Lines, placesOfReturning, priorityOf } from './line.ts'
import { indexJobs, isAnyDue, type Run, spreadCounts } from './upkeep.sql.ts'
import type { Waker } from './wake.ts'

const SCHEMA = 'pgboss'

type BossOptions = ConstructorParameters<typeof PgBoss>[0] & object

/** For pg itself: a connection that died without a word is given up, in milliseconds. */
const CONNECTION = { query_timeout: 60_000, keepAlive: true } as BossOptions

/** What the API and the CLI use. */
export type Producer = {
  /**
   * Stores jobs in the caller's transaction. A row whose job is still stored keeps that one.
   * @param places each job's place in a line that teams share; behind what the line has reached when left out.
   * @returns how many jobs were stored.
   */
  enqueue<J extends JobName>(
    tx: Tx,
    job: J,
    payloads: readonly Payload<J>[],
    places?: readonly number[],
  ): Promise<number>
  /** What the queue's line has reached (line.ts). */
  reached(tx: Tx, job: SharedJob): Promise<number>
  /** As `enqueue`, in place of whatever job or dead letter the rows still have, but for one that is running. */
  reenqueue<J extends JobName>(tx: Tx, job: J, payloads: readonly Payload<J>[]): Promise<number>
  /** Moves dead letters of a queue back. @returns their payloads. */
  redrive<J extends JobName>(tx: Tx, job: J, lot: DeadLetters): Promise<Payload<J>[]>
  stop(): Promise<void>
}

/** Which dead letters: the oldest of those seen then, with this reason, or with any when it is null. */
type DeadLetters = { seen: string; reason: string | null; limit: number }

export type Consumer = Omit<Producer, 'stop'> & {
  /** Opens the claims of a queue: once for each. */
  claims<J extends JobName>(job: J): Claims<J>
  /** Runs a handler by the clock (jobs.ts, SCHEDULES), in one process at a time. */
  schedule(name: ScheduleName, handler: () => Promise<void>): Promise<void>
  /** Fetches now instead of at the next poll; a hint that costs one fetch when it was wrong. */
  wake(job: string): void
  /** Claims nothing from now on: for the start of a drain. */
  close(): void
  /** Ends the heartbeats and waits for what runs by the clock, at most `timeout` milliseconds. */
  stop(timeout: number): Promise<void>
}

/**
 * pg-boss's SQL on a slonik transaction. The token is built by hand: the tag would refuse array parameters.
 * @param nameOf what a statement is prepared as; by itself it is planned each time.
 */
const on = (tx: Tx, nameOf?: (text: string) => string) => ({
  db: {
    async executeSql(text: string, values: unknown[] = []) {
      const name = nameOf ? { name: nameOf(text) } : {}
      const { rows } = await tx.query({ ...sql.unsafe`select`, ...name, sql: text, values: values as never })
      return { rows: [...rows] }
    },
  },
})

const insertNames = new Map<string, string>()

/**
 * What an insert of jobs is prepared as; each queue has its own text. To parse and plan it took a sixth of a single
 * send. Only inserts: they read no jobs, so that no plan of an empty queue is kept for a long one.
 */
function insertName(text: string): string {
  const name = insertNames.get(text) ?? `insert_jobs_${insertNames.size + 1}`
  insertNames.set(text, name)
  return name
}

const jobId = <J extends JobName>(job: J, payload: Payload<J>): string =>
  (JOBS[job].id as (payload: Payload<J>) => string)(payload)

/** The group of a job, where the queue's jobs have groups: workers may leave all jobs of a group alone. */
const groupOf = <J extends JobName>(job: J, payload: Payload<J>): { group?: { id: string } } => {
  const { group } = JOBS[job] as { group?: (payload: Payload<J>) => string | null }
  const id = group?.(payload) ?? null
  return id === null ? {} : { group: { id } }
}

const jobIds = <J extends JobName>(job: J, payloads: readonly Payload<J>[]): string[] =>
  payloads.map((payload) => jobId(job, payload))

/** pg-boss, the lines before the queues that teams share, and what wakes workers for fresh jobs. */
type Queues = { boss: PgBoss; lines: Lines; wake?: Waker | undefined }

async function insertJobs<J extends JobName>(
  { boss, lines, wake }: Queues,
  tx: Tx,
  job: J,
  payloads: readonly Payload<J>[],
  places?: readonly number[],
): Promise<number> {
  if (payloads.length === 0) return 0
  const priorities = (places ?? (await placesOfReturning(lines, tx, job, payloads))).map(priorityOf)
  const jobs = payloads.map((data, index) => ({
    id: jobId(job, data),
    data,
    priority: priorities[index] ?? 0,
    ...groupOf(job, data),
  }))
  const ids = await boss.insert(job, jobs, { ...on(tx, insertName), returnId: true })
  const count = ids?.length ?? 0
  if (wake && count > 0) onCommit(tx, () => wake(job))
  return count
}

async function redrive<J extends JobName>(queues: Queues, tx: Tx, job: J, lot: DeadLetters) {
  const payloads = await takeDeadLetters(tx, job, lot)
  if (payloads.length === 0) return payloads
  await deleteEndedJobs(tx, job, jobIds(job, payloads))
  await insertJobs(queues, tx, job, payloads)
  return payloads
}

const createProducer = (queues: Queues): Omit<Producer, 'stop'> => ({
  enqueue: (tx, job, payloads, places) => {
    if (places && isShared(job)) queues.lines[job].given(Math.max(...places))
    return insertJobs(queues, tx, job, payloads, places)
  },
  reached: (tx, job) => queues.lines[job].reached(tx),
  reenqueue: async (tx, job, payloads) => {
    if (payloads.length === 0) return 0
    await deleteIdleJobs(tx, job, jobIds(job, payloads))
    return insertJobs(queues, tx, job, payloads)
  },
  redrive: (tx, job, lot) => redrive(queues, tx, job, lot),
})

/** What pg-boss says of a schema that is missing or older than its code; it has no code for it. */
const NOT_MIGRATED = /^pg-boss (is not installed|database requires migrations)/

/** Statements on pg-boss's own connections. */
const runOn =
  (boss: PgBoss): Run =>
  async (text, values) =>
    (await boss.getDb().executeSql(text, values)) as Awaited<ReturnType<Run>>

const createBoss = async (url: string, options: BossOptions): Promise<PgBoss> =>
  new PgBoss({ schema: SCHEMA, ...(await poolConfig(url)), ...options } as BossOptions)

async function start(url: string, options: BossOptions, onError: (error: Error) => void) {
  const boss = await createBoss(url, { migrate: false, createSchema: false, ...CONNECTION, ...options })
  // Without a listener a lost connection would end the process.
  boss.on('error', faultReporter(onError))
  try {
    await boss.start()
  } catch (error) {
    if (!(error instanceof Error && NOT_MIGRATED.test(error.message))) throw error
    throw new SettingsFault(['DATABASE_URL: that database is not migrated; run `node db/migrate.ts`'])
  }
  return boss
}

/**
 * Opens the queue for producing: no polling, no upkeep, two connections at most.
 * @param wake hints idle workers, once the transaction that stored jobs has committed.
 */
export async function openProducer(
  url: string,
  onError: (error: Error) => void,
  wake?: Waker,
): Promise<Producer> {
  const boss = await start(url, { max: 2, supervise: false, schedule: false }, onError)
  return {
    ...createProducer({ boss, lines: createLines(), wake }),
    stop: () => boss.stop({ graceful: false }),
  }
}

/** How often dead workers' jobs are looked for, in milliseconds. */
const SUPERVISE = 2_000
/** For so long the database must have answered before a silent heartbeat counts as a dead worker, in milliseconds. */
const STEADY = 12_000

/**
 * Looks for the jobs of dead workers. Not for some seconds after the database was away, or this process was frozen:
 * then every heartbeat is old, and living workers get the time to renew theirs and to record what they have sent.
 * @returns `shaken`, to be called with each fault, and `end`. Whatever kept one statement from being done may have kept
 * living workers' heartbeats, too: a job that is found late costs less than one that is sent twice.
 */
function superviseWhenSteady(boss: PgBoss, onError: (fault: unknown) => void) {
  let steadyFrom = Number.NEGATIVE_INFINITY
  let last = performance.now()
  let busy = false
  const shaken = (): void => {
    steadyFrom = performance.now() + STEADY
  }
  const timer = setInterval(async () => {
    const now = performance.now()
    if (now - last > SUPERVISE + STEADY / 2) shaken()
    last = now
    if (busy || now < steadyFrom) return
    busy = true
    try {
      await boss.supervise()
      await spreadCounts(runOn(boss))
    } catch (error) {
      shaken()
      onError(error)
    } finally {
      busy = false
    }
  }, SUPERVISE)
  return { shaken, end: () => clearInterval(timer) }
}

/** Opens the queue for a worker: claims, schedules and upkeep (dead workers' jobs, old jobs). */
export async function openConsumer(
  url: string,
  { connections, onError }: { connections: number; onError: (error: Error) => void },
): Promise<Consumer> {
  const boss = await start(
    url,
    {
      max: connections,
      supervise: false,
      schedule: true,
      superviseIntervalSeconds: 2,
      monitorIntervalSeconds: 2,
      maintenanceIntervalSeconds: 300,
      cronMonitorIntervalSeconds: 30,
      cronWorkerIntervalSeconds: 5,
    },
    onError,
  )
  const report = faultReporter(onError)
  const supervision = superviseWhenSteady(boss, report)
  boss.on('error', supervision.shaken)
  const onFault = (fault: unknown): void => {
    supervision.shaken()
    report(fault)
  }
  const lines = createLines()
  const opened = new Map<string, Claims<JobName>>()
  return {
    ...createProducer({ boss, lines }),
    claims(job) {
      const claims = openClaims(job, {
        ...{ boss, on, onFault, lines },
        isAnyDue: () => isAnyDue(runOn(boss), job),
        claimByGroup: (limit, rooms) => claimByGroup(runOn(boss), job, limit, rooms),
      })
      opened.set(job, claims as unknown as Claims<JobName>)
      return claims
    },
    async schedule(name, handler) {
      await boss.work(name, { pollingIntervalSeconds: 5 }, handler)
      await boss.schedule(name, SCHEDULES[name].cron)
    },
    wake: (job) => opened.get(job)?.wake(),
    close() {
      for (const claims of opened.values()) claims.close()
    },
    async stop(timeout) {
      for (const claims of opened.values()) claims.end()
      supervision.end()
      await boss.stop({ graceful: true, timeout })
    },
  }
}

/**
 * Creates pg-boss's schema and every queue with its dead letter queue, and brings their options up to date.
 * Serial, and before traffic: attaching a queue's own table waits for open inserts.
 */
export async function migrateQueues(url: string): Promise<void> {
  const boss = await createBoss(url, { max: 2, supervise: false, schedule: false })
  boss.on('error', () => {})
  await boss.start()
  const kept = { retentionSeconds: RETENTION, deleteAfterSeconds: 600 }
  try {
    for (const [name, { options }] of Object.entries(JOBS)) {
      const { partition, ...rest } = options
      const dead = deadLetterOf(name as JobName)
      const changing = { ...kept, ...rest, retryBackoff: 'retryDelayMax' in rest, deadLetter: dead }
      await boss.createQueue(dead, kept)
      await boss.updateQueue(dead, kept)
      await boss.createQueue(name, { partition, ...changing })
      await boss.updateQueue(name, changing)
    }
    for (const name of Object.keys(SCHEDULES)) {
      await boss.createQueue(name, { policy: 'exclusive' })
      // Without a heartbeat a killed worker's round would keep the next ones away until it expires.
      await boss.updateQueue(name, { retryLimit: 0, heartbeatSeconds: 10, expireInSeconds: 300 })
    }
    await indexJobs(runOn(boss), BY_GROUP)
  } finally {
    await boss.stop({ graceful: false })
  }
}
