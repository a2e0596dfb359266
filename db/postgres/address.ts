/**
 * Parses DATABASE_URL for slonik, pg and pg-boss. sslmode has the meaning it has in libpq and psql. Error messages
 * contain no part of the URL, because it has a password. Reads the files of sslrootcert, sslcert and sslkey.
 */
import type { ConnectionOptions } from 'node:tls'
import type { ClientConfig } from 'pg'
import { parse } from 'pg-connection-string'
import { errorWords } from '../errors.ts'
import { PASSWORD_HINT } from '../validation/strings.ts'

/** A database's servers and how to log in. `hosts` has one configuration for each server that the URL names. */
export type DatabaseAddress = {
  hosts: readonly [ClientConfig, ...ClientConfig[]]
  /** sslmode allow or prefer: connect without TLS if the server doesn't offer it. */
  lenient: boolean
}

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const
type SslMode = (typeof SSL_MODES)[number]

const NO_URL = `must be a postgres:// URL. ${PASSWORD_HINT}`
/** Everything before the servers, the servers, and the rest. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s
/** Options that the driver would interpret differently, or doesn't know. */
const OURS = ['ssl', 'sslmode', 'uselibpqcompat', 'target_session_attrs']

/** Supported libpq options, and those that can be ignored. All others are rejected, as in libpq. */
const KNOWN = [
  ...OURS,
  ...['sslrootcert', 'sslcert', 'sslkey', 'channel_binding', 'host', 'port', 'user', 'password'],
  ...['application_name', 'fallback_application_name', 'options', 'connect_timeout', 'client_encoding'],
  ...['gssencmode', 'keepalives', 'keepalives_idle', 'keepalives_interval', 'keepalives_count'],
]

const keepLetters = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '')

/** @throws Error for an unknown option. Text that may be part of a password isn't repeated. */
function checkOptions(query: string, params: URLSearchParams): void {
  const unknown = [...params.keys()].find((name) => !KNOWN.includes(name))
  if (unknown === undefined) return
  if (query.includes('@') || !/^\w{1,40}$/.test(unknown)) throw new Error(NO_URL)
  const meant = KNOWN.find((name) => keepLetters(name) === keepLetters(unknown))
  const known = meant ? `did you mean ${meant}?` : `it must be one of ${KNOWN.join(', ')}`
  throw new Error(`has an unknown option ${unknown}: ${known}`)
}

/** Returns the URL's sslmode. By default, TLS is off, or fully verified if a root certificate is named. */
function readSslMode(params: URLSearchParams): SslMode {
  const ssl = params.get('ssl')
  const words: Record<string, SslMode> = {
    true: 'verify-full',
    1: 'verify-full',
    false: 'disable',
    0: 'disable',
  }
  const unset = params.has('sslrootcert') ? 'verify-full' : 'disable'
  const named = params.get('sslmode') ?? (ssl === null ? unset : (words[ssl] ?? ssl))
  const mode = SSL_MODES.find((known) => known === named)
  if (mode) return mode
  throw new Error(`has an unknown sslmode: it must be one of ${SSL_MODES.join(', ')}`)
}

/**
 * Returns the TLS options as libpq defines them. Without a root certificate, `require` encrypts without verification.
 */
function toTls(mode: SslMode, files: ConnectionOptions): false | ConnectionOptions {
  if (mode === 'disable') return false
  if (mode === 'verify-full') return files
  const anyName = { ...files, checkServerIdentity: () => undefined }
  if (mode === 'verify-ca' && !files.ca)
    throw new Error(
      'needs sslrootcert=FILE for sslmode=verify-ca. To trust the public authorities, use sslmode=verify-full',
    )
  if (mode === 'verify-ca' || (mode === 'require' && files.ca)) return anyName
  return { ...files, rejectUnauthorized: false }
}

/** Parses a URL with one server. */
function driverConfig(url: string): ReturnType<typeof parse> {
  try {
    return parse(url)
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (path === undefined) throw new Error(NO_URL)
    throw new Error(`names a certificate file that can't be read: ${path} (${code})`)
  }
}

/** Returns the servers of a URL, which may be several in `?host=a,b&port=1,2`. */
function readServers({ host, port }: ReturnType<typeof parse>): { host?: string; port?: number }[] {
  const ports = (port ?? '').split(',')
  return (host ?? '').split(',').map((name, index) => {
    const own = Number(ports[index] ?? ports[0])
    if (!Number.isInteger(own) || own < 0 || own > 65_535) throw new Error('has an invalid port')
    return { ...(name === '' ? {} : { host: name }), ...(own === 0 ? {} : { port: own }) }
  })
}

/** @throws Error whose message continues `DATABASE_URL `. */
export function readDatabaseUrl(url: string): DatabaseAddress {
  const [, before = '', servers = '', after = ''] = PARTS.exec(url) ?? []
  if (before === '') throw new Error(NO_URL)
  const [path = '', query = ''] = after.split('?', 2)
  // The rest of a password with characters that end a part of the URL: `p@ss#w`, `p/w`.
  if (after.includes('#') || path.includes('@') || path.indexOf('/', 1) > 0) throw new Error(NO_URL)
  const params = new URLSearchParams(query)
  checkOptions(query, params)
  const wish = params.get('target_session_attrs') ?? 'any'
  if (!['any', 'primary', 'read-write'].includes(wish))
    throw new Error(
      'has a target_session_attrs that selects a standby. Use read-write, because the server must accept writes',
    )
  const mode = readSslMode(params)
  if (params.get('sslrootcert') === 'system') params.delete('sslrootcert')
  const bound = ['prefer', 'require'].includes(params.get('channel_binding') ?? '')
  for (const name of OURS) params.delete(name)
  const configs = servers
    .split(',')
    .map((server) => driverConfig(`${before}${server}${path}${params.size > 0 ? `?${params}` : ''}`))
  const hosts = configs.flatMap((config): ClientConfig[] => {
    const { user, password, database, application_name, options, ssl } = config
    const named = Object.entries({ user, password, database, application_name, options })
    const login = {
      ...Object.fromEntries(named.filter(([, value]) => value)),
      ...(bound ? { enableChannelBinding: true } : {}),
    }
    const tls = toTls(mode, typeof ssl === 'object' ? (ssl as ConnectionOptions) : {})
    return readServers(config).map((server) => ({ ...login, ...server, ssl: tls }))
  })
  return { hosts: hosts as [ClientConfig, ...ClientConfig[]], lenient: mode === 'allow' || mode === 'prefer' }
}

/** Returns the error of a URL, to continue `DATABASE_URL `, or null. */
export function databaseUrlFault(url: string): string | null {
  try {
    readDatabaseUrl(url)
    return null
  } catch (error) {
    return errorWords(error)
  }
}

/** Adds sslmode and sslrootcert from the environment (PGSSLMODE, PGSSLROOTCERT) unless the URL has them. */
export function withSslDefaults(url: string, sslmode = '', sslrootcert = ''): string {
  const query = new URLSearchParams(url.split('?', 2)[1] ?? '')
  const added = new URLSearchParams()
  if (sslmode !== '' && !query.has('sslmode') && !query.has('ssl')) added.set('sslmode', sslmode)
  if (sslrootcert !== '' && !query.has('sslrootcert')) added.set('sslrootcert', sslrootcert)
  return added.size === 0 ? url : `${url}${url.includes('?') ? '&' : '?'}${added}`
}
