/**
 * Checks every second whether this is still the database that the process started with. Each process writes
 * heartbeats and remembers its last one. After a failover, the last heartbeats are in the database. A process that
 * finds its own then decides that nothing needs to be paused. If no process finds its own, or one is missing, the
 * database is a copy, and its deliveries are paused. Nothing is sent before the decision (is_at_home() in each claim).
 * DECISIONS: A restored copy.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { causes } from '../../errors.ts'
import { type Database, DISK_FULL, isDatabaseUnavailable } from '../../postgres/pool.ts'
import { createServiceClock, type ServiceClock } from '../../postgres/service-clock.ts'
import { idNow } from '../../process/ids.ts'
import type { Log } from '../../process/log.ts'
import { pausedQueues, RESTORED } from '../../queue/pauses.sql.ts'
import {
  claimAsOriginal,
  claimDatabase,
  deleteHeartbeat,
  deleteOldMarks,
  type HeartbeatResult,
  lockIdentity,
  writeHeartbeat,
  writeToDisk,
} from './restore-guard.sql.ts'
import { stopCopy } from './restored.ts'
import { type GuardTimes, judgeDatabase, type Memory } from './verdict.ts'

const TIMES: GuardTimes = { every: 1_000, hold: 3_000, patience: 30_000 }

const MARKS_KEPT_DAYS = 2

const WHAT_TO_DO =
  'sending is paused because this database is a copy. Check the queued messages ("Backup and restore" in db/README.md), then run `queue resume --restored`, or click Resume all on the Queues page'

/** Decides that processes have lived through a failover, unless it was decided since. */
const goOn = (database: Database, home_id: string | null): Promise<boolean> =>
  database.transaction(async (tx) => {
    const locked = await lockIdentity(tx)
    if (locked === null || locked.is_home || locked.home_id !== home_id) return false
    await claimDatabase(tx, idNow(), 'continued')
    return true
  })

type WatchDeps = { database: Database; log: Log }

/**
 * Checks once per call. The returned function reports whether it has paused a copy. @param clock is set with each
 * check.
 */
function createWatch(
  { database, log, clock }: WatchDeps & { clock: ServiceClock },
  times: GuardTimes,
  process: string,
) {
  const memory: Omit<Memory, 'away'> = { last: null, original: null }
  let next = 0
  let leftAt: number | null = null

  const note = (look: HeartbeatResult, mark: number): void => {
    if (look.found) memory.last = { mark, at: look.at }
    if (look.is_home) leftAt = null
    else if (leftAt === null) {
      leftAt = performance.now()
      log.warn(
        {},
        'the database server has changed, so sending is paused until it is clear whether the database is a copy',
      )
    }
  }
  return async (): Promise<boolean> => {
    next += 1
    const mark = next
    const leaving = writeHeartbeat(database, { process, last: memory.last?.mark ?? null, next: mark })
    const look = await clock.setBy(leaving, ({ at }) => new Date(at))
    note(look, mark)
    const verdict = judgeDatabase(
      look,
      { ...memory, away: leftAt === null ? 0 : performance.now() - leftAt },
      times,
    )
    if (verdict.kind === 'original') memory.original = look.home_id
    if (verdict.kind === 'new') await claimAsOriginal(database, idNow())
    if (verdict.kind === 'unknown') Object.assign(memory, { last: null, original: null })
    if (verdict.kind === 'continued' && (await goOn(database, look.home_id)))
      log.info({}, 'the database has failed over and nothing is missing, so sending continues')
    const hasStopped =
      verdict.kind === 'copy' && (await database.transaction((tx) => stopCopy(tx, look.home_id)))
    if (hasStopped) log.error({ reason: verdict.why }, WHAT_TO_DO)
    return hasStopped
  }
}

/** How many checks come between two writes to disk. */
const LOOKS_PER_WRITE = 5

/** Detects a full disk. A heartbeat fits into the space of the previous one, so a larger write is needed. */
function createDiskCheck({ database, log }: Pick<WatchDeps, 'database' | 'log'>) {
  let fault: string | null = null
  let looks = 0
  return {
    /** The server's error while its disk is full, or null. */
    fault: () => fault,
    async look(): Promise<void> {
      looks += 1
      if (looks % LOOKS_PER_WRITE !== 0) return
      try {
        await writeToDisk(database)
        if (fault !== null) log.info({}, 'the database accepts writes again')
        fault = null
      } catch (error) {
        const full = [...causes(error)].find(({ code }) => code === DISK_FULL)
        if (!full) throw error
        if (fault === null) log.error({ reason: full.message }, 'the disk of the database is full')
        fault = `the disk of the database is full: ${full.message}`
      }
    },
  }
}

/**
 * Watches the database while the process lives. Resolves after the first check.
 * @returns the database's time, continued since the last check, whether its disk is full, and a function to stop.
 */
export async function watchDatabase(deps: WatchDeps, times: GuardTimes = TIMES) {
  const { database, log } = deps
  const process = idNow()
  const clock = createServiceClock()
  const look = createWatch({ ...deps, clock }, times, process)
  const disk = createDiskCheck(deps)
  const ending = new AbortController()
  const quietly = (error: unknown): void => {
    if (!isDatabaseUnavailable(error)) log.error({ err: error }, 'database identity check failed')
  }
  const hasStopped = await look()
  await deleteOldMarks(database, MARKS_KEPT_DAYS)
  const paused = [...(await pausedQueues(database)).values()]
  if (!hasStopped && paused.some(({ reason }) => reason === RESTORED)) log.warn({}, WHAT_TO_DO)
  const watching = (async () => {
    for (;;) {
      await sleep(times.every, undefined, { signal: ending.signal, ref: false }).catch(() => {})
      if (ending.signal.aborted) return
      await look().catch(quietly)
      await disk.look().catch(quietly)
    }
  })()
  const end = async (): Promise<void> => {
    ending.abort()
    await watching
    await deleteHeartbeat(database, process).catch(quietly)
  }
  return { clock: clock.now, diskFault: disk.fault, end }
}
