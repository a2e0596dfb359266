/**
 * The jobs of one queue that this process has claimed: fetch, heartbeat and settle. A job is settled in the caller's
 * transaction, and only for the claimed attempt. If the last confirmation is too old (a frozen process), the claim
 * counts as lost until a heartbeat confirms it.
 */
import type { Tx } from '../postgres/pool.ts'
import { type Lines, positionsOfReturning, toPriority } from './fair-queue.ts'
import type { Capacities, ClaimedRow } from './group-claims.sql.ts'
import { type Attempt, deleteDoneJobs, exhaustRetries, postponeJobs } from './jobs.sql.ts'
import { type End, JOBS, type JobName, type Payload } from './jobs.ts'
import { touchedIds } from './pgboss.sql.ts'

export type FetchedJob<J extends JobName> = Attempt & { data: Payload<J> }

/** Selects jobs of a queue with groups (jobs.ts). */
type Among = {
  /** None of these groups. */
  except?: readonly string[]
  /** The maximum per group. Absent: no maximum. */
  rooms?: Capacities | undefined
}

export type Ends<J extends JobName> = ReadonlyMap<FetchedJob<J>, End>

export type Claims<J extends JobName> = {
  /**
   * Claims up to `limit` due jobs, most urgent first. None during a database outage. If it finds `limit`, the next
   * idle caller wakes.
   */
  fetch(limit: number, among?: Among): Promise<FetchedJob<J>[]>
  /** True if the job is certainly still ours: confirmed within the last seconds, by a monotonic clock. */
  isHeld(job: FetchedJob<J>): boolean
  /**
   * Settles the jobs whose attempt is still ours, in the caller's transaction.
   * @param isLast true if nothing follows in it. If all jobs are completed, it then also commits.
   */
  settle(tx: Tx, ends: Ends<J>, isLast?: boolean): Promise<void>
  /** Stops the heartbeats of these jobs. Call it after that transaction. */
  release(jobs: Iterable<FetchedJob<J>>): void
  /** Resolves when there may be work: after a wake-up, when a poll finds a due job, or when closed. */
  idle(): Promise<void>
  /** Wakes one idle caller. Others would find nothing. */
  wake(): void
  /** Claims no more jobs. Heartbeats continue until `end`. */
  close(): void
  isClosed(): boolean
  end(): void
}

type Boss = {
  fetch(name: string, options: { batchSize: number; ignoreGroups?: string[] }): Promise<unknown[]>
  touch(name: string, jobs: Attempt[]): Promise<unknown>
  complete(name: string, jobs: Attempt[], output: object, options: object): Promise<unknown>
  fail(name: string, jobs: Attempt[], output: object, options: object): Promise<unknown>
}

type ClaimDeps = {
  boss: Boss
  on: (tx: Tx) => object
  onFault: (fault: unknown) => void
  lines: Lines
  /** True if a job of this queue is due. A poll checks this first, because a fetch reads every deferred job. */
  isAnyDue: () => Promise<boolean>
  claimByGroup: (limit: number, rooms: Capacities) => Promise<ClaimedRow[]>
}

const POLL_MS = 1_000
const HEARTBEAT_MS = 3_000
/** A heartbeat without a response by now is sent again in parallel. */
const SILENT_MS = 10_000
/**
 * How long a confirmation is valid, as a share of the heartbeat's seconds. The rest is for a send that is starting.
 */
const CONFIRMED_SHARE = 0.8

/** Returns the milliseconds to the next full interval of this process, to align its timers. */
export const untilFull = (interval: number): number => interval - (performance.now() % interval)

export function openClaims<J extends JobName>(
  job: J,
  { boss, on, onFault, lines, isAnyDue, claimByGroup }: ClaimDeps,
): Claims<J> {
  type Job = FetchedJob<J>
  const heartbeat = startHeartbeat(job, { boss, onFault })
  const idlers = createIdlers()
  let closed = false

  const isDue = (): Promise<boolean> =>
    isAnyDue().catch((error: unknown) => {
      onFault(error)
      return false
    })

  const claim = async (limit: number, { except = [], rooms }: Among): Promise<Job[]> => {
    if (rooms) {
      const of = new Map([...rooms.of, ...except.map((group): [string, number] => [group, 0])])
      const rows = await claimByGroup(limit, { ...rooms, of })
      return rows.map(({ id, data, retry_count: retryCount }) => ({
        id,
        data: data as Payload<J>,
        retryCount,
      }))
    }
    const left = except.length > 0 ? { ignoreGroups: [...except] } : {}
    return (await boss.fetch(job, { batchSize: limit, ...left })) as Job[]
  }

  return {
    async fetch(limit, among = {}) {
      if (closed) return []
      const started = performance.now()
      try {
        const jobs = await claim(limit, among)
        heartbeat.confirm(jobs, started)
        if (jobs.length === limit) idlers.next()
        return jobs
      } catch (error) {
        onFault(error)
        return []
      }
    },
    isHeld: heartbeat.isHeld,
    settle: (tx, ends, isLast = false) => settle({ job, boss, on, lines }, tx, ends, isLast),
    release: heartbeat.release,
    async idle() {
      while (!closed) if ((await idlers.idle()) === 'woken' || (await isDue())) return
    },
    wake: idlers.wake,
    close() {
      closed = true
      while (idlers.next()) {}
    },
    isClosed: () => closed,
    end: heartbeat.end,
  }
}

