/**
 * Routes are plain values, so that tests and the API's description can list them. Each has to declare its access. A
 * handler gets its body and query parsed, and throws its errors.
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
import type { Rejections } from './rejections.ts'

export type HttpDeps = {
  database: Database
  /** A team's limits in this process, which leave connections to other teams if its rows are locked. */
  semaphores: { transactions: KeyedSemaphore; statements: KeyedSemaphore; searches: KeyedSemaphore }
  bodies: Bodies
  credentials: Credentials
  metrics: Metrics
  rejections: Rejections
  log: Log
  clock: () => Date
}

/** The decoded values of the `:names` in a path. */
export type Params = Readonly<Record<string, string>>

/** Returns the methods that a route serves. HEAD requests are handled like GET. */
export const allowedMethods = (method: string): string[] => (method === 'GET' ? ['HEAD', 'GET'] : [method])

/** `body` and `query` are the results of the route's shapes. */
export type Request<B = undefined, Q = undefined> = {
  /** X-Request-Id: the client's, or a generated one. */
  id: string
  params: Params
  /** Returns the query parameters without validation, for routes without a shape. @throws RequestError bad_request */
  search(): URLSearchParams
  /** Reads the raw body. Hooks only call it if the headers can be genuine. */
  bytes: Body['bytes']
  form: Body['form']
  pieces: Body['pieces']
  body: B
  release: Body['release']
  query: Q
  headers: IncomingHttpHeaders
  now: Date
}

type RouteOptions<B, Q> = {
  method: string
  path: string
  /** Without it, the body is only read if the handler does so. */
  body?: BodyShape<B>
  query?: QueryShape<Q>
  /** True if the body is raw bytes of any type. */
  raw?: true
  /** True if the body is slow to parse for its length. */
  heavy?: true
  /** True if its statements can scan many rows. Each team runs one of them at a time. */
  searches?: boolean
}

type PublicOptions<D, B, Q> = RouteOptions<B, Q> & {
  /** True if the handler verifies its caller before it reads the body. */
  readsAuthenticated?: true
  handle(request: Request<B, Q>, deps: D): Promise<Answer>
}

/** A route without credentials. A hook verifies its caller itself. */
export type PublicRoute<D, B = unknown, Q = unknown> = PublicOptions<D, B, Q> & { access: 'public' }

export type TeamRoute<D, B = unknown, Q = unknown> = RouteOptions<B, Q> & {
  access: PrivateAccess
  handle(request: Request<B, Q> & { principal: Principal }, deps: D): Promise<Answer>
}

export type Route<D> = PublicRoute<D> | TeamRoute<D>

/** Declares a module's public routes. A handler's body and query have the types of its route's shapes. */
export const publicRoutes =
  <D>() =>
  <B = undefined, Q = undefined>(route: PublicOptions<D, B, Q>): PublicRoute<D> => ({
    ...route,
    access: 'public',
  })
