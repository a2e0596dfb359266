/**
 * Settings that every process shares, and the one way to read settings at all.
 * Promises: `readSettings` reports every fault at once, each naming its variable, before anything starts.
 * Together with api/config.ts and workers/config.ts the only place that reads process.env.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import {
  type AnyObject,
  type InferType,
  number,
  type ObjectSchema,
  type ObjectShape,
  object,
  string,
  ValidationError,
} from 'yup'
import { databaseUrlFault, readDatabaseUrl, withSslDefaults } from '../postgres/address.ts'
import { domainToAscii, parseMailbox } from '../validation/address.ts'
import { RELAYS } from '../validation/relays.ts'
import { isWeakKey } from './weak-key.ts'

/** Faults in the environment, one line each. A process prints the message and exits. */
export class SettingsFault extends Error {
  constructor(faults: readonly string[]) {
    super(`cannot start, the settings need attention:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.name = 'SettingsFault'
  }
}

/** The values of settings that somebody declares as the fields of a schema. */
export type SettingsOf<S extends ObjectShape> = InferType<ReturnType<typeof object<AnyObject, S>>>

/** What is of each of these types at once. */
export type All<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer A) => void ? A : never

/** The settings that several have declared, as fields of one schema. */
export const settingsOf = <D extends { settings: ObjectShape }>(declared: readonly D[]) =>
  Object.assign({}, ...declared.map(({ settings }) => settings)) as All<D['settings']>

const DATABASE_URLS = ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'DATABASE_REPLICA_URL']
const isDatabaseUrl = (name: string): boolean => DATABASE_URLS.includes(name)

/** The URL with what platforms set beside it. */
const withEnvironment = (url: string, { PGSSLMODE, PGSSLROOTCERT }: NodeJS.ProcessEnv): string =>
  withSslDefaults(url, PGSSLMODE, PGSSLROOTCERT)

/**
 * Reads settings by a yup schema whose keys are the variables' names. An empty variable counts as unset.
 * @throws SettingsFault listing every missing or malformed variable.
 */
export function readSettings<T extends object>(
  schema: ObjectSchema<T>,
  env: NodeJS.ProcessEnv = process.env,
): Readonly<T> {
  const given = Object.fromEntries(
    Object.entries(env)
      .filter(([name, value]) => value !== '' && name in schema.fields)
      .map(([name, value = '']) => [name, isDatabaseUrl(name) ? withEnvironment(value, env) : value]),
  )
  try {
    return Object.freeze(schema.validateSync(given, { abortEarly: false })) as Readonly<T>
  } catch (error) {
    if (error instanceof ValidationError) throw new SettingsFault(error.errors)
    throw error
  }
}

/** The URL of a database, which connects as libpq would (postgres/address.ts). */
const postgresUrl = string().test({
  name: 'postgres url',
  test: (url, { path, createError }) => {
    const fault = url === undefined ? null : databaseUrlFault(url)
    return fault === null || createError({ message: `${path} ${fault}` })
  },
})

/** The hosted relay that mail goes out through; unset: one that reports nothing by a hook of its own. */
export const relayName = string().oneOf(RELAYS, `\${path} must be ${RELAYS.join(', ')}`)

/** The URL of one server: of several, the one that takes writes would be chosen. */
export const replicaUrl = postgresUrl.test(
  'one server',
  '${path} must name one server',
  (url) => url === undefined || databaseUrlFault(url) !== null || readDatabaseUrl(url).hosts.length === 1,
)

const requiredUrl = postgresUrl.required('${path} is missing: the postgres:// URL of the database')

const anySecretKey = string()
  .min(16, '${path} must be at least 16 characters long')
  .test(
    'not blank',
    '${path} must be 16 random characters or more, not spaces',
    (key) => key === undefined || key.trim() !== '',
  )

const strongSecretKey = anySecretKey.test(
  'not weak',
  '${path} is too easy to guess. Use 32 random characters, for example from `openssl rand -hex 16`',
  (key) => key === undefined || !isWeakKey(key),
)

const secretKey = strongSecretKey.required(
  '${path} is missing: 16 random characters or more, preferably 32, the same in every process',
)

/** The plan of teams that are created without one; `free` if it isn't set. */
export const defaultPlan = string()

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export const wholeNumber = (from: number, to: number) =>
  number()
    .integer('${path} must be a whole number')
    .min(from, `\${path} must be at least ${from}`)
    .max(to, `\${path} must be at most ${to}`)
    .typeError('${path} must be a whole number')

/** The items of a comma-separated list; none when it is not set. */
export const commaList = (text = ''): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/** Whether a setting is an http(s) URL, where it is set. */
const isHttpUrl = (url: string | undefined): boolean =>
  url === undefined || (/^https?:\/\//i.test(url) && URL.canParse(url))

export const httpUrl = string().test('http url', '${path} must be an http(s) URL', isHttpUrl)

const isOrigin = ({ href, origin }: URL): boolean => href === `${origin}/`

/**
 * The address that people reach the service at. The links that begin with it know no path before their own; they begin
 * with it as URLs are written, whatever blanks, capitals or slashes it was given with.
 */
export const publicUrl = httpUrl
  .transform((url?: string) => {
    const parsed = url !== undefined && URL.canParse(url) ? new URL(url) : null
    return parsed !== null && isOrigin(parsed) ? parsed.origin : url
  })
  .test(
    'origin',
    '${path} must be an address without a path, such as https://messages.example.com',
    (url) => url === undefined || !URL.canParse(url) || isOrigin(new URL(url)),
  )

/** A DNS server to ask in place of the system's. */
export const dnsServer = string().test('dns server', '${path} must be host or host:port', (server = '') => {
  if (server === '' || isIP(server) !== 0) return true
  const named = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::([1-9]\d{0,4}))?$/i.exec(server)
  return named !== null && Number(named[1] ?? 53) <= 65_535
})

/** Where bounces return to; the From domain of each email when absent. Its mail must reach POST /hooks/smtp. */
export const returnPathDomain = string().test(
  'domain',
  '${path} must be a domain name',
  (value) => value === undefined || domainToAscii(value) !== null,
)

/** RETURN_PATH_DOMAIN in ASCII form. Null if it isn't set. */
export const returnDomainOf = ({
  RETURN_PATH_DOMAIN,
}: {
  RETURN_PATH_DOMAIN?: string | undefined
}): string | null => domainToAscii(RETURN_PATH_DOMAIN ?? '')

export const networkList = string().test(
  'networks',
  '${path} must be networks such as 10.0.0.0/8, by commas',
  (text) => commaList(text).every((cidr) => ipaddr.isValidCIDR(cidr)),
)

/** An address that we send by ourselves from, of a domain that a team has verified. */
export const ownMailbox = string().test(
  'mailbox',
  '${path} must be an address, such as Heliograph <login@example.com>',
  (value) => value === undefined || parseMailbox(value) !== null,
)

/** How many letters have to be added, removed or changed to make one text of the other, which the caller bounds. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (const [line, letter] of [...one].entries()) {
    const next = [line + 1]
    for (const [at, against] of [...other].entries()) {
      const changed = (row[at] ?? 0) + (letter === against ? 0 : 1)
      next.push(Math.min(changed, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** How many letters of a name may be wrong, and how long a name is that is looked at. */
const MAX_TYPOS = 2
const SHORTEST_NAME = 8
const LONGEST_NAME = 64

/** Warnings about variables whose names are nearly those of settings that are not set. */
export function misspeltSettings(schema: ObjectSchema<object>, env: NodeJS.ProcessEnv = process.env) {
  const unset = Object.keys(schema.fields).filter((name) => !env[name] && name.length >= SHORTEST_NAME)
  const given = Object.keys(env).filter((name) => !(name in schema.fields) && name.length <= LONGEST_NAME)
  return unset.flatMap((name) =>
    given
      .filter(
        (other) => Math.abs(other.length - name.length) <= MAX_TYPOS && distance(other, name) <= MAX_TYPOS,
      )
      .map((other) => `${other} is not a setting. Did you mean ${name}?`),
  )
}

/** What the system says of an address that is not this machine's, of none at all, and of a name that has none. */
const NO_ADDRESS = ['EADDRNOTAVAIL', 'EINVAL', 'EAFNOSUPPORT', 'ENOTFOUND', 'EAI_AGAIN']

/** Why a process could not listen, naming the setting; other errors as they are. */
export function portFault(setting: string, port: number, error: NodeJS.ErrnoException): Error {
  if (error.code === 'EADDRINUSE')
    return new SettingsFault([`${setting} ${port} is in use by another program`])
  if (error.code === 'EACCES')
    return new SettingsFault([`${setting} ${port} is not allowed for this user. Choose a port above 1023`])
  if (NO_ADDRESS.includes(error.code ?? ''))
    return new SettingsFault(['HOST must be an address of this machine'])
  return error
}

/**
 * What a provider has given us to prove something by. Pasted, or kept in a file that ends its last line, it may have
 * got a blank or a line break, with which nothing is proved.
 */
export const givenSecret = string().test(
  'bare',
  '${path} must not start or end with whitespace',
  (value) => value === undefined || value.trim() === value,
)

/** A token is all the proof we ask for, so it must not be guessable. */
export const bearerToken = string().matches(
  /^[\x21-\x7e]{16,}$/,
  '${path} must be 16 printable ASCII characters or more, without spaces: it travels in a header',
)

/** Meta's Graph API, and the version that our requests are written for: the newest in November 2026. */
const GRAPH_API = 'https://graph.facebook.com'
export const GRAPH_VERSION = 'v26.0'

export const graphApiSettings = {
  WHATSAPP_API_URL: string()
    .test('url', '${path} must be the http(s) URL of the Graph API', isHttpUrl)
    .default(GRAPH_API),
  /** Unless the URL has a version. */
  WHATSAPP_API_VERSION: string()
    .matches(/^v\d+\.\d+$/, '${path} must be a version of the Graph API, such as v26.0')
    .default(GRAPH_VERSION),
}

/** The Graph API with its version. */
export function graphApiUrl(given: { WHATSAPP_API_URL: string; WHATSAPP_API_VERSION: string }): string {
  const base = given.WHATSAPP_API_URL.replace(/\/$/, '')
  return /\/v\d+\.\d+$/.test(base) ? base : `${base}/${given.WHATSAPP_API_VERSION}`
}

/** What the API and the workers both take. */
export const sharedSettings = {
  DATABASE_URL: requiredUrl,
  /** Past the connection pooler that DATABASE_URL goes through, if it does: for LISTEN and for migrations. */
  DATABASE_DIRECT_URL: postgresUrl,
  DATABASE_POOL_SIZE: wholeNumber(2, 200).default(10),
  LOG_LEVEL: string().oneOf(LOG_LEVELS, '${path} must be one of ${values}').default('info'),
  LOG_FORMAT: string().oneOf(['json', 'pretty'], '${path} must be json or pretty').default('json'),
  /** How much memory the process may take, in MiB, if that isn't its container's limit. */
  MEMORY_LIMIT_MB: wholeNumber(1, 1_048_576),
  /** From how many emails in 24 hours on a team's bounces and complaints are judged, and shown as metrics. */
  TEAM_PAUSE_MIN_EMAILS: wholeNumber(1, 1_000_000).default(500),
  SECRET_KEY: secretKey,
  /** The key that SECRET_KEY replaces, or the one that will replace it: it opens and verifies only. */
  SECRET_KEY_PREVIOUS: anySecretKey,
}

/** What the CLI and the migrate step take: only what the call at hand needs is required. */
const toolSettings = object({
  DATABASE_URL: postgresUrl,
  DATABASE_DIRECT_URL: postgresUrl,
  SECRET_KEY: strongSecretKey,
  SECRET_KEY_PREVIOUS: anySecretKey,
  DNS_SERVER: dnsServer,
  RETURN_PATH_DOMAIN: returnPathDomain,
  DEFAULT_PLAN: defaultPlan,
  /** Private networks that webhooks may reach, over http too. */
  WEBHOOK_ALLOW: networkList,
  /** The address that recipients reach this service at: unsubscribe links begin with it. */
  PUBLIC_URL: publicUrl,
  /** Where a web process on this machine listens. */
  PORT: wholeNumber(0, 65_535),
  /** What is asked about WhatsApp numbers. */
  ...graphApiSettings,
})

export type ToolSettings = InferType<typeof toolSettings>

export const readToolSettings = (env?: NodeJS.ProcessEnv): Readonly<ToolSettings> =>
  readSettings(toolSettings, env)