/** Confirms the claimed jobs every few seconds, and knows how long each confirmation is valid. */
function startHeartbeat<J extends JobName>(job: J, { boss, onFault }: Pick<ClaimDeps, 'boss' | 'onFault'>) {
  type Job = FetchedJob<J>
  const confirmed = new Map<Job, number>()
  const fresh = JOBS[job].options.heartbeatSeconds * CONFIRMED_SHARE * 1_000
  let beating = 0
  const beat = async (): Promise<void> => {
    const started = performance.now()
    if (confirmed.size === 0 || started - beating < SILENT_MS) return
    beating = started
    try {
      const held = [...confirmed.keys()]
      const touched = touchedIds(await boss.touch(job, held))
      for (const each of held) {
        if (!touched.has(each.id)) confirmed.delete(each)
        else if (confirmed.has(each)) confirmed.set(each, started)
      }
    } catch (error) {
      onFault(error)
    } finally {
      if (beating === started) beating = 0
    }
  }
  const timer = setInterval(beat, HEARTBEAT_MS)
  return {
    /** @param at when they were surely ours, by `performance.now()`. */
    confirm(jobs: readonly Job[], at: number): void {
      for (const each of jobs) confirmed.set(each, at)
    },
    isHeld: (each: Job) => performance.now() - (confirmed.get(each) ?? Number.NEGATIVE_INFINITY) < fresh,
    release(jobs: Iterable<Job>): void {
      for (const each of jobs) confirmed.delete(each)
    },
    end: () => clearInterval(timer),
  }
}

function createIdlers() {
  const idlers = new Set<() => void>()
  /** Wakes the caller that has been idle longest. @returns false if no one is idle. */
  const next = (): boolean => {
    const [end] = idlers
    end?.()
    return end !== undefined
  }
  /** True if a wake-up came while no one was idle. A caller may be fetching just then, and miss the new work. */
  let woken = false
  return {
    next,
    wake(): void {
      woken = !next()
    },
    /** Waits for a wake-up or the next poll, at each full second of this process for all its queues. */
    async idle(): Promise<'woken' | 'poll'> {
      const isOver = woken
      woken = false
      if (isOver) return 'woken'
      return new Promise((resolve) => {
        const end = (how: 'woken' | 'poll'): void => {
          clearTimeout(poll)
          idlers.delete(wake)
          resolve(how)
        }
        const wake = (): void => end('woken')
        const poll = setTimeout(end, untilFull(POLL_MS), 'poll')
        idlers.add(wake)
      })
    },
  }
}

/** Writes the results with one or two statements per kind, for any number of jobs. */
async function settle<J extends JobName>(
  { job, boss, on, lines }: { job: J } & Omit<ClaimDeps, 'onFault' | 'isAnyDue' | 'claimByGroup'>,
  tx: Tx,
  ends: Ends<J>,
  isLast: boolean,
): Promise<void> {
  const groups = Map.groupBy(ends, ([, { end }]) => end)
  const jobsOf = (end: End['end']) => (groups.get(end) ?? []).map(([each]) => each)
  const byOutput = Map.groupBy(groups.get('completed') ?? [], ([, end]) => outputOf(end))
  const commits = isLast && groups.size === 1 && byOutput.size === 1
  for (const [output, ended] of byOutput) {
    const done = ended.map(([each]) => each)
    await (output === null
      ? deleteDoneJobs(tx, job, done, commits)
      : boss.complete(job, done, output, on(tx)))
  }
  const postponed = [...(groups.get('again') ?? []), ...(groups.get('snoozed') ?? [])]
  if (postponed.length > 0) {
    // A returning job is placed behind the jobs that will have been reached by then. It neither jumps the
    // queue nor starves.
    const payloads = postponed.map(([{ data }]) => data)
    const priorities = (await positionsOfReturning(lines, tx, job, payloads)).map(toPriority)
    const attempts = postponed.map((each, index) => ({ ...postponement(each), priority: priorities[index] }))
    await postponeJobs(tx, job, attempts)
  }
  const givenUp = jobsOf('given_up')
  if (givenUp.length > 0) await exhaustRetries(tx, job, givenUp)
  const failed = [...(groups.get('failed') ?? []), ...(groups.get('given_up') ?? [])]
  for (const [reason, group] of Map.groupBy(failed, ([, end]) => ('reason' in end ? end.reason : ''))) {
    const ended = group.map(([each]) => each)
    await boss.fail(job, ended, { reason }, on(tx))
  }
}

const outputOf = (end: End): object | null => (end.end === 'completed' ? (end.output ?? null) : null)

const postponement = ([{ id, retryCount }, end]: [FetchedJob<JobName>, End]) => ({
  id,
  attempt: retryCount,
  tried: end.end === 'again',
  seconds: 'seconds' in end ? end.seconds : 0,
})
