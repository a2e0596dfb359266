/**
 * Serves the dashboard: asset or page → session → origin and token → access → handler → HTML. Request IDs,
 * logging, body limits and error codes are shared with the API (app.ts, api/http/). It differs from the API's
 * dispatch.ts:
 * - Requests are authenticated by a session cookie, and forms by a token. The API expects credentials in each
 *   request.
 * - An error is a page, or the previous page with the submitted values.
 * - Requests have no deadline or per-team queue, because the dashboard has its own connections with a short
 *   statement timeout. Every response has the security headers. An internal error shows only the request's
 *   ID.
 */

import { join } from 'node:path'
import type { Context, Middleware } from 'koa'
import { createRecentLookups } from '../../../db/accounts/domains/recent-lookups.ts'
import { personOfSession } from '../../../db/accounts/members/sign-in.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { Owner } from '../../http/bodies.ts'
import { readQuery } from '../../http/forms.ts'
import { compileViews } from '../../http/views.ts'
import { type Assets, readAssets } from '../components/assets.ts'
import { BASE } from '../components/base.ts'
import type { Section, View } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import { buildTable } from './builders.ts'
import { asksFirst, outlivedView, questionPages } from './confirmation.ts'
import type { DashboardDeps, PageDeps, SharedDeps } from './deps.ts'
import { describeError, type Fault, faultView } from './errors.ts'
import { createFinder, type Finder, type Found, type OtherMethod } from './find.ts'
import { lostText } from './form.ts'
import { computeEtag, isFragmentWanted, sendFragment } from './fragment.ts'
import {
  findLinkBase,
  findServiceUrl,
  formToken,
  readClientIp,
  readCookie,
  safeHeaders,
  seal,
  unseal,
  writeCookie,
} from './guard.ts'
import { createLayout, type Frame, type Layout } from './layout.ts'
import { addressWith, LIST } from './list.ts'
import { type Page, type PageAnswer, type PageRequest, show } from './page.ts'
import { teamAround } from './team.ts'
import { answerVisit, nothingHere, readForm, type Visit } from './visit.ts'
import { linkAbove, ownersToAsk } from './ways-on.ts'

const NOTICE_SECONDS = 120

type Dashboard = { assets: Assets; finder: Finder; layout: Layout; deps: PageDeps }

function send(dashboard: Dashboard, visit: Visit, answer: PageAnswer): void {
  const { ctx, request } = visit
  const { home } = request
  if (answer.kind === 'redirect') {
    for (const cookie of answer.cookies) writeCookie(ctx, home, cookie)
    if (answer.notice) {
      const value = seal(dashboard.deps.secrets, 'notice-cookie', answer.notice)
      writeCookie(ctx, home, { name: 'notice', value, seconds: NOTICE_SECONDS })
    }
    // A page that was opened from a list keeps its link back after an action.
    const list = request.query.get(LIST)
    const isAbove = `${BASE}${request.path}`.startsWith(`${answer.to}/`) && !answer.to.includes('?')
    const kept = list !== null && isAbove ? `?${new URLSearchParams({ [LIST]: list })}` : ''
    ctx.status = 303
    ctx.set('Location', answer.to + kept)
    ctx.body = ''
  } else if (answer.kind === 'raw') {
    ctx.status = 200
    ctx.set(answer.headers)
    ctx.body = answer.body
  } else {
    sendPage(dashboard, visit, answer)
  }
}

type ShowAnswer = Extract<PageAnswer, { kind: 'show' }>

function sendPage(
  { assets, deps, layout }: Dashboard,
  { ctx, request, person, team }: Visit,
  { view, status }: ShowAnswer,
  notices: Pick<Frame, 'notice' | 'refused'> = { notice: null, refused: null },
): void {
  // A refresh by the script must not use up the notice for the next page.
  const left = request.byScript ? undefined : readCookie(ctx, request.home, 'notice')
  const notice = notices.notice ?? unseal<Frame['notice']>(deps.secrets, 'notice-cookie', left)
  if (left) writeCookie(ctx, request.home, { name: 'notice', value: null, seconds: 0 })
  const csrf = person ? formToken(deps.secrets, person.session_id) : ''
  const { refused } = notices
  const asked = request.path === '/find' ? (request.query.get('q') ?? '') : ''
  const list = request.query.get(LIST)
  const tag = person ? computeEtag(view, person, team, assets) : ''
  const frame = { path: request.path, person, team, csrf, notice, refused, asked, list, tag }
  if (person && status === 200 && isFragmentWanted(ctx)) {
    sendFragment(ctx, { tag, now: request.now }, () => layout(view, { ...frame, csrf: '' }))
    return
  }
  ctx.status = status
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = layout(view, frame)
}

