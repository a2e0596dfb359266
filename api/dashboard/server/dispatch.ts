/**
 * From a page of the dashboard to its answer: asset or page → session → origin and token → rights → handler → HTML.
 * Request ids, the log, matching, bounds of bodies and the names of faults are those of all requests (app.ts,
 * api/http/); what is apart from the API's dispatch.ts, and why:
 * - who asks comes by a cookie and acts by a form with a token, not by a credential in each request;
 * - a fault is a page, or the page before with what was typed: only here it is known which;
 * - neither deadline nor turns of a team: the dashboard has connections of its own, with short statements.
 * Promises: only those whom its access names get a page. A POST counts only from our own pages, and its form within
 * the process's bounds for bodies, a person's own. Every answer carries the security headers. A fault of ours is a page
 * too, and shows nothing but the request's id.
 */

import type { Context, Middleware } from 'koa'
import { type Role, reaches } from '../../../db/accounts/members/roles.ts'
import { noteUse, type Person, personOfSession } from '../../../db/accounts/members/sign-in.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { Body, Owner } from '../../http/bodies.ts'
import { readQuery } from '../../http/forms.ts'
import { type Assets, readAssets } from '../components/assets.ts'
import { BASE } from '../components/base.ts'
import { compileViews } from '../components/views.ts'
import { TEXTS } from '../texts.ts'
import {
  asksFirst,
  endedError,
  endedView,
  isWorthKeeping,
  KEPT,
  outlivedView,
  questionPages,
} from './confirmation.ts'
import type { DashboardDeps, PageDeps, SharedDeps } from './deps.ts'
import { type Fault, faultOf, faultView } from './errors.ts'
import { createFinder, type Finder, type Found, type OtherMethod } from './find.ts'
import { lostText } from './form.ts'
import { isFragmentWanted, sendFragment, tagOf } from './fragment.ts'
import {
  formToken,
  homeOf,
  isFormToken,
  isOurs,
  originOf,
  readCookie,
  safeHeaders,
  seal,
  siteOf,
  unseal,
  writeCookie,
} from './guard.ts'
import { createLayout, type Frame, type Layout } from './layout.ts'
import { addressWith, LIST } from './list.ts'
import { type Page, type PageAnswer, type PageRequest, type PageTeam, redirect, show } from './page.ts'
import { isFrozen } from './read-only.ts'
import { teamAround } from './team.ts'

/**
 * What a form may send, in bytes: where nobody has signed in, and to a page that says nothing else. The properties of a
 * contact take the most, percent-encoded.
 */
const MAX_OPEN_FORM_BYTES = 16 * 1024
const MAX_FORM_BYTES = 2 * 1024 * 1024
const NOTICE_SECONDS = 120

type Dashboard = { assets: Assets; finder: Finder; layout: Layout; deps: PageDeps }

/** One request on its way: who asks, and in which team. */
type Visit = {
  ctx: Context
  request: PageRequest
  person: Person | null
  /** The team that the page stands in (team.ts): of a page of a team, that of its path where it is the person's. */
  team: PageTeam | null
}

const nothingHere = () => new RequestError('not_found', TEXTS.noPage)

const roleError = ({ sees }: PageTeam, needed: Role): RequestError =>
  new RequestError(
    'insufficient_scope',
    reaches(sees, needed) ? TEXTS.suspended : fill(TEXTS.roleNeeded, { needed, role: sees }),
  )

/** Does what may lag on the replica; after a change of the person's own, which left a notice, the primary is read. */
const reading = (
  page: Page,
  { request }: Visit,
  deps: PageDeps,
  read: (deps: PageDeps) => Promise<PageAnswer>,
) =>
  page.fromReplica && page.method === 'GET' && request.cookies('notice') === undefined
    ? deps.replica.read(deps.database, (database) => read({ ...deps, database }))
    : read(deps)

