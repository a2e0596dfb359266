/**
 * Settings that all processes share, and the only function that reads settings. It reports all invalid variables at
 * once. Only this module, api/config.ts and workers/config.ts read process.env.
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

/** Invalid settings, one per line. A process prints the message and exits. */
export class SettingsFault extends Error {
  constructor(faults: readonly string[]) {
    super(
      `cannot start, because settings are missing or invalid:\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
    )
    this.name = 'SettingsFault'
  }
}

export type SettingsOf<S extends ObjectShape> = InferType<ReturnType<typeof object<AnyObject, S>>>

/** Turns a union of types into their intersection. */
export type All<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer A) => void ? A : never

/** Merges the settings of several declarations into the fields of one schema. */
export const settingsOf = <D extends { settings: ObjectShape }>(declared: readonly D[]) =>
  Object.assign({}, ...declared.map(({ settings }) => settings)) as All<D['settings']>

const DATABASE_URLS = ['DATABASE_URL', 'DATABASE_DIRECT_URL', 'DATABASE_REPLICA_URL']

/**
 * Reads settings with a yup schema whose keys are the names of the variables. Empty variables count as unset. URLs of
 * databases get the SSL options that platforms set in separate variables.
 * @throws SettingsFault that lists all missing and invalid variables.
 */
export function readSettings<T extends object>(
  schema: ObjectSchema<T>,
  env: NodeJS.ProcessEnv = process.env,
): Readonly<T> {
  const { PGSSLMODE, PGSSLROOTCERT } = env
  const given = Object.fromEntries(
    Object.entries(env)
      .filter(([name, value]) => value !== '' && name in schema.fields)
      .map(([name, value = '']) => [
        name,
        DATABASE_URLS.includes(name) ? withSslDefaults(value, PGSSLMODE, PGSSLROOTCERT) : value,
      ]),
  )
  try {
    return Object.freeze(schema.validateSync(given, { abortEarly: false })) as Readonly<T>
  } catch (error) {
    if (error instanceof ValidationError) throw new SettingsFault(error.errors)
    throw error
  }
}

/** A database URL, as libpq would read it (postgres/address.ts). */
const postgresUrl = string().test({
  name: 'postgres url',
  test: (url, { path, createError }) => {
    const fault = url === undefined ? null : databaseUrlFault(url)
    return fault === null || createError({ message: `${path} ${fault}` })
  },
})

/** The hosted relay that sends email. Unset if the relay has no hook for reports. */
export const relayName = string().oneOf(RELAYS, `\${path} must be one of ${RELAYS.join(', ')}`)

/** The URL of a single server. With several hosts, the one that accepts writes would be chosen. */
export const replicaUrl = postgresUrl.test(
  'one server',
  '${path} must name one server',
  (url) => url === undefined || databaseUrlFault(url) !== null || readDatabaseUrl(url).hosts.length === 1,
)

const anySecretKey = string()
  .min(16, '${path} must be at least 16 characters long')
  .test('not blank', '${path} must not consist of spaces', (key) => key === undefined || key.trim() !== '')

const secretKey = anySecretKey.test(
  'not weak',
  '${path} is too easy to guess. Use 32 random characters, for example from `openssl rand -hex 16`',
  (key) => key === undefined || !isWeakKey(key),
)

/** The plan of teams that are created without one. Default: `free`. */
export const defaultPlan = string()

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export const wholeNumber = (from: number, to: number) =>
  number()
    .integer('${path} must be a whole number')
    .min(from, `\${path} must be at least ${from}`)
    .max(to, `\${path} must be at most ${to}`)
    .typeError('${path} must be a whole number')

/** Splits a comma-separated list. Empty if it isn't set. */
export const commaList = (text = ''): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')

/** True for an http(s) URL, or if it isn't set. */
const isHttpUrl = (url: string | undefined): boolean =>
  url === undefined || (/^https?:\/\//i.test(url) && URL.canParse(url))

export const httpUrl = string().test('http url', '${path} must be an http(s) URL', isHttpUrl)

const isOrigin = ({ href, origin }: URL): boolean => href === `${origin}/`

/**
 * The public address of the service. Links start with it, so it can't have a path. The value becomes the URL's origin,
 * without spaces, capitals or a trailing slash.
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

/** A DNS server to use instead of the system's. */
export const dnsServer = string().test('dns server', '${path} must be host or host:port', (server = '') => {
  if (server === '' || isIP(server) !== 0) return true
  const named = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::([1-9]\d{0,4}))?$/i.exec(server)
  return named !== null && Number(named[1] ?? 53) <= 65_535
})

/**
 * The domain of bounce addresses. Default: the From domain of each email. Email to it must reach POST /hooks/smtp.
 */
export const returnPathDomain = string().test(
  'domain',
  '${path} must be a domain name',
  (value) => value === undefined || domainToAscii(value) !== null,
)

/** Returns RETURN_PATH_DOMAIN in ASCII, or null if it isn't set. */
export const toReturnDomain = (settings: { RETURN_PATH_DOMAIN?: string | undefined }): string | null =>
  domainToAscii(settings.RETURN_PATH_DOMAIN ?? '')

export const networkList = string().test(
  'networks',
  '${path} must be networks such as 10.0.0.0/8, separated by commas',
  (text) => commaList(text).every((cidr) => ipaddr.isValidCIDR(cidr)),
)

/** The sender address of the emails that we send ourselves. Its domain must be verified by a team. */
export const ownMailbox = string().test(
  'mailbox',
  '${path} must be an address, such as Heliograph <login@example.com>',
  (value) => value === undefined || parseMailbox(value) !== null,
)

/** Returns the number of letters to add, remove or change to turn one text into the other. */
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

/** The most wrong letters, and the lengths of names to compare. */
const MAX_TYPOS = 2
const SHORTEST_NAME = 8
const LONGEST_NAME = 64

/** Returns warnings about variables whose names are similar to unset settings. */
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

/** Codes for an address that isn't this machine's, an invalid address, and a name without an address. */
const NO_ADDRESS = ['EADDRNOTAVAIL', 'EINVAL', 'EAFNOSUPPORT', 'ENOTFOUND', 'EAI_AGAIN']

/** Converts an error from `listen` into one that names the setting. Returns other errors unchanged. */
export function portFault(setting: string, port: number, error: NodeJS.ErrnoException): Error {
  const { code = '' } = error
  if (code === 'EADDRINUSE') return new SettingsFault([`${setting} ${port} is in use by another program`])
  if (code === 'EACCES')
    return new SettingsFault([`${setting} ${port} is not allowed for this user. Choose a port above 1023`])
  if (NO_ADDRESS.includes(code)) return new SettingsFault(['HOST must be an address of this machine'])
  return error
}

/**
 * A secret from a provider. Rejects whitespace around it, which comes from pasting and would make every signature
 * invalid.
 */
export const givenSecret = string().test(
  'bare',
  '${path} must not start or end with whitespace',
  (value) => value === undefined || value.trim() === value,
)

/** A token that is the only authentication, so it must not be guessable. */
export const bearerToken = string().matches(
  /^[\x21-\x7e]{16,}$/,
  '${path} must be at least 16 printable ASCII characters without spaces, because it is sent in a header',
)

/** Meta's Graph API. Our requests are written for this version, the newest in November 2026. */
const GRAPH_API = 'https://graph.facebook.com'
export const GRAPH_VERSION = 'v26.0'

export const graphApiSettings = {
  WHATSAPP_API_URL: string()
    .test('url', '${path} must be the http(s) URL of the Graph API', isHttpUrl)
    .default(GRAPH_API),
  /** Ignored if the URL contains a version. */
  WHATSAPP_API_VERSION: string()
    .matches(/^v\d+\.\d+$/, '${path} must be a version of the Graph API, such as v26.0')
    .default(GRAPH_VERSION),
}

/** Returns the URL of the Graph API, with the version. @param fallback the default, if not Meta's. */
export function graphApiUrl(
  given: { WHATSAPP_API_URL: string; WHATSAPP_API_VERSION: string },
  fallback: string | null = null,
): string {
  const isDefault = given.WHATSAPP_API_URL === GRAPH_API
  const base = ((isDefault ? fallback : null) ?? given.WHATSAPP_API_URL).replace(/\/$/, '')
  return /\/v\d+\.\d+$/.test(base) ? base : `${base}/${given.WHATSAPP_API_VERSION}`
}

/** Settings of both the API and the workers. */
export const sharedSettings = {
  DATABASE_URL: postgresUrl.required('${path} is missing: the postgres:// URL of the database'),
  /** A URL that bypasses the connection pooler in DATABASE_URL, for LISTEN and migrations. */
  DATABASE_DIRECT_URL: postgresUrl,
  DATABASE_POOL_SIZE: wholeNumber(2, 200).default(10),
  LOG_LEVEL: string().oneOf(LOG_LEVELS, '${path} must be one of ${values}').default('info'),
  LOG_FORMAT: string().oneOf(['json', 'pretty'], '${path} must be json or pretty').default('json'),
  /** The memory limit of the process in MiB. Default: its container's limit. */
  MEMORY_LIMIT_MB: wholeNumber(1, 1_048_576),
  /** Teams with fewer emails in 24 hours are left out of the checks and metrics of bounces and complaints. */
  TEAM_PAUSE_MIN_EMAILS: wholeNumber(1, 1_000_000).default(500),
  SECRET_KEY: secretKey.required(
    '${path} is missing. Use the same 32 random characters in every process, for example from `openssl rand -hex 16`',
  ),
  /** The key that SECRET_KEY replaces, or that will replace it. It only decrypts and verifies. */
  SECRET_KEY_PREVIOUS: anySecretKey,
}

/** Settings of the CLI and the release step. Each command requires only those it needs. */
const toolSettings = object({
  DATABASE_URL: postgresUrl,
  DATABASE_DIRECT_URL: postgresUrl,
  SECRET_KEY: secretKey,
  SECRET_KEY_PREVIOUS: anySecretKey,
  DNS_SERVER: dnsServer,
  RETURN_PATH_DOMAIN: returnPathDomain,
  DEFAULT_PLAN: defaultPlan,
  /** Private networks that webhooks can reach, also over http. */
  WEBHOOK_ALLOW: networkList,
  /** The public address of the service. Unsubscribe links start with it. */
  PUBLIC_URL: publicUrl,
  /** The port of a web process on this machine. */
  PORT: wholeNumber(0, 65_535),
  /** For commands that look up WhatsApp numbers. */
  ...graphApiSettings,
})

export type ToolSettings = InferType<typeof toolSettings>

export const readToolSettings = (env?: NodeJS.ProcessEnv): Readonly<ToolSettings> =>
  readSettings(toolSettings, env)