const NO_LIST = 'Choose another value, or show all rows.'

/** Shows the error of a filter on its page, with a link to all rows. @returns false if it can't be shown there. */
async function showOnFilter(dashboard: Dashboard, visit: Visit, page: Page, fault: Fault): Promise<boolean> {
  const { request } = visit
  if (fault.status !== 400 || request.query.size === 0) return false
  const looked = { ...visit, request: { ...request, query: new URLSearchParams() } }
  const answer = await answerVisit(page, looked, dashboard.deps).catch(() => null)
  if (answer?.kind !== 'show') return false
  // The filter's links would lead to unfiltered pages.
  const sections = answer.view.sections.flatMap((section): Section[] =>
    section.kind === 'filter' ? [{ ...section, more: [] }] : section.kind === 'chips' ? [section] : [],
  )
  if (sections.length === 0) return false
  const start = { href: request.path, label: 'Clear the filter' }
  const view = {
    ...answer.view,
    actions: undefined,
    sections: [...sections, buildTable([], () => ({}), { empty: NO_LIST, start })],
    aside: undefined,
    below: undefined,
  }
  const refused = { action: request.path, form: request.query, error: fault.reason }
  const notice = { tone: 'bad', text: fault.words } as const
  sendPage(dashboard, looked, { ...answer, status: fault.status, view }, { notice, refused })
  return true
}

/** Shows an error on the page that contains the form. @returns false if it can't be shown there. */
async function showOnPage(
  dashboard: Dashboard,
  visit: Visit,
  page: Page | undefined,
  fault: Fault,
): Promise<boolean> {
  if (page?.method === 'GET') return showOnFilter(dashboard, visit, page, fault)
  const { request, person } = visit
  const found = person && visit.ctx.method === 'POST' ? dashboard.finder.above(request.path) : null
  if (!found || fault.status >= 500) return false
  const looked = { ...visit, request: { ...request, path: found.path, params: found.params } }
  const answer = await answerVisit(found.page, looked, dashboard.deps).catch(() => null)
  if (answer?.kind !== 'show') return false
  const notice = { tone: 'bad', text: fault.words } as const
  const refused = {
    action: addressWith(request, { [LIST]: undefined }),
    form: request.form,
    error: fault.reason,
  }
  const view = { ...answer.view, sections: [...lostText(answer.view, refused), ...answer.view.sections] }
  sendPage(dashboard, looked, { ...answer, view, status: fault.status }, { notice, refused })
  return true
}

/** Returns the path of the page that contains a form, with its filter. */
const pageAbove = ({ finder }: Pick<Dashboard, 'finder'>, path: string, query: URLSearchParams): string => {
  const above = finder.above(path)
  return above ? addressWith({ path: above.path, query }, {}) : ''
}

/** Returns the page, with a handler that shows its question first. The required access doesn't change. */
function askingPage(dashboard: Dashboard, page: Page, request: PageRequest, isOutlived: boolean): Page {
  const above = (path: string, query: URLSearchParams) => pageAbove(dashboard, path, query)
  if (page.asks && request.form.get('confirmed') !== 'yes')
    return { ...page, handle: asksFirst(page, above) } as Page
  if (!isOutlived) return page
  return { ...page, handle: async () => show(outlivedView(request, above(request.path, request.query))) }
}

/** Returns the owner whose body limits apply: the user, or one for all who aren't signed in. */
const toOwner = ({ person }: Visit): Owner => ({
  name: person ? `dashboard:${person.user_id}` : 'dashboard',
  isAuthenticated: person !== null,
})

