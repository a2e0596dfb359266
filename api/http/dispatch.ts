/**
 * From a route to its answer: authentication, scope, parameters, query, body, then the handler, within a deadline.
 * Promises: a caller without rights learns nothing about its body (DECISIONS: Order of checks); a team's transactions
 * take turns, so that it leaves connections to the others. Must not know any resource.
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

/** From the last byte of the body. Longer than any wait that a handler allows itself, in milliseconds. */
const DEADLINE_MS = 28_000

/** How long the items of a list are written as JSON before others have their turn, in milliseconds. */
const SLICE_MS = 4

/** A list as JSON, item by item: a page of contacts may be 80 MB, and writing it whole kept everybody waiting. */
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

/** An answer that is a list has it as bytes. */
async function written(answering: Promise<Answer>): Promise<Answer> {
  const answer = await answering
  const list = answer.body as { data: readonly unknown[] } | null | undefined
  return Array.isArray(list?.data) ? { ...answer, body: await listJson(list) } : answer
}

/** An object, and a list's bytes, are sent as JSON; a string or other bytes bring their own Content-Type. */
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

/** Whether somebody is reading the body and its end has not come. */
const isUploading = (raw: IncomingMessage): boolean =>
  raw.readableFlowing !== null && !raw.readableEnded && !raw.destroyed

/**
 * A database that hangs must not hang its callers: 503 once the deadline has passed. While the body is coming in the
 * clock stands still (slow-bodies.ts ends an upload that does not get on), and it restarts when the body ends:
 * a 503 for work that has not even begun would invite a repetition of what is then stored.
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

/** A request's route, with its path's parameters: null when they cannot be read. */
type Found<D> = { route: Route<D>; params: Params | null }

/** Has a route answer. @param deadline in milliseconds, from the last byte of the body. */
export async function answer<D extends HttpDeps>(
  ctx: Context,
  found: Found<D>,
  deps: D,
  deadline = DEADLINE_MS,
): Promise<void> {
  send(ctx, await withinDeadline(written(answerOf(found, deps, ctx)), ctx.req, deadline))
}

/** How long a team's statement waits for others of its own, in milliseconds. */
const TURN_WAIT_MS = 10_000

/** What of the database a handler runs without a transaction of its own. */
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
 * The database as a team's handler uses it: its transactions take turns with the team's others, and so do its single
 * statements, among themselves: what follows a transaction does not wait behind other transactions. Searches wait for
 * each other alone.
 */
function inTurn(
  { database, semaphores }: HttpDeps,
  teamId: string,
  { searches = false }: { searches?: boolean },
): Database {
  const take = async <T>(semaphore: KeyedSemaphore, work: () => Promise<T>): Promise<T> => {
    // The result may be null itself.
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

/** The rest of the way to an answer: authentication, scope, body (DECISIONS: Order of checks). */
async function answerOf<D extends HttpDeps>(found: Found<D>, deps: D, ctx: Context): Promise<Answer> {
  const { route } = found
  const now = deps.clock()
  const log = deps.log.child({ request_id: ctx.state.id })
  if (route.access === 'public') {
    const owner = { name: route.path, isProved: route.readsProved ?? false }
    return deps.bodies.during(owner, ctx.req, async (body) =>
      route.handle(await requestOf(found, ctx, { body, now }), { ...deps, log }),
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
  return deps.bodies.during({ name: team_id, isProved: true }, ctx.req, async (body) =>
    route.handle({ ...(await requestOf(found, ctx, { body, now })), principal }, { ...deps, log, database }),
  )
}

/** What the handler gets. Made once the caller has proved its rights: a malformed request is refused to nobody else. */
async function requestOf<D>(
  { route, params }: Found<D>,
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
