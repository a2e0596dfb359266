/** Browser security of the dashboard: cookies, form tokens, security headers and redirect targets. */

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Context } from 'koa'
import type { SecretPurpose, Secrets } from '../../../db/process/secrets.ts'
import { BASE } from '../components/base.ts'
import type { Cookie, CookieName } from './page.ts'

const NAMES: Record<CookieName, string> = {
  session: 'heliograph',
  notice: 'heliograph-notice',
  openid: 'heliograph-openid',
  zone: 'heliograph-zone',
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i
/** Loopback and private addresses, from which a reverse proxy connects. */
const NEAR = /^(::ffff:)?(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)|^::1$|^f[cd]/i

/**
 * Returns the URL of the service as the browser sees it. The Host header defines it without PUBLIC_URL, and
 * on loopback unless PUBLIC_URL is https.
 */
export function findServiceUrl({ host }: Pick<Context, 'host'>, publicUrl: string | null): URL {
  const asked = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : new URL('http://localhost')
  const local = LOOPBACK_HOST.test(host) && !publicUrl?.startsWith('https:')
  return publicUrl === null || local ? asked : new URL(publicUrl)
}

/**
 * Returns the base of links to the service: PUBLIC_URL, otherwise localhost with our port. Never uses the
 * Host header, because an attacker could set it and have us email a link to their own host.
 */
export const findLinkBase = ({ req }: Pick<Context, 'req'>, publicUrl: string | null): URL =>
  new URL(publicUrl ?? `http://localhost:${req.socket.localPort ?? 0}`)

/** True if cookies are Secure, which they always are except with plain HTTP on loopback. */
const isSecure = (home: URL): boolean => home.protocol === 'https:' || !LOOPBACK_HOST.test(home.host)

const cookieName = (name: CookieName, home: URL): string => `${isSecure(home) ? '__Host-' : ''}${NAMES[name]}`

export const readCookie = (ctx: Context, home: URL, name: CookieName): string | undefined =>
  ctx.cookies.get(cookieName(name, home))

export function writeCookie(ctx: Context, home: URL, { name, value, seconds }: Cookie): void {
  const age = value === null ? '; Max-Age=0' : seconds === null ? '' : `; Max-Age=${seconds}`
  const secure = isSecure(home) ? '; Secure' : ''
  ctx.append(
    'Set-Cookie',
    `${cookieName(name, home)}=${value ?? ''}; Path=/; HttpOnly; SameSite=Lax${secure}${age}`,
  )
}

/** Returns the client's IP address. X-Forwarded-For only counts from a private address, and only its last entry. */
export function readClientIp(ctx: Context): string {
  const peer = ctx.req.socket.remoteAddress ?? ''
  const forwarded = ctx.get('X-Forwarded-For').split(',').at(-1)?.trim()
  return NEAR.test(peer) && forwarded ? forwarded.slice(0, 64) : peer
}

/** True if a form was sent from our own page, according to Sec-Fetch-Site or, without it, Origin. */
export function isOurs(ctx: Context, home: URL): boolean {
  const site = ctx.get('Sec-Fetch-Site')
  if (site !== '') return site === 'same-origin'
  const origin = ctx.get('Origin')
  return URL.canParse(origin) && (origin === home.origin || new URL(origin).host === ctx.host)
}

export const formToken = (secrets: Secrets, sessionId: string): string =>
  secrets.sign('csrf', Buffer.from(sessionId), 32).toString('base64url')

export const isFormToken = (secrets: Secrets, sessionId: string, token: string | null): boolean =>
  secrets.verify('csrf', Buffer.from(sessionId), Buffer.from(token ?? '', 'base64url').subarray(0, 32)) &&
  (token ?? '').length === 43

/** The purposes of encrypted values: cookies and the forms of questions. */
type SealedPurpose = Extract<SecretPurpose, 'notice-cookie' | 'openid-cookie' | 'question'>

/** The form of a question is compressed, because it is in a URL. */
const isPacked = (purpose: SealedPurpose): boolean => purpose === 'question'

/** Encrypts and authenticates a value that the browser sends back. */
export const seal = (secrets: Secrets, purpose: SealedPurpose, value: unknown): string => {
  const plain = Buffer.from(JSON.stringify(value))
  const packed = isPacked(purpose) ? deflateRawSync(plain, { level: 9 }) : plain
  return secrets.encrypt(purpose, packed).toString('base64url')
}

/** Decrypts a value of `seal`. @returns null if it is invalid or was encrypted for another purpose. */
export function unseal<T>(secrets: Secrets, purpose: SealedPurpose, sealed: string | undefined): T | null {
  if (!sealed) return null
  try {
    const packed = secrets.decrypt(purpose, Buffer.from(sealed, 'base64url'))
    return JSON.parse((isPacked(purpose) ? inflateRawSync(packed) : packed).toString()) as T
  } catch {
    return null
  }
}

/** Returns a local redirect target as a path after /dashboard, or '' for any other URL. */
export function localPath(given: string | null | undefined): string {
  const home = 'http://dashboard.invalid'
  if (!given?.startsWith('/') || !URL.canParse(given, home)) return ''
  const { origin, pathname, search } = new URL(given, home)
  const inside = pathname === BASE || pathname.startsWith(`${BASE}/`)
  return origin === home && inside ? pathname.slice(BASE.length) + search : ''
}

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

export const safeHeaders = (home: URL): Record<string, string> => ({
  'Content-Security-Policy': CSP,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex',
  ...(home.protocol === 'https:' ? { 'Strict-Transport-Security': 'max-age=31536000' } : {}),
})

/**
 * Makes links of untrusted HTML open nowhere when clicked and show their target on hover or focus. The
 * addition is at the end, so that the doctype stays first.
 */
export const framed = (html: string): string =>
  `${html}\n<base target="_blank"><style>a[href]:is(:hover,:focus)::after{content:attr(href);position:fixed;left:0;` +
  `bottom:0;z-index:99999;padding:4px 8px;background:#1b1f23;color:#fff;font:12px/1.4 sans-serif}</style>`

/** Returns headers for untrusted HTML in a frame, without scripts, forms and links. @param pictures remote images. */
export const frameHeaders = (pictures: boolean): Record<string, string> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    'sandbox',
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    `img-src data:${pictures ? ' https: http:' : ''}`,
    "frame-ancestors 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; '),
  'X-Frame-Options': 'SAMEORIGIN',
})
