/**
 * What a route is: method, path, who may call it, and a handler from request to answer.
 * Promises: routes are plain values, so that the app mounts them, tests walk over them, and none can forget its
 * access. A handler must not know Koa, nor answer with an error: it throws the refusal.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Database } from '../db/postgres/pool.ts'
import type { Replies } from '../db/postgres/replies.ts'
import type { Log } from '../db/process/log.ts'
import type { Metrics } from '../db/process/metrics.ts'
import type { Secrets } from '../db/process/secrets.ts'
import type { Turns } from '../db/process/turns.ts'
import type { Producer } from '../db/queue/boss.ts'
import type { Waker } from '../db/queue/wake.ts'
import type { Versions } from '../db/templates/versions.ts'
import type { Principal, PrivateAccess } from './auth.ts'
import type { DashboardDeps } from './dashboard/page.ts'
import type { Answer } from './errors.ts'
import type { Sns } from './hooks/sns.ts'
import type { Catalog } from './plan-cache.ts'

/** How the hooks prove that a report is genuine; null: not configured, so that nothing is. */
export type HookSettings = {
  smtp_report_token: string | null
  whatsapp_app_secret: string | null
  whatsapp_verify_token: string | null
}

/** What handlers work with; made once by main.ts, passed down. */
export type Deps = {
  database: Database
  /** Each team's transactions of this process: a team whose rows are locked leaves connections to the others. */
  turns: Turns
  queue: Producer
  secrets: Secrets
  versions: Versions
  catalog: Catalog
  wake: Waker
  hooks: HookSettings
  replies: Replies
  /** How long a bulk upsert may wait for its worker, in milliseconds (decisions: unavailable). */
  upsertWait: number
  sns: Sns
  metrics: Metrics
  /** What the dashboard has of its own; null: it is left out. */
  dashboard: DashboardDeps | null
  /** What GET /metrics asks for; null: there is no such path. */
  metricsToken: string | null
  log: Log
  /** The time, so that tests can choose it. */
  clock: () => Date
}

export type Request = {
  /** The raw request, for reading its body. */
  raw: IncomingMessage
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  headers: IncomingHttpHeaders
  now: Date
}

type Handler<R> = (request: R, deps: Deps) => Promise<Answer>

export type PublicRoute = { method: string; path: string; access: 'public'; handle: Handler<Request> }

export type PrivateRoute = {
  method: string
  path: string
  access: PrivateAccess
  handle: Handler<Request & { principal: Principal }>
}

export type Route = PublicRoute | PrivateRoute
