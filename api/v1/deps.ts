/** The dependencies of the routes under /v1, and how the routes are declared. */

import type { Caller } from '../../db/accounts/audit/record.ts'
import type { Versions } from '../../db/content/templates/versions.ts'
import type { UnsubscribeLinks } from '../../db/messages/emails/unsubscribe-token.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Replies } from '../../db/postgres/replies.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { Producer } from '../../db/queue/producer.ts'
import type { Reserved } from '../../db/validation/headers.ts'
import type { About } from '../docs/about.ts'
import type { PublicRoute, Route, TeamRoute } from '../http/route.ts'
import type { Accepts } from '../sends/accepts.ts'
import type { AttachmentLimits } from './attached.ts'
import type { Catalog } from './plan-cache.ts'

export type V1Deps = {
  database: Database
  queue: Producer
  secrets: Secrets
  versions: Versions
  /** Creates unsubscribe links. Null if PUBLIC_URL isn't set. */
  links: UnsubscribeLinks | null
  /** The address of this service for recipients. Null if PUBLIC_URL isn't set. */
  publicUrl: string | null
  /** Returns the database's time. */
  clock: () => Date
  /** Single sends, committed in groups. */
  accepts: Accepts
  catalog: Catalog
  replies: Replies
  /** The custom headers that the operator reserves, in addition to ours. */
  reservedHeaders: Reserved
  attachments: AttachmentLimits
  /** How long a bulk upsert waits for its worker, in milliseconds (DECISIONS: 503 responses). */
  upsertWait: number
  metrics: Metrics
}

/** Runs a use case in one transaction, without an entry in the audit log. */
export const asClient = <T>(database: Database, now: Date, work: (by: Caller) => Promise<T>): Promise<T> =>
  database.transaction((tx) => work({ tx, now, actor: null }))

/** Every route under /v1 describes itself. */
export type V1Route = Route<V1Deps> & { about: About }

export const publicRoute = <B = undefined, Q = undefined>(
  route: PublicRoute<V1Deps, B, Q> & { about: About },
): V1Route => route

export const teamRoute = <B = undefined, Q = undefined>(
  route: TeamRoute<V1Deps, B, Q> & { about: About },
): V1Route => route
