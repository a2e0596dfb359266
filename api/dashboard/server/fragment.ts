/**
 * Responds to a live tab that refreshes its page: 304 if nothing has changed, otherwise the main part of the
 * page, compressed. It has no forms and no token, because an attacker who sees the size of compressed
 * responses could guess a token next to text of their choice (BREACH). Placeholders show the script where its
 * forms belong.
 */
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Context } from 'koa'
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import type { Assets } from '../components/assets.ts'
import type { View } from '../components/section.ts'
import type { PageTeam } from './page.ts'

/** The media type that the script accepts (assets/dashboard.js). */
const TYPE = 'application/vnd.heliograph.fragment'

/** Drops ages. The script updates them itself, so a page with only new ages hasn't changed. */
const withoutAges = (key: string, value: unknown): unknown =>
  key === 'age' || (key === 'short' && /^just now$|^in | ago$/.test(String(value))) ? undefined : value

/** Returns the ETag of a page for this user. It ignores notices. */
export function computeEtag(view: View, person: Person, team: PageTeam | null, { paths }: Assets): string {
  const shown = JSON.stringify([view, person.operator, team, paths], withoutAges)
  return createHash('sha256').update(shown).digest('base64url').slice(0, 22)
}

export const isFragmentWanted = (ctx: Context): boolean => ctx.get('Accept') === TYPE

const TOKEN = /<input type="hidden" name="csrf" value="">/g

/** Sends the main part of a page, or 304. Ages refer to the Date header. @param draw renders it without a token */
export function sendFragment(
  ctx: Context,
  { tag, now }: { tag: string; now: Date },
  draw: () => string,
): void {
  const etag = `"${tag}"`
  ctx.set({ ETag: etag, Date: now.toUTCString() })
  if (ctx.get('If-None-Match') === etag) {
    ctx.status = 304
    return
  }
  const page = draw()
  const title = page.slice(page.indexOf('<title>'), page.indexOf('</title>'))
  const main = page.slice(page.indexOf('<main'), page.indexOf('</main>'))
  const html = `${title}</title>${main}</main>`
    .replace(TOKEN, '<live-token>')
    .replace(/(<\/?)form\b/g, '$1live-form')
  ctx.status = 200
  ctx.type = 'text/html; charset=utf-8'
  const isCompressed = ctx.acceptsEncodings('gzip', 'identity') === 'gzip'
  if (isCompressed) ctx.set('Content-Encoding', 'gzip')
  ctx.body = isCompressed ? gzipSync(html) : html
}
