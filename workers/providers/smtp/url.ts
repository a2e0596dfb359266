/**
 * Reads SMTP_URL: smtp://user:password@host:port or smtps://…, with nodemailer's options as its query, which override
 * ours: `?requireTLS=true&tls.rejectUnauthorized=false` (as true and false, not `=0`). Messages never repeat a URL,
 * because it contains a password.
 */
import ipaddr from 'ipaddr.js'
import { PASSWORD_HINT, percentDecoded } from '../../../db/validation/strings.ts'

/** Parses the URL of an SMTP server. Null if it isn't one. A path or a fragment is part of a password. */
const parse = (url: string): URL | null => {
  const parsed = URL.canParse(url) ? new URL(url) : null
  if (parsed === null || !/^smtps?:$/.test(parsed.protocol) || parsed.hostname === '') return null
  return /^\/?$/.test(parsed.pathname) && !parsed.href.includes('#') ? parsed : null
}

const FLAG = /^(true|false)$/
const NUMBER = /^\d+$/
const TEXT = /./
/** The nodemailer options that make sense here, and the form of their values. */
const OPTIONS: Record<string, RegExp> = {
  secure: FLAG,
  requireTLS: FLAG,
  ignoreTLS: FLAG,
  opportunisticTLS: FLAG,
  'tls.rejectUnauthorized': FLAG,
  'tls.servername': TEXT,
  'tls.minVersion': TEXT,
  'tls.maxVersion': TEXT,
  'tls.ciphers': TEXT,
  authMethod: TEXT,
  name: TEXT,
  localAddress: TEXT,
  maxConnections: NUMBER,
  maxMessages: NUMBER,
  rateLimit: NUMBER,
  rateDelta: NUMBER,
  connectionTimeout: NUMBER,
  greetingTimeout: NUMBER,
  dnsTimeout: NUMBER,
  socketTimeout: NUMBER,
}

function optionFault(name: string, value: string): string | null {
  const shape = OPTIONS[name]
  if (shape?.test(value)) return null
  if (shape) return `has an option ${name} that must be ${shape === FLAG ? 'true or false' : 'a number'}`
  const meant = Object.keys(OPTIONS).find((known) => known.toLowerCase() === name.toLowerCase())
  const known = meant ? `did you mean ${meant}?` : `it must be one of ${Object.keys(OPTIONS).join(', ')}`
  // Anything but a plain name may be half a password.
  return `has an unknown option${/^[\w.]{1,40}$/.test(name) ? ` ${name}` : ''}: ${known}`
}

/** Networks whose relays often have no TLS: private ones, and those of containers and cloud platforms. */
const PRIVATE_NETWORKS = [
  ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
  ...['fc00::/7', 'fe80::/10'],
].map((network) => ipaddr.parseCIDR(network))

type HostKind = 'loopback' | 'private' | 'public'

/** A name without a dot belongs to a private network, such as a container's. */
function hostKind(hostname: string): HostKind {
  const name = hostname.toLowerCase().replace(/^\[(.*)\]$|\.$/, '$1')
  if (!ipaddr.isValid(name)) {
    if (name === 'localhost') return 'loopback'
    return name.includes('.') ? 'public' : 'private'
  }
  const address = ipaddr.process(name)
  if (address.range() === 'loopback') return 'loopback'
  const isWithin = (network: (typeof PRIVATE_NETWORKS)[number]): boolean =>
    network[0].kind() === address.kind() && address.match(network as never)
  return PRIVATE_NETWORKS.some(isWithin) ? 'private' : 'public'
}

/** True if the URL doesn't decide whether a login needs TLS. */
const leavesTlsOpen = ({ protocol, username, searchParams }: URL): boolean =>
  username !== '' &&
  protocol === 'smtp:' &&
  !searchParams.has('requireTLS') &&
  searchParams.get('secure') !== 'true'

/** True if the relay must offer STARTTLS before the login is sent. The URL's own `requireTLS` overrides it. */
export function requiresTls(url: string): boolean {
  const parsed = parse(url)
  return parsed !== null && leavesTlsOpen(parsed) && hostKind(parsed.hostname) !== 'loopback'
}

const TLS_UNDECIDED =
  'must set requireTLS, because it has a user name and its host is a private address or a name without a dot. Add ?requireTLS=true, or ?requireTLS=false if the relay has no TLS'

/** Returns the error of a URL, to follow `SMTP_URL `, or null. */
export function smtpUrlFault(url: string): string | null {
  const parsed = parse(url)
  if (parsed === null) return `must be the smtp:// or smtps:// URL of a relay. ${PASSWORD_HINT}`
  for (const [name, value] of parsed.searchParams) {
    const fault = optionFault(name, value)
    if (fault !== null) return fault
  }
  return leavesTlsOpen(parsed) && hostKind(parsed.hostname) === 'private' ? TLS_UNDECIDED : null
}

/**
 * Returns the host with its port, and the password in the forms that a server might repeat. One too short to
 * distinguish from text is omitted. @throws Error if the URL isn't an SMTP server's.
 */
export function readSmtpUrl(url: string): { host: string; secrets: string[] } {
  const parsed = parse(url)
  if (parsed === null) throw new Error('SMTP_URL must be smtp://… or smtps://…')
  const user = decode(parsed.username)
  const password = decode(parsed.password)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const forms = [base64(`\0${user}\0${password}`), base64(password), parsed.password, password]
  const secrets = forms.filter((secret) => password.length >= 4 && secret.length >= 4)
  return { host: parsed.host, secrets }
}

const decode = (text: string): string => percentDecoded(text) ?? text

/** Adds the helpful SMTP_URL options to Node's message about a relay's certificate. Others stay unchanged. */
export function withWayOut(words: string): string {
  if (!/certificate/i.test(words)) return words
  const [reason] = words.split(';')
  return `${reason}. Set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority. Otherwise, add tls.rejectUnauthorized=false (encrypted, not verified) or requireTLS=false&ignoreTLS=true (not encrypted) to SMTP_URL`
}
