/**
 * Reads that may be a moment behind, on a standby where there is one (DECISIONS: Reads from a replica).
 * Promises: while the standby is away, or far behind, or cannot answer, the primary does instead, and nobody waits for
 * the standby to come back. Nothing is ever written through it: a standby takes no writes.
 */
import { errorWords, RequestError } from '../errors.ts'
import { type Database, isTooSlow, openDatabase } from './pool.ts'
import { replayPlace } from './replica.sql.ts'

export type Replica = {
  /** Runs something that only reads, on the standby if it will do, else on the primary. */
  read<T>(primary: Database, work: (database: Database) => Promise<T>): Promise<T>
  end(): Promise<void>
}

/** Where there is none. */
export const NO_REPLICA: Replica = { read: (primary, work) => work(primary), end: async () => {} }

/** It leads to another database: that will not change by waiting. */
export class ElsewhereError extends Error {}

/** For how long a look at the standby counts, in milliseconds: one that serves, and one that does not. */
const GOOD_FOR = 2_000
const BAD_FOR = 5_000
/** How far it may be behind, in seconds. */
const MAX_BEHIND = 60

type Log = { warn(what: object, words: string): void; info(what: object, words: string): void }
type Options = { primary: Database; log: Log; options: Parameters<typeof openDatabase>[1] }

/** Why the standby will not do; null when it will. @throws ElsewhereError */
async function faultOf(standby: Database, primary: Database): Promise<string | null> {
  const [there, here] = await Promise.all([replayPlace(standby), replayPlace(primary)])
  if (there.system !== here.system || there.database !== here.database)
    throw new ElsewhereError('it is not a replica of the database in DATABASE_URL')
  if (!there.standby) return 'it is not a standby'
  return there.behind !== null && there.behind > MAX_BEHIND
    ? `it is ${Math.round(there.behind)} seconds behind`
    : null
}

/**
 * Makes the way to the standby at `url`, and looks at it once. One that does not answer may come back.
 * @throws ElsewhereError when it is another database.
 */
export async function createReplica(url: string, { primary, log, options }: Options): Promise<Replica> {
  let standby: Database | null = null
  let state = { fault: null as string | null, at: Number.NEGATIVE_INFINITY }
  let looking: Promise<void> | null = null
  let hasEnded = false

  const note = (fault: string | null): void => {
    if (fault !== null && state.fault === null)
      log.warn({ reason: fault }, "DATABASE_REPLICA_URL can't be read from; reading from the primary instead")
    if (fault === null && state.fault !== null) log.info({}, 'reading from DATABASE_REPLICA_URL again')
    state = { fault, at: performance.now() }
  }
  const look = async (): Promise<void> => {
    const opened = standby ?? (await openDatabase(url, options))
    standby = opened
    if (hasEnded) await opened.end()
    else note(await faultOf(opened, primary))
  }
  const lookOnce = (): Promise<void> => {
    looking ??= look()
      .catch((error: unknown) => note(errorWords(error)))
      .finally(() => {
        looking = null
      })
    return looking
  }
  /** The standby, if it will do now. One that would not is looked at again without anybody's waiting for it. */
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
        // What is refused, or takes too long, would be so there, too.
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
