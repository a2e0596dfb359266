/**
 * pg-boss for workers: claims (claims.ts), scheduled jobs and maintenance. The only module that imports pg-boss.
 * producer.ts stores jobs without it.
 */

import { PgBoss } from 'pg-boss'
import packageJson from 'pg-boss/package.json' with { type: 'json' }
import { sql } from 'slonik'
import { connect, isPooled, liftTimeLimit, poolConfig } from '../postgres/connect.ts'
import type { Tx } from '../postgres/pool.ts'
import { SettingsFault } from '../process/config.ts'
import { entriesOf } from '../validation/keys.ts'
import { type Claims, openClaims, untilFull } from './claims.ts'
import { createDueQuestions } from './due.ts'
import { createLines } from './fair-queue.ts'
import { faultReporter } from './fault-reporter.ts'
import { claimByGroup } from './group-claims.sql.ts'
import {
  BY_GROUP,
  deadLetterQueue,
  JOB_RETENTION_S,
  JOBS,
  type JobName,
  SCHEDULE_QUEUES,
  SCHEDULES,
  type ScheduleName,
  scheduleQueue,
} from './jobs.ts'
import { indexJobs, isAnyLost, queuesDue, spreadCounts } from './maintenance.sql.ts'
import { isMigrated, type Run, SCHEMA } from './pgboss.sql.ts'
import { createProducer, type Producer } from './producer.ts'

type BossOptions = ConstructorParameters<typeof PgBoss>[0] & object

/** For pg: a connection without a response is closed after this time, in milliseconds. */
const CONNECTION = { query_timeout: 60_000, keepAlive: true } as BossOptions

export type Consumer = Producer & {
  claims<J extends JobName>(job: J): Claims<J>
  /** Runs a handler by the clock (jobs.ts, SCHEDULES), in one process at a time. */
  schedule(name: ScheduleName, handler: () => Promise<void>): Promise<void>
  /** Fetches now instead of at the next poll. A false hint costs one query. */
  wake(job: string): void
  /** Stops claiming, at the start of a drain. */
  close(): void
  /** Stops the heartbeats, and waits up to `timeout` milliseconds for scheduled jobs. */
  stop(timeout: number): Promise<void>
}

/**
 * Runs pg-boss's SQL on a slonik transaction. The token is created manually, because the tag rejects array
 * parameters.
 */
const on = (tx: Tx) => ({
  db: {
    async executeSql(text: string, values: unknown[] = []) {
      const { rows } = await tx.query({ ...sql.unsafe`select`, sql: text, values: values as never })
      return { rows: [...rows] }
    },
  },
})

/** Statements on pg-boss's own connections. */
const runOn =
  (boss: PgBoss): Run =>
  async (text, values) =>
    (await boss.getDb().executeSql(text, values)) as Awaited<ReturnType<Run>>

/** `registerInstance` is off, because stats/fleet has our own list of processes. */
const createBoss = async (url: string, options: BossOptions, further?: Parameters<typeof poolConfig>[1]) =>
  new PgBoss({
    ...{ schema: SCHEMA, registerInstance: false },
    ...(await poolConfig(url, further)),
    ...options,
  } as BossOptions)

/** True if its tables have the schema of the installed version. */
async function isCurrent(url: string): Promise<boolean> {
  const client = await connect(url)
  try {
    return await isMigrated((text) => client.query(text), packageJson.pgboss.schema)
  } finally {
    await client.end()
  }
}

async function start(url: string, options: BossOptions, onError: (error: Error) => void) {
  const boss = await createBoss(url, { migrate: false, createSchema: false, ...CONNECTION, ...options })
  // Without a listener a lost connection would end the process.
  boss.on('error', faultReporter(onError))
  try {
    await boss.start()
  } catch (error) {
    // pg-boss has no error code for this. If the database doesn't respond, the error already shows it.
    if (await isCurrent(url).catch(() => true)) throw error
    throw new SettingsFault(['DATABASE_URL: this database is not migrated. Run `node db/migrate.ts`'])
  }
  return boss
}

/** How often to look for jobs of dead workers, and to run pg-boss's other maintenance, in milliseconds. */
const [LOOK, SUPERVISE] = [2_000, 60_000]
/** How long the database must have responded before a missing heartbeat means a dead worker, in milliseconds. */
const STEADY_MS = 12_000

/**
 * Looks for jobs of dead workers. Waits some seconds after a database outage or a freeze of this process, because
 * living workers need that time to renew their heartbeats and to record their sends.
 * @returns `shaken`, to call on each error, and `end`. A late retry is better than a second copy of a message.
 */
