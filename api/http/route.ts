/**
 * What a route is: method, path, who may call it, what it takes, and a handler from request to answer.
 * Promises: routes are plain values, so that the app mounts them, tests and the API's description walk over them, and
 * none can forget its access. A handler gets its body and query parsed. It must not know Koa, nor answer with an
 * error: it throws the refusal.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Database } from '../../db/postgres/pool.ts'
import type { KeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import type { Log } from '../../db/process/log.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import type { Credentials, Principal, PrivateAccess } from './auth.ts'
import type { Bodies, Body } from './bodies.ts'
import type { Answer } from './errors.ts'
import type { BodyShape, QueryShape } from './input.ts'
import type { Refusals } from './refusals.ts'

export type HttpDeps = {
  database: Database
  /** Each team's statements of this process: a team whose rows are locked leaves connections to the others. */
  semaphores: { transactions: KeyedSemaphore; statements: KeyedSemaphore; searches: KeyedSemaphore }
  bodies: Bodies
  credentials: Credentials
  metrics: Metrics
  /** Remembers refused calls, for the dashboard. */
  refusals: Refusals
  log: Log
  /** The time, so that tests can choose it. */
  clock: () => Date
}

/** What stands in a path for its `:names`, decoded. */
export type Params = Readonly<Record<string, string>>

/** The methods of a path that has this one: HEAD is answered as GET is. */
export const allowedMethods = (method: string): string[] => (method === 'GET' ? ['HEAD', 'GET'] : [method])

/** A request whose route has been found. `body` and `query` are what the route's shapes make of them. */
export type Request<B = undefined, Q = undefined> = {
  /** X-Request-Id: the client's, or one of ours. */
  id: string
  params: Params
  /** The query's parameters as they are, for who takes no shape. @throws RequestError bad_request */
  search(): URLSearchParams
  /** The body as it came, for the hooks: they read one only once its headers may be genuine. */
  bytes: Body['bytes']
  /** The fields of a form, of at most this many bytes. */
  form: Body['form']
  /** The same in pieces, for what is not to be held whole. */
  pieces: Body['pieces']
  body: B
  /** Said by who needs no more of the body and goes on waiting: its room is for others. */
  release: Body['release']
  query: Q
  headers: IncomingHttpHeaders
  now: Date
}

type Declared<B, Q> = {
  method: string
  path: string
  /** Without it the body is not read. */
  body?: BodyShape<B>
  query?: QueryShape<Q>
  /** Its body is taken as raw bytes, whatever their type. */
  raw?: true
  /** Its body takes long to parse for its length. */
  heavy?: true
  /** It may go through many rows: of each team one at a time. */
  searches?: boolean
}

/** Anybody may call it; a hook proves its caller itself. `D`: what its handler works with. */
export type PublicRoute<D, B = unknown, Q = unknown> = Declared<B, Q> & {
  access: 'public'
  /** Its handler reads no body before its caller has proved who it is. */
  readsProved?: true
  handle(request: Request<B, Q>, deps: D): Promise<Answer>
}

/** Called for a team, with a credential that the access allows. */
export type TeamRoute<D, B = unknown, Q = unknown> = Declared<B, Q> & {
  access: PrivateAccess
  handle(request: Request<B, Q> & { principal: Principal }, deps: D): Promise<Answer>
}

export type Route<D> = PublicRoute<D> | TeamRoute<D>

/** How a room declares its public routes: a handler's body and query have the types of the route's shapes. */
export const publicRoutes =
  <D>() =>
  <B = undefined, Q = undefined>(route: PublicRoute<D, B, Q>): PublicRoute<D> =>
    route
