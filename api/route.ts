/**
 * What a route is: method, path, who may call it, what it takes, and a handler from request to answer.
 * Promises: routes are plain values, so that the app mounts them, tests and the API's description walk over them, and
 * none can forget its access. A handler gets its body and query parsed. It must not know Koa, nor answer with an
 * error: it throws the refusal.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { UnsubscribeLinks } from '../db/emails/unsubscribe-token.ts'
import type { Member } from '../db/fleet/fleet.ts'
import type { Scale } from '../db/fleet/scale.ts'
import type { Database } from '../db/postgres/pool.ts'
import type { Replies } from '../db/postgres/replies.ts'
import type { KeyedSemaphore } from '../db/process/keyed-semaphore.ts'
import type { Log } from '../db/process/log.ts'
import type { Metrics } from '../db/process/metrics.ts'
import type { Secrets } from '../db/process/secrets.ts'
import type { Producer } from '../db/queue/boss.ts'
import type { QueueStatus } from '../db/queue/jobs.sql.ts'
import type { Waker } from '../db/queue/wake.ts'
import type { Versions } from '../db/templates/versions.ts'
import type { Accepts } from './accepts.ts'
import type { Credentials, Principal, PrivateAccess } from './auth.ts'
import type { Bodies, Body } from './bodies.ts'
import type { DashboardDeps } from './dashboard/deps.ts'
import type { About } from './docs/about.ts'
import type { Docs } from './docs/drawn.ts'
import type { Answer } from './errors.ts'
import type { Sns } from './hooks/sns.ts'
import type { BodyShape, QueryShape } from './input.ts'
import type { Catalog } from './plan-cache.ts'
import type { Refusals } from './refusals.ts'
import type { AttachmentLimits } from './v1/attached.ts'

/** How the hooks prove that a report is genuine; null: not configured, so that nothing is. */
export type HookSettings = {
  smtp_report_token: string | null
  whatsapp_app_secret: string | null
  whatsapp_verify_token: string | null
}

/** What handlers work with; made once by main.ts, passed down. */
export type Deps = {
  database: Database
  /** Each team's statements of this process: a team whose rows are locked leaves connections to the others. */
  semaphores: { transactions: KeyedSemaphore; statements: KeyedSemaphore; searches: KeyedSemaphore }
  bodies: Bodies
  docs: Docs
  queue: Producer
  secrets: Secrets
  versions: Versions
  /** What makes unsubscribe links; null while PUBLIC_URL is not set. */
  links: UnsubscribeLinks | null
  /** The address that recipients reach the service at; null while PUBLIC_URL is not set. */
  publicUrl: string | null
  credentials: Credentials
  /** Single sends, committed in groups. */
  accepts: Accepts
  catalog: Catalog
  wake: Waker
  hooks: HookSettings
  replies: Replies
  /** What custom headers may not begin with, besides what the contract reserves. */
  reservedPrefixes: readonly string[]
  attachments: AttachmentLimits
  /** How long a bulk upsert may wait for its worker, in milliseconds (DECISIONS: Unavailable). */
  upsertWait: number
  sns: Sns
  metrics: Metrics
  /** Remembers refused calls, for the dashboard. */
  refusals: Refusals
  /** What the dashboard has of its own; null: it is left out. */
  dashboard: DashboardDeps | null
  fleet: Pick<Member, 'flush'>
  scale: () => Promise<Scale>
  /** How full the queues are, as of a few seconds ago. */
  queues: () => Promise<QueueStatus[]>
  /** What the operator's paths ask for; null: there is no such path. */
  tokens: { metrics: string | null; hirefire: string | null }
  /** Whether the process is about to end. */
  isDraining: () => boolean
  log: Log
  /** The time, so that tests can choose it. */
  clock: () => Date
}

/** A request whose route has been found. `body` and `query` are what the route's shapes make of them. */
export type Request<B = undefined, Q = undefined> = {
  /** X-Request-Id: the client's, or one of ours. */
  id: string
  params: Readonly<Record<string, string>>
  /** The query as it came. */
  search: string
  /** The body as it came, for the hooks: they read one only once its headers may be genuine. */
  bytes: Body['bytes']
  /** The same in pieces, for what is not to be held whole. */
  pieces: Body['pieces']
  body: B
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
  /** It may go through many rows: of each team one at a time. */
  searches?: boolean
  /** Every route under /v1 has it: without it there is no description to draw. */
  about?: About
}

/** Anybody may call it; a hook proves its caller itself. */
export type PublicRoute<B = unknown, Q = unknown> = Declared<B, Q> & {
  access: 'public'
  handle(request: Request<B, Q>, deps: Deps): Promise<Answer>
}

/** Called for a team, with a credential that the access allows. */
export type TeamRoute<B = unknown, Q = unknown> = Declared<B, Q> & {
  access: PrivateAccess
  about: About
  handle(request: Request<B, Q> & { principal: Principal }, deps: Deps): Promise<Answer>
}

export type Route = PublicRoute | TeamRoute

/** Declares a route, so that its handler's body and query have the types of its shapes. */
export const publicRoute = <B = undefined, Q = undefined>(route: PublicRoute<B, Q>): PublicRoute => route

/** As `publicRoute`, for a route that acts for a team. */
export const teamRoute = <B = undefined, Q = undefined>(route: TeamRoute<B, Q>): TeamRoute => route
