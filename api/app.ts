/**
 * The HTTP application: request id and log, then errors, then the route; http/dispatch.ts does the rest.
 * Promises: any method that a path lacks is 405 with Allow, before authentication. Tests start here.
 */

import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { RequestError } from '../db/errors.ts'
import { fill } from '../db/fill.ts'
import { idNow } from '../db/process/ids.ts'
import { percentDecoded } from '../db/validation/strings.ts'
import { BASE } from './dashboard/components/base.ts'
import type { DashboardDeps } from './dashboard/server/deps.ts'
import type { Deps } from './deps.ts'
import { docsRoutes } from './docs/routes.ts'
import { HOOKS } from './hooks/list.ts'
import { answer, send } from './http/dispatch.ts'
import { errorResponse, toRequestError } from './http/errors.ts'
import { countRejections } from './http/refusals.ts'
import { allowedMethods, type Params, type Route } from './http/route.ts'
import { TEXTS } from './http/texts.ts'
import { opsRoutes } from './operations/routes.ts'
import { unsubscribeRoutes } from './public/unsubscribe-page.ts'
import { V1_ROUTES } from './v1/routes.ts'

export const ROUTES: readonly Route<Deps>[] = [
  ...opsRoutes,
  ...HOOKS.flatMap(({ routes }): readonly Route<Deps>[] => routes),
  ...V1_ROUTES,
  ...docsRoutes,
  ...unsubscribeRoutes,
]

const REQUEST_ID = /^[\w.-]{1,64}$/

/** A body whose rest nobody has read leaves nothing to be read after it: the connection can't be used again. */
const endUnread: Middleware = async (ctx, next) => {
  await next()
  const isRefused = ctx.req.readableDidRead || ctx.status === 503
  if (isRefused && !ctx.req.complete) ctx.set('Connection', 'close')
}

/** What stands before the path in the form for proxies. Like Host it is not looked at: it may be no host at all. */
const ORIGIN = /^[a-z]+:\/\/[^/?]*\/?/i

/** Every request names a path: the whole URL would be read by a parser that throws, or finds none in `http://`. */
const leaveOutOrigin: Middleware = (ctx, next) => {
  ctx.url = ctx.url.replace(ORIGIN, '/')
  return next()
}

/** A proxy in front may have read the other one (RFC 9112 §3.2). */
const rejectTwoHosts: Middleware = (ctx, next) => {
  if ((ctx.req.headersDistinct.host ?? []).length > 1) throw new RequestError('bad_request', TEXTS.twoHosts)
  return next()
}

// An id of ours ascends with time, as its messages do: the index on requests' ids grows at its end.
const identify: Middleware = async (ctx, next) => {
  const given = ctx.get('X-Request-Id')
  ctx.state.id = REQUEST_ID.test(given) ? given : idNow()
  ctx.set('X-Request-Id', ctx.state.id)
  await next()
}

/** What a client or a provider sends is logged at info, any failure of ours at warn. */
const levelOf = ({ status, path }: Pick<Context, 'status' | 'path'>): 'warn' | 'info' | 'debug' => {
  if (status >= 500) return 'warn'
  return path.startsWith('/v1') || path.startsWith('/hooks') ? 'info' : 'debug'
}

/** One line a request: its id, whose it was, what became of it; never a body, never a credential. */
const logRequests =
  ({ log, metrics }: Deps): Middleware =>
  async (ctx, next) => {
    const started = performance.now()
    await next()
    const ms = Math.round(performance.now() - started)
    const level = levelOf(ctx)
    // Unknown paths share one label: there are endlessly many, and one may hold an address.
    const labels = { method: ctx.method, route: String(ctx.state.route ?? 'none'), status: ctx.status }
    metrics.observe('heliograph_http_request_seconds', labels, ms / 1_000)
    const { id: request_id, caller, trace } = ctx.state
    log[level]({ request_id, ...labels, ms, ...caller, ...trace }, 'request')
  }

const renderErrors =
  ({ log, metrics, refusals, clock }: Deps): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = toRequestError(error, ctx.state.id, log)
      countRejections(metrics, [refusal])
      const { caller, id: http_request_id } = ctx.state
      const call = { method: ctx.method, route: String(ctx.state.route ?? ''), http_request_id, now: clock() }
      if (caller) refusals.note(caller, call, refusal)
      send(ctx, errorResponse(refusal))
    }
  }

/**
 * The parameters of a path; null when it is no percent-encoded UTF-8, or has a NUL character: the router leaves what it
 * cannot decode as it is.
 */
const paramsOf = ({ path, params }: { path: string; params: Record<string, string> }): Params | null =>
  percentDecoded(path)?.includes('\0') === false ? params : null

/** Has the path's route answer, and refuses a known path with another method; an unknown one goes on. */
function serveRoutes(routes: readonly Route<Deps>[], deps: Deps, deadline: number | undefined) {
  const router = new Router({ sensitive: true, strict: true })
  // The first that fits answers. A literal path is known by itself: /v1/contacts/bulk is no contact's (DECISIONS: Order
  // of checks).
  const { literal = [], open = [] } = Object.groupBy(routes, ({ path }) =>
    path.includes(':') ? 'open' : 'literal',
  )
  for (const those of [literal, open]) {
    for (const route of those)
      router.register(route.path, [route.method], (ctx) => {
        ctx.state.route = route.path
        return answer(ctx, { route, params: paramsOf(ctx) }, deps, deadline)
      })
    for (const [path, own = []] of Object.entries(Object.groupBy(those, (each) => each.path))) {
      const allowed = own.flatMap(({ method }) => allowedMethods(method)).join(', ')
      router.all(path, (ctx) => {
        ctx.set('Allow', allowed)
        throw new RequestError('method_not_allowed', fill(TEXTS.allowedMethods, { methods: allowed }))
      })
    }
  }
  return router.routes()
}

const refuseUnknown: Middleware = () => {
  throw new RequestError('not_found', TEXTS.noEndpoint)
}

/** The dashboard, loaded with its first page (13 MB): most processes serve none. */
function dashboard(deps: Deps, own: DashboardDeps): Middleware {
  let loaded: Promise<Middleware> | null = null
  const load = async (): Promise<Middleware> => {
    const { serveDashboard } = await import('./dashboard/server/dispatch.ts')
    const { PAGES } = await import('./dashboard/routes.ts')
    return serveDashboard(PAGES, deps, own)
  }
  return async (ctx, next) => {
    if (ctx.path !== BASE && !ctx.path.startsWith(`${BASE}/`)) return next()
    loaded ??= load()
    return (await loaded)(ctx, next)
  }
}

/** Makes the application over its dependencies. Holds no state of its own. @param deadline as in http/dispatch.ts. */
export function createApp(deps: Deps, routes: readonly Route<Deps>[] = ROUTES, deadline?: number): Koa {
  const app = new Koa()
  app.use(leaveOutOrigin)
  app.use(endUnread)
  app.use(identify)
  app.use(logRequests(deps))
  app.use(renderErrors(deps))
  app.use(rejectTwoHosts)
  if (deps.dashboard) app.use(dashboard(deps, deps.dashboard))
  app.use(serveRoutes(routes, deps, deadline))
  app.use(refuseUnknown)
  // Koa's own reports are connection errors of clients that went away; everything else was rendered above.
  app.on('error', (error) => deps.log.debug({ err: error }, 'connection error'))
  return app
}