/** Runs a page's handler if the caller may open it. @throws RequestError. */
async function answerOf(page: Page, visit: Visit, deps: PageDeps): Promise<PageAnswer> {
  const { request, person, team } = visit
  if (page.access === 'open') return page.handle({ ...request, person }, deps)
  if (!person) {
    if (isWorthKeeping(request)) return show(endedView(request), 403)
    const search = new URLSearchParams({ return_to: BASE + addressWith(request, {}) })
    return redirect(page.method === 'GET' ? `/login?${search}` : '/login')
  }
  if (page.access === 'person') return page.handle({ ...request, person, around: team }, deps)
  if (page.access === 'operator') {
    if (!person.operator) throw nothingHere()
    return reading(page, visit, deps, (near) => page.handle({ ...request, person }, near))
  }
  if (team?.id !== request.params.team?.toLowerCase() || !team) throw nothingHere()
  const membership = person.memberships.find(({ team_id }) => team_id === team.id)
  if (membership) await noteUse({ tx: deps.database, now: request.now }, person, membership)
  const changes = page.method !== 'GET' || page.isQuestion === true
  const role = changes ? team.role : team.sees
  const frozen = changes && isFrozen(team, person)
  if (frozen || !reaches(role, page.access)) throw roleError(team, page.access)
  return reading(page, visit, deps, (near) => page.handle({ ...request, person, team }, near))
}

/** How large the form of a visit may be: without a session nobody sends much. */
const limitOf = (page: Page, { person }: Visit): number =>
  page.access === 'open' || !person ? MAX_OPEN_FORM_BYTES : (page.takes ?? MAX_FORM_BYTES)

/**
 * Reads what a form sent into the request, and proves that it comes from a page of ours and of this session.
 * @returns whether it outlived its session.
 * @throws RequestError: what was typed is in the request then, unless it came from elsewhere or could not be read.
 */
async function readForm(page: Page, visit: Visit, { secrets }: PageDeps, body: Body): Promise<boolean> {
  const { ctx, request, person } = visit
  const foreign = () => new RequestError('insufficient_scope', TEXTS.foreignForm)
  if (!isOurs(ctx, request.home)) throw foreign()
  const form = await body.form(limitOf(page, visit)).catch((error) => {
    throw page.access !== 'open' && !person ? endedError(error) : error
  })
  request.form = form
  const isOutlived = person !== null && !isFormToken(secrets, person.session_id, form.get('csrf'))
  // A form that outlived its session is asked about, with a token of this one.
  if (isOutlived && !form.has(KEPT)) throw foreign()
  if (isOutlived) form.delete('confirmed')
  for (const value of form.values()) {
    if (value.includes('\0')) throw new RequestError('bad_request', TEXTS.nulInText)
  }
  return isOutlived
}

