/**
 * DATABASE_URL, read in one place: slonik, pg and pg-boss all connect by what this module makes of it.
 * Promises: sslmode means what it means to libpq and psql; a fault names what is wrong in words that hold no part of
 * the URL, since that has a password. Reads the files that sslrootcert, sslcert and sslkey name; must not connect.
 */
import type { ConnectionOptions } from 'node:tls'
import type { ClientConfig } from 'pg'
import { parse } from 'pg-connection-string'
import { errorWords } from '../errors.ts'
import { PASSWORD_HINT } from '../validation/strings.ts'

/** A database's servers and how to log in. `hosts` has one configuration for each server that the URL names. */
export type DatabaseAddress = {
  hosts: readonly [ClientConfig, ...ClientConfig[]]
  /** sslmode allow or prefer: a server that offers no TLS is spoken to without. */
  lenient: boolean
}

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'no-verify', 'verify-ca', 'verify-full'] as const
type SslMode = (typeof SSL_MODES)[number]

const NO_URL = `must be a postgres:// URL; ${PASSWORD_HINT}`
/** Everything up to the servers, the servers, and what follows them. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s
/** What the driver would read in its own way, and what it does not know. */
const OURS = ['ssl', 'sslmode', 'uselibpqcompat', 'target_session_attrs']

/** libpq's options that mean something here, or that nothing is lost without; any other is refused, as libpq does. */
const KNOWN = [
  ...OURS,
  ...['sslrootcert', 'sslcert', 'sslkey', 'channel_binding', 'host', 'port', 'user', 'password'],
  ...['application_name', 'fallback_application_name', 'options', 'connect_timeout', 'client_encoding'],
  ...['gssencmode', 'keepalives', 'keepalives_idle', 'keepalives_interval', 'keepalives_count'],
]

const lettersOf = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '')

/** @throws Error for an option that is unknown. What looks like the rest of a password is not repeated. */
function checkOptions(query: string, params: URLSearchParams): void {
  const unknown = [...params.keys()].find((name) => !KNOWN.includes(name))
  if (unknown === undefined) return
  if (query.includes('@') || !/^\w{1,40}$/.test(unknown)) throw new Error(NO_URL)
  const meant = KNOWN.find((name) => lettersOf(name) === lettersOf(unknown))
  const known = meant ? `did you mean ${meant}?` : `known are ${KNOWN.join(', ')}`
  throw new Error(`has an unknown option ${unknown}: ${known}`)
}

/** The mode that the URL asks for. Without any: plain, or a full check where a certificate's authority is named. */
function sslModeOf(params: URLSearchParams): SslMode {
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

/** TLS as libpq means it: `require` encrypts and checks nothing, unless an authority is named. */
function tlsOf(mode: SslMode, files: ConnectionOptions): false | ConnectionOptions {
  if (mode === 'disable') return false
  if (mode === 'verify-full') return files
  const anyName = { ...files, checkServerIdentity: () => undefined }
  if (mode === 'verify-ca' && !files.ca)
    throw new Error('needs sslrootcert=FILE for sslmode=verify-ca; verify-full knows the public authorities')
  if (mode === 'verify-ca' || (mode === 'require' && files.ca)) return anyName
  return { ...files, rejectUnauthorized: false }
}

/** What the driver reads of a URL of one server. */
function driverConfig(url: string): ReturnType<typeof parse> {
  try {
    return parse(url)
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException
    if (path === undefined) throw new Error(NO_URL)
    throw new Error(`names a certificate's file that cannot be read: ${path} (${code})`)
  }
}

/** `?host=a,b&port=1,2` names several servers too. */
function serversOf({ host, port }: ReturnType<typeof parse>): { host?: string; port?: number }[] {
  const ports = (port ?? '').split(',')
  return (host ?? '').split(',').map((name, index) => {
    const own = Number(ports[index] ?? ports[0])
    if (!Number.isInteger(own) || own < 0 || own > 65_535) throw new Error('has an invalid port')
    return { ...(name === '' ? {} : { host: name }), ...(own === 0 ? {} : { port: own }) }
  })
}

/** @throws Error whose message goes on after `DATABASE_URL `. */
export function readDatabaseUrl(url: string): DatabaseAddress {
  const [, before = '', servers = '', after = ''] = PARTS.exec(url) ?? []
  if (before === '') throw new Error(NO_URL)
  const [path = '', query = ''] = after.split('?', 2)
  // The rest of a password with characters that end a URL's part: `p@ss#w`, `p/w`.
  if (after.includes('#') || path.includes('@') || path.indexOf('/', 1) > 0) throw new Error(NO_URL)
  const params = new URLSearchParams(query)
  checkOptions(query, params)
  const wish = params.get('target_session_attrs') ?? 'any'
  if (!['any', 'primary', 'read-write'].includes(wish))
    throw new Error(
      'selects a standby with target_session_attrs. It must lead to a server that accepts writes',
    )
  const mode = sslModeOf(params)
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
    const tls = tlsOf(mode, typeof ssl === 'object' ? (ssl as ConnectionOptions) : {})
    return serversOf(config).map((server) => ({ ...login, ...server, ssl: tls }))
  })
  return { hosts: hosts as [ClientConfig, ...ClientConfig[]], lenient: mode === 'allow' || mode === 'prefer' }
}

/** What is wrong with a URL, to go on after `DATABASE_URL `; null when nothing is. */
export function databaseUrlFault(url: string): string | null {
  try {
    readDatabaseUrl(url)
    return null
  } catch (error) {
    return errorWords(error)
  }
}

/** The URL with the environment's sslmode and sslrootcert (PGSSLMODE, PGSSLROOTCERT) where it says nothing itself. */
export function withSslDefaults(url: string, sslmode = '', sslrootcert = ''): string {
  const query = new URLSearchParams(url.split('?', 2)[1] ?? '')
  const added = new URLSearchParams()
  if (sslmode !== '' && !query.has('sslmode') && !query.has('ssl')) added.set('sslmode', sslmode)
  if (sslrootcert !== '' && !query.has('sslrootcert')) added.set('sslrootcert', sslrootcert)
  return added.size === 0 ? url : `${url}${url.includes('?') ? '&' : '?'}${added}`
}
