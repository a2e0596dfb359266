/**
 * Opens the database when a process starts. If this version can't work with it, the process stops with a message that
 * names the necessary action. Server settings that can lose accepted messages cause a warning.
 */

import { connect, isSameDatabase } from './postgres/connect.ts'
import { turnOffJit } from './postgres/jit.ts'
import { listeningUrl } from './postgres/listen.ts'
import { type Database, openDatabase, type Tx } from './postgres/pool.ts'
import { createReplica, ElsewhereError, NO_REPLICA } from './postgres/replica.ts'
import { SettingsFault } from './process/config.ts'
import type { Log } from './process/log.ts'
import { VERSION } from './process/version.ts'
import { schemaFault, serverSettings } from './schema.sql.ts'
import { entriesOf } from './validation/keys.ts'

const RISKS = {
  fsync: 'a crash of the machine can destroy the database',
  full_page_writes: 'a crash of the machine can destroy pages of the database',
  synchronous_commit: 'a crash of the server can lose the most recently accepted messages',
} as const

/** Returns the reason why this version can't work with the database, with the necessary action, or null. */
export async function databaseFault(tx: Tx): Promise<string | null> {
  const fault = await schemaFault(tx)
  if (fault !== null) return fault
  const { transaction_read_only } = await serverSettings(tx)
  return transaction_read_only === 'on'
    ? "the database doesn't accept writes. It is a standby or set to read only"
    : null
}

export const ELSEWHERE =
  'DATABASE_DIRECT_URL and DATABASE_URL lead to different databases or schemas. Set DATABASE_DIRECT_URL to the same database, without the pooler'

/** Compares both databases. Warns if the direct URL is unreachable. @throws SettingsFault if they differ. */
async function checkDirect(url: string, direct: string | undefined, log: Log): Promise<void> {
  if (direct === undefined) return
  const same = await isSameDatabase(url, direct).catch((error: Error) => {
    log.warn(
      { reason: error.message },
      'DATABASE_DIRECT_URL is unreachable, so this process polls for new work until it can be reached',
    )
    return true
  })
  if (!same) throw new SettingsFault([ELSEWHERE])
}

/**
 * Turns JIT off, unless `release` has done so for this role. @returns true if it did. Only later sessions have the
 * setting.
 */
async function isJitTurnedOff(url: string, log: Log): Promise<boolean> {
  const client = await connect(url)
  try {
    const change = await turnOffJit(client)
    if (change === null) return false
    if (change.reason === null) log.info({ statement: change.statement }, 'turned JIT off for this role')
    else
      log.warn(
        change,
        'JIT is on, which slows down sending. Run the statement with a role that is allowed to',
      )
    return change.reason === null
  } finally {
    await client.end()
  }
}

/**
 * Opens the database. `listenUrl` is null without a direct connection for LISTEN.
 * @throws SettingsFault if this version can't work with the database.
 */
export async function startDatabase(
  {
    DATABASE_URL: url,
    DATABASE_DIRECT_URL: direct,
  }: { DATABASE_URL: string; DATABASE_DIRECT_URL?: string | undefined },
  options: Parameters<typeof openDatabase>[1],
  log: Log,
): Promise<{ database: Database; listenUrl: string | null }> {
  let database = await openDatabase(url, options)
  try {
    const fault = await databaseFault(database)
    if (fault !== null) throw new SettingsFault([`DATABASE_URL: ${fault}`])
    if (await isJitTurnedOff(url, log)) {
      await database.end()
      database = await openDatabase(url, options)
    }
    log.info({ version: VERSION, node: process.version }, 'starting')
    const settings = await serverSettings(database)
    for (const [name, risk] of entriesOf(RISKS))
      if (settings[name] === 'off') log.warn({ setting: name }, `the database runs with ${name} off: ${risk}`)
    await checkDirect(url, direct, log)
    const listenUrl = await listeningUrl(url, direct)
    if (listenUrl === null)
      log.info(
        'the database is behind a connection pooler and DATABASE_DIRECT_URL is not set, so this process polls for new work',
      )
    return { database, listenUrl }
  } catch (error) {
    await database.end()
    throw error
  }
}

/**
 * Opens the standby for reads that can lag, if one is configured. @throws SettingsFault if it is another database.
 */
export async function startReplica(url: string | undefined, options: Parameters<typeof createReplica>[1]) {
  if (url === undefined) return NO_REPLICA
  try {
    return await createReplica(url, options)
  } catch (error) {
    if (!(error instanceof ElsewhereError)) throw error
    throw new SettingsFault([`DATABASE_REPLICA_URL can't be used: ${error.message}`])
  }
}
