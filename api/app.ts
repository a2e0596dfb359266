/**
 * The HTTP application: request ID, log, errors, then the route, which http/dispatch.ts runs. A method that a
 * path doesn't have returns 405 with Allow, before authentication.
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
import { countRejections } from './http/rejections.ts'
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

/** Closes the connection if a body was only read in part, or not at all before a 503. It can't be reused. */
const endUnread: Middleware = async (ctx, next) => {
  await next()
  const isRefused = ctx.req.readableDidRead || ctx.status === 503
  if (isRefused && !ctx.req.complete) ctx.set('Connection', 'close')
}

/** The scheme and host before the path, in requests for proxies. Like Host it is ignored, because it may be invalid. */
const ORIGIN = /^[a-z]+:\/\/[^/?]*\/?/i

/** Reduces the URL to its path. The parser of complete URLs throws for some of them, and finds no path in `http://`. */
const leaveOutOrigin: Middleware = (ctx, next) => {
  ctx.url = ctx.url.replace(ORIGIN, '/')
  return next()
}

/** A proxy in front of us may have used the other one (RFC 9112 §3.2). */
const rejectTwoHosts: Middleware = (ctx, next) => {
  if ((ctx.req.headersDistinct.host ?? []).length > 1) throw new RequestError('bad_request', TEXTS.twoHosts)
  return next()
}

// Generated IDs ascend with time, so the index on request IDs grows at its end.
const identify: Middleware = async (ctx, next) => {
  const given = ctx.get('X-Request-Id')
  ctx.state.id = REQUEST_ID.test(given) ? given : idNow()
  ctx.set('X-Request-Id', ctx.state.id)
  await next()
}

/** Returns the level: info for requests of clients and providers, warn for errors of ours, debug for the rest. */
const pickLevel = ({ status, path }: Pick<Context, 'status' | 'path'>): 'warn' | 'info' | 'debug' => {
  if (status >= 500) return 'warn'
  return path.startsWith('/v1') || path.startsWith('/hooks') ? 'info' : 'debug'
}

/** Logs a line for each request: its ID, its caller and its result, never a body or a credential. */
const logRequests =
  ({ log, metrics }: Deps): Middleware =>
  async (ctx, next) => {
    const started = performance.now()
    await next()
    const ms = Math.round(performance.now() - started)
    const level = pickLevel(ctx)
    // Unknown paths share one label, because their number is unlimited and one may contain an email address.
    const labels = { method: ctx.method, route: String(ctx.state.route ?? 'none'), status: ctx.status }
    metrics.observe('heliograph_http_request_seconds', labels, ms / 1_000)
    const { id: request_id, caller, trace } = ctx.state
    log[level]({ request_id, ...labels, ms, ...caller, ...trace }, 'request')
  }

const renderErrors =
  ({ log, metrics, rejections, clock }: Deps): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = toRequestError(error, ctx.state.id, log)
      countRejections(metrics, [refusal])
      const { caller, id: http_request_id } = ctx.state
      const call = { method: ctx.method, route: String(ctx.state.route ?? ''), http_request_id, now: clock() }
      if (caller) rejections.note(caller, call, refusal)
      send(ctx, errorResponse(refusal))
    }
  }

/** Returns the parameters of a path. Null if the path contains NUL or isn't percent-encoded UTF-8. */
const readParams = ({ path, params }: { path: string; params: Record<string, string> }): Params | null =>
  percentDecoded(path)?.includes('\0') === false ? params : null

/** Runs the route of a path. Rejects other methods of a known path. Unknown paths go to the next middleware. */
function serveRoutes(routes: readonly Route<Deps>[], deps: Deps, deadline: number | undefined) {
  const router = new Router({ sensitive: true, strict: true })
  // The first match wins, so literal paths come first: /v1/contacts/bulk isn't a contact (DECISIONS: Order of
  // checks).
  const { literal = [], open = [] } = Object.groupBy(routes, ({ path }) =>
    path.includes(':') ? 'open' : 'literal',
  )
  for (const those of [literal, open]) {
    for (const route of those)
      router.register(route.path, [route.method], (ctx) => {
        ctx.state.route = route.path
        return answer(ctx, { route, params: readParams(ctx) }, deps, deadline)
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

/** The dashboard. Loaded with its first page (13 MB), because most processes serve none. */
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

/** Creates the application. It keeps no state. @param deadline see http/dispatch.ts */
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
  // Koa only reports connection errors of clients that disconnected. All others were rendered above.
  app.on('error', (error) => deps.log.debug({ err: error }, 'connection error'))
  return app
}
