/**
 * Keeps the dashboard's browser safe: cookies, tokens of forms, headers, where one may go on to. Who may see a page is
 * decided in dispatch.ts.
 * Promises: a session's secret is in one HttpOnly cookie that no script, other site or plain connection gets; a form
 * counts only with its session's token and from our own pages; it never redirects to another site.
 */

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
/** Where a proxy of ours would call from: loopback and private addresses. */
const NEAR = /^(::ffff:)?(127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.)|^::1$|^f[cd]/i

/** The service as the browser knows it. */
export function homeOf({ host }: Pick<Context, 'host'>, publicUrl: string | null): URL {
  const asked = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : new URL('http://localhost')
  const local = LOOPBACK_HOST.test(host) && !publicUrl?.startsWith('https:')
  return publicUrl === null || local ? asked : new URL(publicUrl)
}

/**
 * Where links to the service lead: PUBLIC_URL, else this machine and the port listened on. Never what the request calls
 * us: an attacker could have a link mailed that leads to a host of their own.
 */
export const siteOf = ({ req }: Pick<Context, 'req'>, publicUrl: string | null): URL =>
  new URL(publicUrl ?? `http://localhost:${req.socket.localPort ?? 0}`)

/** Whether cookies are marked for encrypted connections alone: always, but for plain http on this very machine. */
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

/** The address that a request came from: the last that a proxy near us wrote down, else the connection's own. */
export function originOf(ctx: Context): string {
  const peer = ctx.req.socket.remoteAddress ?? ''
  const forwarded = ctx.get('X-Forwarded-For').split(',').at(-1)?.trim()
  return NEAR.test(peer) && forwarded ? forwarded.slice(0, 64) : peer
}

/** Whether a form was sent from a page of ours: the browser's own word, else its Origin. */
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

/** What is sealed: values of cookies and what a question is about. Each has a purpose of its own. */
type Sealed = Extract<SecretPurpose, 'notice-cookie' | 'openid-cookie' | 'question'>

/** Seals a value, for a browser to bring back unread and unchanged. */
export const seal = (secrets: Secrets, purpose: Sealed, value: unknown): string =>
  secrets.encrypt(purpose, Buffer.from(JSON.stringify(value))).toString('base64url')

/** Opens what `seal` made for this purpose. @returns null for anything else. */
export function unseal<T>(secrets: Secrets, purpose: Sealed, sealed: string | undefined): T | null {
  if (!sealed) return null
  try {
    return JSON.parse(secrets.decrypt(purpose, Buffer.from(sealed, 'base64url')).toString()) as T
  } catch {
    return null
  }
}

/** A path of the dashboard to go on to, after /dashboard; '' for anything else. */
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

/** What every answer of the dashboard carries. */
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
 * A stranger's HTML with an end of ours: a link that is pressed leads nowhere, and shows its target below while it is
 * pointed at. At the end, so that its doctype stays in front.
 */
export const framed = (html: string): string =>
  `${html}\n<base target="_blank"><style>a[href]:is(:hover,:focus)::after{content:attr(href);position:fixed;left:0;` +
  `bottom:0;z-index:99999;padding:4px 8px;background:#1b1f23;color:#fff;font:12px/1.4 sans-serif}</style>`

/** For a stranger's HTML in a frame of ours: no script, form or link, and no pictures from elsewhere unless asked. */
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
