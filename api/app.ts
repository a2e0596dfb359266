/**
 * The HTTP application: request id and log, then errors, then route, authentication, scope, and the handler.
 * Promises: a caller without rights learns nothing about its body (decisions: order of checks); any method that a
 * path lacks is 405 with Allow. Tests start here.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { Refusal } from '../db/errors.ts'
import type { Database } from '../db/postgres/pool.ts'
import { authenticate, authorize } from './auth.ts'
import { dashboard } from './dashboard/dispatch.ts'
import { type Answer, renderError } from './errors.ts'
import { sesHookRoutes } from './hooks/ses.ts'
import { smtpHookRoutes } from './hooks/smtp.ts'
import { whatsappHookRoutes } from './hooks/whatsapp.ts'
import { opsRoutes } from './ops.ts'
import type { Deps, Request, Route } from './route.ts'
import { unsubscribeRoutes } from './unsubscribe-page.ts'
import { bulkRoutes } from './v1/bulk.ts'
import { contactRoutes } from './v1/contacts.ts'
import { emailRoutes } from './v1/emails.ts'
import { planRoutes } from './v1/plans.ts'
import { subscriptionRoutes } from './v1/subscriptions.ts'
import { whatsappRoutes } from './v1/whatsapp.ts'

/** Every route of the service. */
export const ROUTES: readonly Route[] = [
  ...opsRoutes,
  ...smtpHookRoutes,
  ...whatsappHookRoutes,
  ...contactRoutes,
  ...bulkRoutes,
  ...subscriptionRoutes,
  ...sesHookRoutes,
  ...emailRoutes,
  ...whatsappRoutes,
  ...planRoutes,
  ...unsubscribeRoutes,
]

/** From the last byte of the body. Longer than any wait that a handler allows itself, in milliseconds. */
const DEADLINE = 28_000

const REQUEST_ID = /^[\w.-]{1,64}$/

type State = { id: string }
type Ctx = Context & { state: State }

/** An object is sent as JSON; a string brings its own Content-Type. */
function send(ctx: Context, { status, body, headers = {} }: Answer): void {
  ctx.status = status
  if (body === undefined) {
    ctx.body = null
  } else {
    ctx.type = 'application/json'
    ctx.body = typeof body === 'string' ? body : JSON.stringify(body)
  }
  ctx.set(headers)
}

const identify: Middleware = async (ctx, next) => {
  const given = ctx.get('X-Request-Id')
  ctx.state.id = REQUEST_ID.test(given) ? given : randomUUID()
  ctx.set('X-Request-Id', ctx.state.id)
  await next()
}

/** One line a request, with its id; never a body, never a credential. */
const logRequests =
  ({ log, metrics }: Deps): Middleware =>
  async (ctx, next) => {
    const started = performance.now()
    await next()
    const ms = Math.round(performance.now() - started)
    const level = ctx.path.startsWith('/v1') || ctx.path.startsWith('/hooks') ? 'info' : 'debug'
    // Any path can be asked for, and may hold an address: those that are not ours count as one.
    const labels = { method: ctx.method, route: String(ctx._matchedRoute ?? 'none'), status: ctx.status }
    metrics.observeRequest(labels, ms / 1_000)
    log[level]({ request_id: ctx.state.id, ...labels, ms }, 'request')
  }

const renderErrors =
  ({ log }: Deps): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      send(ctx, renderError(error, ctx.state.id, log.child({ request_id: ctx.state.id })))
    }
  }

function decoded(segment: string): string {
  try {
    const text = decodeURIComponent(segment)
    if (!text.includes('\0')) return text
  } catch {
    // Malformed, as below.
  }
  throw new Refusal('bad_request', 'the path must be percent-encoded UTF-8 without NUL characters')
}

/** The path's parameters, decoded strictly: the router's own decoding lets malformed ones pass as they are. */
function pathParams(path: string, captures: readonly (string | undefined)[]): Record<string, string> {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  return Object.fromEntries(names.map((name, index) => [name, decoded(captures[index] ?? '')]))
}

/** Whether somebody is reading the body and its end has not come. */
const isUploading = (raw: IncomingMessage): boolean =>
  raw.readableFlowing !== null && !raw.readableEnded && !raw.destroyed

