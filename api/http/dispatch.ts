/**
 * Handles a request whose route is known, within a deadline. A caller without rights learns nothing about its body
 * (DECISIONS: Order of checks). A team uses only a part of the connections at a time.
 */

import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import type { Context } from 'koa'
import { RequestError, Unavailable } from '../../db/errors.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { KeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { authenticate, authorize } from './auth.ts'
import type { Body } from './bodies.ts'
import type { Answer } from './errors.ts'
import { readQuery } from './forms.ts'
import type { HttpDeps, Params, Request, Route } from './route.ts'
import { TEXTS } from './texts.ts'

/** From the last byte of the body to the response. Longer than any wait of a handler. */
const DEADLINE_MS = 28_000

/** How long a list is serialized before other requests get their turn, in milliseconds. */
const SLICE_MS = 4

/** Serializes a list item by item. A page of contacts can be 80 MB, which would block other requests. */
async function listJson({ data, ...rest }: { data: readonly unknown[] }): Promise<Buffer> {
  const pieces: Buffer[] = []
  let since = performance.now()
  for (const item of data) {
    pieces.push(Buffer.from(`${pieces.length === 0 ? '' : ','}${JSON.stringify(item)}`))
    if (performance.now() - since < SLICE_MS) continue
    await setImmediate()
    since = performance.now()
  }
  const end = JSON.stringify(rest).slice(1)
  return Buffer.concat([Buffer.from('{"data":['), ...pieces, Buffer.from(end === '}' ? ']}' : `],${end}`)])
}

async function written(answering: Promise<Answer>): Promise<Answer> {
  const answer = await answering
  const list = answer.body as { data: readonly unknown[] } | null | undefined
  return Array.isArray(list?.data) ? { ...answer, body: await listJson(list) } : answer
}

/** An object and the bytes of a list are JSON. A string and other bytes have their own Content-Type. */
export function send(ctx: Context, { status, body, headers = {}, trace }: Answer): void {
  ctx.state.trace = trace
  ctx.status = status
  if (body === undefined) {
    ctx.body = null
  } else {
    ctx.type = 'application/json'
    ctx.body = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  }
  ctx.set(headers)
}

const isUploading = (raw: IncomingMessage): boolean =>
  raw.readableFlowing !== null && !raw.readableEnded && !raw.destroyed

/**
 * Fails with 503 after the deadline, so that callers don't hang when the database does. The clock starts again when the
 * body has arrived, because a 503 before the work has started would make clients repeat a request that is then stored.
 */
async function withinDeadline(answering: Promise<Answer>, raw: IncomingMessage, ms: number): Promise<Answer> {
  const late = Promise.withResolvers<never>()
  const expire = (): void => {
    if (isUploading(raw)) return
    late.reject(new Unavailable('timeout', TEXTS.timedOut, 1))
  }
  const timer = setTimeout(expire, ms).unref()
  const restart = (): void => void timer.refresh()
  raw.once('end', restart)
  try {
    return await Promise.race([answering, late.promise])
  } finally {
    raw.off('end', restart)
    clearTimeout(timer)
  }
}

/** `params` is null if the path can't be decoded. */
type RouteMatch<D> = { route: Route<D>; params: Params | null }

/** @param deadline milliseconds after the last byte of the body */
export async function answer<D extends HttpDeps>(
  ctx: Context,
  found: RouteMatch<D>,
  deps: D,
  deadline = DEADLINE_MS,
): Promise<void> {
  send(ctx, await withinDeadline(written(answerRequest(found, deps, ctx)), ctx.req, deadline))
}

const TURN_WAIT_MS = 10_000

/** The methods of the database that run a statement without a transaction. */
const STATEMENTS = [
  'any',
  'anyFirst',
  'exists',
  'many',
  'maybeOne',
  'maybeOneFirst',
  'one',
  'oneFirst',
  'query',
] as const

/**
 * Limits a team's transactions, single statements and searches, each by itself. A single statement doesn't wait for
 * transactions, and searches only wait for each other.
 */
function inTurn(
  { database, semaphores }: HttpDeps,
  teamId: string,
  { searches = false }: { searches?: boolean },
): Database {
  const take = async <T>(semaphore: KeyedSemaphore, work: () => Promise<T>): Promise<T> => {
    // Wrapped, because the result can be null.
    const done = await semaphore.run(teamId, async () => ({ result: await work() }), TURN_WAIT_MS)
    if (done) return done.result
    throw new Unavailable('team_busy', TEXTS.tooManyOfTeam, 1)
  }
  const statement =
    (name: (typeof STATEMENTS)[number]) =>
    (query: never): Promise<unknown> =>
      take<unknown>(searches ? semaphores.searches : semaphores.statements, () => database[name](query))
  return {
    ...database,
    ...Object.fromEntries(STATEMENTS.map((name) => [name, statement(name)])),
    transaction: (work, retries) => take(semaphores.transactions, () => database.transaction(work, retries)),
  }
}

async function answerRequest<D extends HttpDeps>(
  found: RouteMatch<D>,
  deps: D,
  ctx: Context,
): Promise<Answer> {
  const { route } = found
  const now = deps.clock()
  const log = deps.log.child({ request_id: ctx.state.id })
  if (route.access === 'public') {
    const owner = { name: route.path, isAuthenticated: route.readsAuthenticated ?? false }
    return deps.bodies.during(owner, ctx.req, async (body) =>
      route.handle(await buildRequest(found, ctx, { body, now }), { ...deps, log }),
    )
  }
  const principal = await authenticate(
    { tx: deps.database, credentials: deps.credentials },
    ctx.get('Authorization') || undefined,
    now,
  )
  const { team_id, key } = principal
  ctx.state.caller = key === null ? { team_id } : { team_id, key }
  authorize(principal, route.access)
  const database = inTurn(deps, team_id, route)
  return deps.bodies.during({ name: team_id, isAuthenticated: true }, ctx.req, async (body) =>
    route.handle(
      { ...(await buildRequest(found, ctx, { body, now })), principal },
      { ...deps, log, database },
    ),
  )
}

/** Only authorized callers learn that their request is malformed. */
async function buildRequest<D>(
  { route, params }: RouteMatch<D>,
  ctx: Context,
  { body, now }: { body: Body; now: Date },
): Promise<Request<unknown, unknown>> {
  if (params === null) throw new RequestError('bad_request', TEXTS.badPath)
  return {
    id: ctx.state.id,
    params,
    search: () => readQuery(ctx.querystring),
    query: route.query?.read(ctx.req.url ?? ''),
    headers: ctx.headers,
    bytes: body.bytes,
    form: body.form,
    pieces: body.pieces,
    body: await body.parsed(route),
    release: body.release,
    now,
  }
}
