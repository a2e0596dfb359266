/**
 * The dependencies of the CLI's verbs: database, queue and secrets, each opened on first use. They are found
 * in the environment, otherwise in .data/, where `npm start` keeps them. Only for the CLI.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Actor, By } from '../accounts/audit/record.ts'
import { keptPort, wasUsed } from '../dev/used.ts'
import { RequestError } from '../errors.ts'
import type { Wanted } from '../maintenance/background-jobs/background-jobs.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import {
  commaList,
  graphApiUrl,
  readToolSettings,
  returnDomainOf,
  type ToolSettings,
} from '../process/config.ts'
import { LOOPBACK, networksOf } from '../process/public-address.ts'
import type { Secrets } from '../process/secrets.ts'
import { TEXTS } from './texts.ts'

const DATA = join(import.meta.dirname, '..', '..', '.data')

const USUAL_PORT = 3_000

/** Who acts, in the audit trail. */
export const ACTOR: Actor = 'cli'

/** A background job, begun by any actor. */
export type Unbegun = Wanted extends infer W ? (W extends Wanted ? Omit<W, 'actor'> : never) : never

export type Admin = ReturnType<typeof createAdmin>

/** The embedded server of `npm start`, if it runs. A production machine lacks the development dependency. */
async function embeddedUrl(): Promise<string> {
  const url = await import('../dev/postgres.ts').then(
    ({ runningPostgres }) => runningPostgres(DATA),
    (error: NodeJS.ErrnoException) => (error.code === 'ERR_MODULE_NOT_FOUND' ? null : Promise.reject(error)),
  )
  if (url !== null) return url
  throw new RequestError('unavailable', TEXTS.noDatabase)
}

/**
 * The key that was set; else, for a database that `npm start` has used, its own: another would spoil what is
 * sealed.
 */
function findSecretKey({ SECRET_KEY, DATABASE_URL }: ToolSettings): string {
  if (SECRET_KEY !== undefined) return SECRET_KEY
  if (!wasUsed(DATA, DATABASE_URL)) throw new RequestError('bad_request', TEXTS.noSecretKey)
  try {
    return readFileSync(join(DATA, 'secret-key'), 'utf8').trim()
  } catch {
    throw new RequestError('bad_request', TEXTS.noSecretKeyYet)
  }
}

/** Where `npm start` answers, or did; where it usually does for a database that it has not used. */
function portOf({ DATABASE_URL }: ToolSettings): number {
  return (wasUsed(DATA, DATABASE_URL) ? keptPort(DATA) : null) ?? USUAL_PORT
}

/** Makes something at the first `get` only; `made` says what there is to close. */
function once<T>(make: () => Promise<T>) {
  let made: Promise<T> | undefined
  const get = async (): Promise<T> => {
    made ??= make()
    return made
  }
  return { get, made: () => made }
}

/** Opens a database whose schema this version can use. @throws RequestError unavailable */
async function openUsable(url: string, plan: string | undefined): Promise<Database> {
  const { openDatabase } = await import('../postgres/pool.ts')
  const { nameConnections } = await import('../postgres/connect.ts')
  nameConnections('admin')
  const opened = await openDatabase(url, { size: 2 })
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

/** Reads the settings, opens nothing yet. @throws SettingsFault */
export function createAdmin() {
  const settings = readToolSettings()
  let known = settings.DATABASE_URL
  const url = async (): Promise<string> => (known ??= await embeddedUrl())
  const database = once(async () => openUsable(await url(), settings.DEFAULT_PLAN))
  const hints: Promise<void>[] = []
  const queue = once(async () => {
    const opened = await database.get()
    const { createProducer } = await import('../queue/producer.ts')
    const { wakeAtOnce } = await import('../queue/wake.ts')
    return createProducer((job) => void hints.push(wakeAtOnce(opened, job)))
  })
  const secrets = once(async () => {
    // Before the database: what is missing here is said without one.
    const keys = { ...settings, SECRET_KEY: findSecretKey(settings) }
    const { openSecrets } = await import('../process/canary.ts')
    return openSecrets(await database.get(), keys)
  })
  const timeIn = async (tx: Tx) => (await import('../postgres/time.sql.ts')).serviceTime(tx)
  /** For use cases, which write their own line in the audit trail. */
  const transaction = async <T>(work: (by: By) => Promise<T>): Promise<T> =>
    (await database.get()).transaction(async (tx) => work({ tx, now: await timeIn(tx), actor: ACTOR }))
  return {
    /** The database's time: this machine's clock counts for nothing. */
    now: async () => timeIn(await database.get()),
    /** A DNS server to ask in place of the system's. */
    dnsServer: settings.DNS_SERVER,
    /** RETURN_PATH_DOMAIN, as the workers have it. Null if it isn't set. */
    returnDomain: returnDomainOf(settings),
    /** Meta's Graph API. */
    graphApi: graphApiUrl(settings),
    /** The plan of new teams, where the setting names one. */
    defaultPlan: settings.DEFAULT_PLAN,
    /** The address that recipients reach the service at. */
    publicUrl: settings.PUBLIC_URL,
    /** Where people on this machine reach it: that address, else its port here. */
    site: () => settings.PUBLIC_URL ?? `http://localhost:${settings.PORT || portOf(settings)}`,
    /** Private networks that webhooks may reach: the setting's, else this machine for a database of `npm start`. */
    webhookNetworks: () =>
      networksOf(commaList(settings.WEBHOOK_ALLOW ?? (wasUsed(DATA, settings.DATABASE_URL) ? LOOPBACK : ''))),
    database: database.get,
    transaction,
    /** Does a background job here, all of it. @param secrets for what needs them. */
    async runBackgroundJob<R extends object>(wanted: Unbegun, secrets: Secrets | null = null): Promise<R> {
      const { runBackgroundJob } = await import('../maintenance/background-jobs/background-jobs.ts')
      const tools = { database: await database.get(), queue: await queue.get(), secrets }
      return runBackgroundJob(tools, { ...wanted, actor: ACTOR } as Wanted)
    },
    queue: queue.get,
    /** Asks for SECRET_KEY when it is first used, and for its being the database's. */
    secrets: secrets.get,
    /** The database's URL as far as it is known yet. */
    url: () => known,
    async close() {
      await Promise.all(hints)
      await (await database.made())?.end()
    },
  }
}