/**
 * A database that hangs must not hang its callers: 503 once the deadline has passed. While the body is coming in the
 * clock stands still (a slow upload ends with the server's requestTimeout), and it begins anew with the body's end:
 * a 503 for work that has not even begun would invite a repetition of what is then stored.
 */
async function withinDeadline(answer: Promise<Answer>, raw: IncomingMessage, ms: number): Promise<Answer> {
  const late = Promise.withResolvers<never>()
  const expire = (): void => {
    if (isUploading(raw)) return
    late.reject(new Refusal('unavailable', 'the service did not answer in time; please retry', 1))
  }
  const timer = setTimeout(expire, ms).unref()
  const restart = (): void => void timer.refresh()
  raw.once('end', restart)
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    raw.off('end', restart)
    clearTimeout(timer)
  }
}

const handlerOf =
  (route: Route, deps: Deps, deadline: number): Middleware =>
  async (ctx) => {
    send(ctx, await withinDeadline(answerOf(route, deps, ctx as Ctx), ctx.req, deadline))
  }

/** How long a team's request waits for others of its own, in milliseconds. */
const PATIENCE = 10_000

/** The database as a team's handler uses it: its transactions take turns with the team's others. */
const inTurn = ({ database, turns }: Deps, teamId: string): Database => ({
  ...database,
  transaction: async (work, retries) => {
    // The result may be null itself.
    const done = await turns.run(
      teamId,
      async () => ({ result: await database.transaction(work, retries) }),
      PATIENCE,
    )
    if (done) return done.result
    throw new Refusal('unavailable', 'too many requests of this team wait for each other; please retry', 1)
  },
})

async function answerOf(route: Route, deps: Deps, ctx: Ctx): Promise<Answer> {
  const { state } = ctx
  const now = deps.clock()
  // Made once the caller has proved its rights: a malformed path is refused to nobody else.
  const request = (): Request => ({
    raw: ctx.req,
    params: pathParams(route.path, ctx.captures ?? []),
    query: new URLSearchParams(ctx.querystring),
    headers: ctx.headers,
    now,
  })
  const forRequest = { ...deps, log: deps.log.child({ request_id: state.id }) }
  if (route.access === 'public') return route.handle(request(), forRequest)
  const principal = await authenticate(deps.database, ctx.get('Authorization') || undefined, now)
  authorize(principal, route.access)
  const database = inTurn(deps, principal.team_id)
  return route.handle({ ...request(), principal }, { ...forRequest, database })
}

/** What no handler took: an unknown path, or a known one with another method. */
const refuseUnmatched =
  (router: Router): Middleware =>
  async (ctx, next) => {
    const match = router.match(ctx.path, ctx.method)
    // A literal path is known by itself: /v1/contacts/bulk is no contact's (decisions: /v1/contacts/bulk).
    const literal = match.path.filter((layer) => layer.paramNames.length === 0)
    const known = literal.length > 0 ? literal : match.path
    const allowed = [...new Set(known.flatMap((layer) => layer.methods))]
    if (allowed.includes(ctx.method)) return next()
    if (allowed.length === 0) throw new Refusal('not_found', 'there is nothing at this path')
    ctx.set('Allow', allowed.join(', '))
    throw new Refusal('method_not_allowed', `this path takes ${allowed.join(', ')} only`)
  }

/** Makes the application over its dependencies. Holds no state of its own. @param deadline in milliseconds. */
export function createApp(deps: Deps, routes: readonly Route[] = ROUTES, deadline = DEADLINE): Koa {
  const app = new Koa()
  // A path is known to the letter.
  const router = new Router({ sensitive: true, strict: true })
  for (const route of routes) router.register(route.path, [route.method], handlerOf(route, deps, deadline))
  app.use(identify)
  app.use(logRequests(deps))
  app.use(renderErrors(deps))
  if (deps.dashboard) app.use(dashboard(deps, deps.dashboard))
  app.use(refuseUnmatched(router))
  app.use(router.routes())
  // Koa's own reports are connection errors of clients that went away; everything else was rendered above.
  app.on('error', (error) => deps.log.debug({ err: error }, 'connection error'))
  return app
}