function send(dashboard: Dashboard, visit: Visit, answer: PageAnswer): void {
  const { ctx, request } = visit
  const { home } = request
  if (answer.kind === 'redirect') {
    for (const cookie of answer.cookies) writeCookie(ctx, home, cookie)
    if (answer.notice) {
      const value = seal(dashboard.deps.secrets, 'notice-cookie', answer.notice)
      writeCookie(ctx, home, { name: 'notice', value, seconds: NOTICE_SECONDS })
    }
    // A page that was opened from a list still knows it once something was done there.
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

type Shown = Extract<PageAnswer, { kind: 'show' }>

function sendPage(
  { assets, deps, layout }: Dashboard,
  { ctx, request, person, team }: Visit,
  { view, status }: Shown,
  notices: Pick<Frame, 'notice' | 'refused'> = { notice: null, refused: null },
): void {
  // A live page that asks for itself leaves the notice to the page that the reader is on the way to.
  const isLookedAt = ctx.get('Sec-Fetch-Dest') !== 'empty'
  const left = isLookedAt ? readCookie(ctx, request.home, 'notice') : undefined
  const notice = notices.notice ?? unseal<Frame['notice']>(deps.secrets, 'notice-cookie', left)
  if (left) writeCookie(ctx, request.home, { name: 'notice', value: null, seconds: 0 })
  const csrf = person ? formToken(deps.secrets, person.session_id) : ''
  const { refused } = notices
  const asked = request.path === '/find' ? (request.query.get('q') ?? '') : ''
  const list = request.query.get(LIST)
  const tag = person ? tagOf(view, person, team, assets) : ''
  const frame = { path: request.path, person, team, csrf, notice, refused, asked, list, tag }
  if (person && status === 200 && isFragmentWanted(ctx)) {
    sendFragment(ctx, { tag, now: request.now }, () => layout(view, { ...frame, csrf: '' }))
    return
  }
  ctx.status = status
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = layout(view, frame)
}

/** A filter's fault, shown on the list's page above the filter as it was typed. The list itself is left out. */
async function showOnFilter(dashboard: Dashboard, visit: Visit, page: Page, fault: Fault): Promise<boolean> {
  const { request } = visit
  if (fault.status !== 400 || request.query.size === 0) return false
  const looked = { ...visit, request: { ...request, query: new URLSearchParams() } }
  const answer = await answerOf(page, looked, dashboard.deps).catch(() => null)
  if (answer?.kind !== 'show') return false
  // What the filter's links lead to would not be filtered.
  const sections = answer.view.sections.flatMap((section) =>
    section.kind === 'filter' ? [{ ...section, more: [] }] : [],
  )
  if (sections.length === 0) return false
  const shown = { ...answer, status: fault.status, view: { ...answer.view, actions: undefined, sections } }
  const refused = { action: request.path, form: request.query, error: fault.reason }
  sendPage(dashboard, looked, shown, { notice: { tone: 'bad', text: fault.words }, refused })
  return true
}

/** A fault, shown on the page that has the form; false when there is none, or it cannot be shown. */
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
  const answer = await answerOf(found.page, looked, dashboard.deps).catch(() => null)
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

/** The page that a form is on, with the filter that it was sent from. */
const pageAbove = ({ finder }: Pick<Dashboard, 'finder'>, path: string, query: URLSearchParams): string => {
  const above = finder.above(path)
  return above ? addressWith({ path: above.path, query }, {}) : ''
}

/** The page that answers a request: one that is asked about first does, unless the answer is there. Rights stay. */
function askingPage(dashboard: Dashboard, page: Page, request: PageRequest, isOutlived: boolean): Page {
  const above = (path: string, query: URLSearchParams) => pageAbove(dashboard, path, query)
  if (page.asks && request.form.get('confirmed') !== 'yes')
    return { ...page, handle: asksFirst(page, above) } as Page
  if (!isOutlived) return page
  return { ...page, handle: async () => show(outlivedView(request, above(request.path, request.query))) }
}

/** Whose forms count together: a person's own; those of all who have not signed in. */
const ownerOf = ({ person }: Visit): Owner => ({
  name: person ? `dashboard:${person.user_id}` : 'dashboard',
  isProved: person !== null,
})

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
    await deps.bodies.during(ownerOf(visit), ctx.req, async (body) => {
      const isOutlived = ctx.method === 'POST' && (await readForm(found.page, visit, deps, body))
      send(
        dashboard,
        visit,
        await answerOf(askingPage(dashboard, found.page, request, isOutlived), visit, deps),
      )
    })
  } catch (error) {
    const fault = faultOf(error, ctx.state.id, deps.log)
    const page = found && 'page' in found ? found.page : undefined
    if (await showOnPage(dashboard, visit, page, fault)) return
    if (fault.retry_after !== undefined) ctx.set('Retry-After', String(fault.retry_after))
    const view = faultView(fault)
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
  const layout = createLayout(compileViews(), assets)
  const app: Dashboard = {
    assets,
    layout,
    finder: createFinder([...pages, ...questionPages(pages, (path, query) => pageAbove(app, path, query))]),
    deps: { ...deps, ...own, primary: own.database },
  }
  return async (ctx) => {
    const path = ctx.path.slice(BASE.length).replace(/\/$/, '')
    const home = homeOf(ctx, own.publicUrl)
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
      origin: originOf(ctx),
      userAgent: ctx.get('User-Agent'),
      home,
      site: siteOf(ctx, own.publicUrl),
      cookies: (name) => readCookie(ctx, home, name),
      now: deps.clock(),
    }
    await serve(app, { ctx, request, person: null, team: null }, found)
  }
}