async function viewOf(
  fault: Fault,
  { request: { path }, person, team }: Visit,
  page: Page | undefined,
  { deps, finder }: Dashboard,
): Promise<View> {
  const visited = { path, person, team }
  const help = fault.status === 403 ? await ownersToAsk(visited, page, deps).catch(() => '') : ''
  return faultView(fault, help, linkAbove(visited, finder))
}

async function serve(dashboard: Dashboard, visit: Visit, found: Found | OtherMethod | null): Promise<void> {
  const { ctx, request } = visit
  const { deps } = dashboard
  try {
    const session = readCookie(ctx, request.home, 'session')
    visit.person = session ? await personOfSession(deps.database, session, request.now) : null
    request.query = readQuery(ctx.querystring)
    visit.team = visit.person && (await teamAround(visit.person, request, deps))
    if (found === null) throw nothingHere()
    if (!('page' in found)) {
      ctx.set('Allow', found.allowed.join(', '))
      throw new RequestError(
        'method_not_allowed',
        fill(TEXTS.allowedMethods, { methods: found.allowed.join(', ') }),
      )
    }
    if ([...request.query].flat().some((text) => text.includes('\0')))
      throw new RequestError('bad_request', TEXTS.nulInAddress)
    await deps.bodies.during(toOwner(visit), ctx.req, async (body) => {
      const isOutlived = ctx.method === 'POST' && (await readForm(found.page, visit, deps, body))
      send(
        dashboard,
        visit,
        await answerVisit(askingPage(dashboard, found.page, request, isOutlived), visit, deps),
      )
    })
  } catch (error) {
    const fault = describeError(error, ctx.state.id, deps.log)
    const page = found && 'page' in found ? found.page : undefined
    if (await showOnPage(dashboard, visit, page, fault)) return
    if (fault.retry_after !== undefined) ctx.set('Retry-After', String(fault.retry_after))
    const view = await viewOf(fault, visit, page, dashboard)
    const lost = visit.person ? lostText(view, { action: '', form: request.form }) : []
    const sections = [...view.sections, ...lost]
    sendPage(dashboard, visit, { kind: 'show', view: { ...view, sections }, status: fault.status })
  }
}

function sendAsset(ctx: Context, { byPath }: Assets, path: string): boolean {
  const asset = ctx.method === 'GET' ? byPath.get(path) : undefined
  if (!asset) return false
  ctx.status = 200
  ctx.set({ 'Content-Type': asset.type, 'Cache-Control': 'public, max-age=31536000, immutable' })
  ctx.body = asset.bytes
  return true
}

export function serveDashboard(pages: readonly Page[], deps: SharedDeps, own: DashboardDeps): Middleware {
  const assets = readAssets()
  const layout = createLayout(compileViews(join(import.meta.dirname, '../components/views')), assets)
  const app: Dashboard = {
    assets,
    layout,
    finder: createFinder([...pages, ...questionPages(pages, (path, query) => pageAbove(app, path, query))]),
    deps: { ...deps, ...own, primary: own.database, recent: createRecentLookups(own, deps.clock) },
  }
  return async (ctx) => {
    const path = ctx.path.slice(BASE.length).replace(/\/$/, '')
    const home = findServiceUrl(ctx, own.publicUrl)
    ctx.set(safeHeaders(home))
    if (sendAsset(ctx, assets, path)) return
    const found = app.finder.page(ctx.method, path)
    const known = found && 'page' in found ? found : null
    ctx.state.route = known ? BASE + known.page.path : `${BASE}/…`
    const request: PageRequest = {
      path,
      params: known ? known.params : {},
      query: new URLSearchParams(),
      form: new URLSearchParams(),
      origin: readClientIp(ctx),
      userAgent: ctx.get('User-Agent'),
      byScript: ctx.get('Sec-Fetch-Dest') === 'empty',
      home,
      site: findLinkBase(ctx, own.publicUrl),
      cookies: (name) => readCookie(ctx, home, name),
      now: deps.clock(),
    }
    await serve(app, { ctx, request, person: null, team: null }, found)
  }
}
