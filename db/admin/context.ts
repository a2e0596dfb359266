/**
 * The dependencies of the CLI's verbs: database, queue and secrets, each opened on first use. They are configured by
 * the environment, or by .data/, where `npm start` stores them.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Actor, By } from '../accounts/audit/record.ts'
import { readGraphApi, readPort, wasUsed } from '../dev/used.ts'
import { RequestError } from '../errors.ts'
import type { Wanted } from '../maintenance/background-jobs/background-jobs.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import {
  commaList,
  graphApiUrl,
  readToolSettings,
  type ToolSettings,
  toReturnDomain,
} from '../process/config.ts'
import { LOOPBACK, networksIn } from '../process/public-address.ts'
import type { Secrets } from '../process/secrets.ts'
import { TEXTS } from './texts.ts'

const DATA = join(import.meta.dirname, '..', '..', '.data')

const USUAL_PORT = 3_000

export const ACTOR: Actor = 'cli'

/** A background job without its actor. */
export type UnstartedJob = Wanted extends infer W ? (W extends Wanted ? Omit<W, 'actor'> : never) : never

export type Admin = ReturnType<typeof createAdmin>

/** Returns the URL of the embedded server of `npm start`, if it runs. */
async function embeddedUrl(): Promise<string> {
  const url = await import('../dev/postgres.ts').then(
    ({ runningPostgres }) => runningPostgres(DATA),
    (error: NodeJS.ErrnoException) => (error.code === 'ERR_MODULE_NOT_FOUND' ? null : Promise.reject(error)),
  )
  if (url !== null) return url
  throw new RequestError('unavailable', TEXTS.noDatabase)
}

/** Returns SECRET_KEY. For a database of `npm start`, the default is its key, because no other decrypts the data. */
function findSecretKey({ SECRET_KEY, DATABASE_URL }: ToolSettings): string {
  if (SECRET_KEY !== undefined) return SECRET_KEY
  if (!wasUsed(DATA, DATABASE_URL)) throw new RequestError('bad_request', TEXTS.noSecretKey)
  try {
    return readFileSync(join(DATA, 'secret-key'), 'utf8').trim()
  } catch {
    throw new RequestError('bad_request', TEXTS.noSecretKeyYet)
  }
}

/** Returns the last port of `npm start` for a database that it has used, or its usual port. */
function findPort({ DATABASE_URL }: ToolSettings): number {
  return (wasUsed(DATA, DATABASE_URL) ? readPort(DATA) : null) ?? USUAL_PORT
}

/** Calls `make` once, at the first `get`. `made` returns the result if there is one, to close it. */
function once<T>(make: () => Promise<T>) {
  let made: Promise<T> | undefined
  const get = async (): Promise<T> => {
    made ??= make()
    return made
  }
  return { get, made: () => made }
}

/** Opens a database with a few connections. */
export type Open = (url: string, options: { size: number }) => Promise<Database>

const openPool: Open = async (url, options) =>
  (await import('../postgres/pool.ts')).openDatabase(url, options)

/** Opens a database if this version can use its schema. @throws RequestError unavailable */
async function openUsable(url: string, plan: string | undefined, open: Open): Promise<Database> {
  const { nameConnections } = await import('../postgres/connect.ts')
  nameConnections('admin')
  const opened = await open(url, { size: 2 })
  try {
    const { schemaFault } = await import('../schema.sql.ts')
    const { defaultPlanFault } = await import('../accounts/teams/create.ts')
    const fault = (await schemaFault(opened)) ?? (await defaultPlanFault(opened, plan))
    if (fault === null) return opened
    throw new RequestError('unavailable', fault)
  } catch (error) {
    await opened.end()
    throw error
  }
}

/** Reads the settings. Opens nothing yet. @throws SettingsFault */
export function createAdmin(open = openPool) {
  const settings = readToolSettings()
  let known = settings.DATABASE_URL
  const url = async (): Promise<string> => (known ??= await embeddedUrl())
  const database = once(async () => openUsable(await url(), settings.DEFAULT_PLAN, open))
  const hints: Promise<void>[] = []
  const queue = once(async () => {
    const opened = await database.get()
    const { createProducer } = await import('../queue/producer.ts')
    const { wakeAtOnce } = await import('../queue/wake.ts')
    return createProducer((job) => void hints.push(wakeAtOnce(opened, job)))
  })
  const secrets = once(async () => {
    // Before the database is opened, so that a missing key is reported without one.
    const keys = { ...settings, SECRET_KEY: findSecretKey(settings) }
    const { openSecrets } = await import('../process/canary.ts')
    return openSecrets(await database.get(), keys)
  })
  const timeIn = async (tx: Tx) => (await import('../postgres/time.sql.ts')).serviceTime(tx)
  const transaction = async <T>(work: (by: By) => Promise<T>): Promise<T> =>
    (await database.get()).transaction(async (tx) => work({ tx, now: await timeIn(tx), actor: ACTOR }))
  return {
    /** The database's time. This machine's clock is never used. */
    now: async () => timeIn(await database.get()),
    /** A DNS server to use instead of the system's. */
    dnsServer: settings.DNS_SERVER,
    /** RETURN_PATH_DOMAIN, as in the workers. Null if it isn't set. */
    returnDomain: toReturnDomain(settings),
    /** Meta's Graph API with its version. For a database of `npm start`, its sandbox by default. */
    graphApi: () => graphApiUrl(settings, wasUsed(DATA, settings.DATABASE_URL) ? readGraphApi(DATA) : null),
    /** The plan of new teams, if the setting names one. */
    defaultPlan: settings.DEFAULT_PLAN,
    publicUrl: settings.PUBLIC_URL,
    /** The address for users on this machine: the public address, or the local port. */
    site: () => settings.PUBLIC_URL ?? `http://localhost:${settings.PORT || findPort(settings)}`,
    /** Private networks that webhooks may reach. Default: this machine, for a database of `npm start`. */
    webhookNetworks: () =>
      networksIn(commaList(settings.WEBHOOK_ALLOW ?? (wasUsed(DATA, settings.DATABASE_URL) ? LOOPBACK : ''))),
    database: database.get,
    transaction,
    /** Runs a background job to its end in this process. @param secrets for jobs that need them. */
    async runBackgroundJob<R extends object>(
      wanted: UnstartedJob,
      secrets: Secrets | null = null,
    ): Promise<R> {
      const { runBackgroundJob } = await import('../maintenance/background-jobs/background-jobs.ts')
      const tools = { database: await database.get(), queue: await queue.get(), secrets }
      return runBackgroundJob(tools, { ...wanted, actor: ACTOR } as Wanted)
    },
    queue: queue.get,
    /** Needs SECRET_KEY on first use, and checks that it is the database's. */
    secrets: secrets.get,
    /** The database's URL, if it is known yet. */
    url: () => known,
    async close() {
      await Promise.all(hints)
      await (await database.made())?.end()
    },
  }
}
