/**
 * Reads that may be slightly stale, on a standby if there is one (DECISIONS: Reads from a replica). If the standby is
 * unavailable, far behind or fails, the primary is used. No request waits for the standby to come back.
 */
import { errorWords, RequestError } from '../errors.ts'
import { type Database, isTooSlow, openDatabase } from './pool.ts'
import { readReplayPosition } from './replica.sql.ts'

export type Replica = {
  /** Runs a read on the standby if possible, otherwise on the primary. */
  read<T>(primary: Database, work: (database: Database) => Promise<T>): Promise<T>
  end(): Promise<void>
}

/** Used without a standby. */
export const NO_REPLICA: Replica = { read: (primary, work) => work(primary), end: async () => {} }

/** The URL leads to another database, so that retrying doesn't help. */
export class ElsewhereError extends Error {}

/** How long a check of the standby is valid, in milliseconds: if it passed, and if it failed. */
const GOOD_FOR = 2_000
const BAD_FOR = 5_000
/** The maximum replication delay, in seconds. */
const MAX_BEHIND = 60

type Log = { warn(what: object, words: string): void; info(what: object, words: string): void }
type Options = { primary: Database; log: Log; options: Parameters<typeof openDatabase>[1] }

/** Returns why the standby can't be used, or null. @throws ElsewhereError */
async function findFault(standby: Database, primary: Database): Promise<string | null> {
  const [there, here] = await Promise.all([readReplayPosition(standby), readReplayPosition(primary)])
  if (there.system !== here.system || there.database !== here.database)
    throw new ElsewhereError('it is not a replica of the database in DATABASE_URL')
  if (!there.standby) return 'it is not a standby'
  return there.behind !== null && there.behind > MAX_BEHIND
    ? `it is ${Math.round(there.behind)} seconds behind`
    : null
}

/**
 * Opens the standby at `url`, and checks it once. If it doesn't respond, it may come back.
 * @throws ElsewhereError if it is another database.
 */
export async function createReplica(url: string, { primary, log, options }: Options): Promise<Replica> {
  let standby: Database | null = null
  let state = { fault: null as string | null, at: Number.NEGATIVE_INFINITY }
  let looking: Promise<void> | null = null
  let hasEnded = false

  const note = (fault: string | null): void => {
    if (fault !== null && state.fault === null)
      log.warn({ reason: fault }, "DATABASE_REPLICA_URL can't be used, so reads use the primary")
    if (fault === null && state.fault !== null) log.info({}, 'reading from DATABASE_REPLICA_URL again')
    state = { fault, at: performance.now() }
  }
  const look = async (): Promise<void> => {
    const opened = standby ?? (await openDatabase(url, options))
    standby = opened
    if (hasEnded) await opened.end()
    else note(await findFault(opened, primary))
  }
  const lookOnce = (): Promise<void> => {
    looking ??= look()
      .catch((error: unknown) => note(errorWords(error)))
      .finally(() => {
        looking = null
      })
    return looking
  }
  /** Returns the standby if it can be used. A failed one is checked again in the background. */
  const usable = async (): Promise<Database | null> => {
    const age = performance.now() - state.at
    if (state.fault === null && age > GOOD_FOR) await lookOnce()
    else if (state.fault !== null && age > BAD_FOR) void lookOnce()
    return state.fault === null ? standby : null
  }

  await look().catch((error: unknown) => {
    if (error instanceof ElsewhereError) throw error
    note(errorWords(error))
  })
  return {
    async read(primaryPool, work) {
      const database = await usable()
      if (!database) return work(primaryPool)
      try {
        return await work(database)
      } catch (error) {
        // These errors would also occur on the primary.
        if (error instanceof RequestError || isTooSlow(error)) throw error
        note(errorWords(error))
        return work(primaryPool)
      }
    },
    async end() {
      hasEnded = true
      await looking
      await standby?.end()
    },
  }
}