function superviseWhenSteady(boss: PgBoss, onError: (fault: unknown) => void) {
  let steadyFrom = Number.NEGATIVE_INFINITY
  let last = performance.now()
  let supervised = Number.NEGATIVE_INFINITY
  let busy = false
  const shaken = (): void => {
    steadyFrom = performance.now() + STEADY_MS
  }
  const timer = setInterval(async () => {
    const now = performance.now()
    if (now - last > LOOK + STEADY_MS / 2) shaken()
    last = now
    if (busy || now < steadyFrom) return
    busy = true
    try {
      // A full round of pg-boss runs about thirty statements. Most checks find no dead worker, and need one.
      if (now < supervised + SUPERVISE && !(await isAnyLost(runOn(boss)))) return
      supervised = now
      await boss.supervise()
      await spreadCounts(runOn(boss))
    } catch (error) {
      shaken()
      onError(error)
    } finally {
      busy = false
    }
  }, LOOK)
  return { shaken, end: () => clearInterval(timer) }
}

/** How often to look for scheduled jobs that are due, in milliseconds. */
const SCHEDULES_MS = 5_000
/** How often pg-boss looks without this, in seconds. */
const FALLBACK_S = 60

/** Wakes pg-boss's workers of scheduled jobs that are due. The looks share the query of the claims' polls. */
function wakeScheduled(
  boss: PgBoss,
  isDue: (queue: string) => Promise<boolean>,
  onFault: (fault: unknown) => void,
) {
  const workers = new Map<string, string>()
  let ended = false
  const look = (): Promise<unknown> =>
    Promise.all(
      [...workers].map(async ([queue, worker]) => {
        if (await isDue(queue)) boss.notifyWorker(worker)
      }),
    ).catch((fault: unknown) => {
      // A stop ends the connection of a look.
      if (!ended) onFault(fault)
    })
  const next = (): NodeJS.Timeout => setTimeout(round, untilFull(SCHEDULES_MS))
  let timer = next()
  function round(): void {
    look()
    timer = next()
  }
  return {
    add: (queue: string, worker: string) => void workers.set(queue, worker),
    end(): void {
      ended = true
      clearTimeout(timer)
    },
  }
}

/** Opens the queue for a worker: claims, schedules and maintenance (jobs of dead workers, old jobs). */
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
  const isDue = createDueQuestions((jobs) => queuesDue(runOn(boss), jobs))
  const scheduled = wakeScheduled(boss, isDue, onFault)
  const opened = new Map<string, Claims<JobName>>()
  return {
    ...createProducer(undefined, lines),
    claims(job) {
      const claims = openClaims(job, {
        ...{ boss, on, onFault, lines },
        isAnyDue: () => isDue(job),
        claimByGroup: (limit, rooms) => claimByGroup(runOn(boss), job, limit, rooms),
      })
      opened.set(job, claims as unknown as Claims<JobName>)
      return claims
    },
    async schedule(name, handler) {
      const queue = scheduleQueue(name)
      scheduled.add(queue, await boss.work(queue, { pollingIntervalSeconds: FALLBACK_S }, handler))
      await boss.schedule(queue, SCHEDULES[name].cron)
    },
    wake: (job) => opened.get(job)?.wake(),
    close() {
      scheduled.end()
      for (const claims of opened.values()) claims.close()
    },
    async stop(timeout) {
      for (const claims of opened.values()) claims.end()
      scheduled.end()
      supervision.end()
      await boss.stop({ graceful: true, timeout })
    },
  }
}

/**
 * Creates pg-boss's schema and all queues with their dead letter queues, and updates their options. Runs before
 * traffic, because attaching a queue's own table waits for open inserts.
 */
export async function migrateQueues(url: string): Promise<void> {
  // Its role may limit statements (README: behind a pooler), and creating an index on millions of jobs is
  // slow.
  const further = (await isPooled(url)) ? undefined : liftTimeLimit
  const boss = await createBoss(url, { max: 2, supervise: false, schedule: false }, further)
  boss.on('error', () => {})
  await boss.start()
  const kept = { retentionSeconds: JOB_RETENTION_S, deleteAfterSeconds: 600 }
  try {
    for (const [name, { options }] of entriesOf<JobName, (typeof JOBS)[JobName]>(JOBS)) {
      const { partition, ...rest } = options
      const dead = deadLetterQueue(name)
      const changing = { ...kept, ...rest, retryBackoff: 'retryDelayMax' in rest, deadLetter: dead }
      await boss.createQueue(dead, kept)
      await boss.updateQueue(dead, kept)
      await boss.createQueue(name, { partition, ...changing })
      await boss.updateQueue(name, changing)
    }
    for (const name of SCHEDULE_QUEUES) {
      await boss.createQueue(name, { policy: 'exclusive' })
      // Without a heartbeat a killed worker's round would keep the next ones away until it expires.
      await boss.updateQueue(name, { retryLimit: 0, heartbeatSeconds: 10, expireInSeconds: 300 })
    }
    await indexJobs(runOn(boss), BY_GROUP)
  } finally {
    await boss.stop({ graceful: false })
  }
}
