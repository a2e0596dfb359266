/**
 * For those who run the service: whether the process is up and can work, the fleet's figures for Prometheus, and the
 * signal that workers are scaled by. Promises: each path that reveals more than the version has a token of its own, and
 * does not exist without it.
 */

import type { ReturnPathCheck } from '../../db/accounts/domains/return-path.ts'
import { RequestError, Unavailable } from '../../db/errors.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Replica } from '../../db/postgres/replica.ts'
import { VERSION } from '../../db/process/version.ts'
import type { QueueStatus } from '../../db/queue/jobs.sql.ts'
import { databaseFault } from '../../db/start.ts'
import { CONTENT_TYPE, exposition } from '../../db/stats/fleet/exposition.ts'
import type { FleetProcess } from '../../db/stats/fleet/fleet.ts'
import type { Scale } from '../../db/stats/fleet/scale.ts'
import { assertBearer, sameSecret } from '../http/auth.ts'
import { type PublicRoute, publicRoutes } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'

export type OperationsDeps = {
  database: Database
  fleet: Pick<FleetProcess, 'flush'>
  scale: () => Promise<Scale>
  /** How full the queues are, as of a few seconds ago. */
  queues: () => Promise<QueueStatus[]>
  /** How many emails a team has sent whose shares are metrics: TEAM_PAUSE_MIN_EMAILS. */
  least: number
  /** Whether bounces can come back. */
  returnPath: (tx: Database) => Promise<ReturnPathCheck>
  /** What the operator's paths ask for; null: there is no such path. */
  tokens: { metrics: string | null; hirefire: string | null }
  isDraining: () => boolean
  /** What the database says while its disk is full; null while it isn't. */
  diskFault: () => string | null
  /** Where reads go that may be a moment behind. */
  replica: Pick<Replica, 'read'>
}

const publicRoute = publicRoutes<OperationsDeps>()

const nothingHere = (): RequestError => new RequestError('not_found', TEXTS.nothingHere)

/** The operator's own token, where it is set. @throws RequestError not_found, unauthorized */
function assertOperator(authorization: string | undefined, token: string | null): void {
  if (token === null) throw nothingHere()
  assertBearer(authorization, token)
}

/** When to ask again, in seconds. */
const READY_RETRY_AFTER_S = 5

export const opsRoutes: readonly PublicRoute<OperationsDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/health',
    access: 'public',
    handle: async () => ({ status: 200, body: { status: 'ok', version: VERSION } }),
  }),
  publicRoute({
    method: 'GET',
    path: '/ready',
    access: 'public',
    // A lost database is 503 `unavailable`, rendered like any other error; so is one that we cannot work with.
    handle: async (_request, { database, isDraining, diskFault }) => {
      if (isDraining()) throw new Unavailable('draining', TEXTS.draining, 1)
      const fault = diskFault() ?? (await databaseFault(database))
      if (fault !== null) throw new Unavailable('not_ready', fault, READY_RETRY_AFTER_S)
      return { status: 200, body: { status: 'ready' } }
    },
  }),
  publicRoute({
    method: 'GET',
    path: '/metrics',
    access: 'public',
    handle: async ({ headers }, { database, fleet, queues, replica, least, returnPath, tokens }) => {
      assertOperator(headers.authorization, tokens.metrics)
      // What this process has counted is reported first, so that a figure is never older than the others' few seconds.
      await fleet.flush()
      const body = await exposition(database, queues, replica, {
        least,
        returnPath: await returnPath(database),
      })
      return { status: 200, body, headers: { 'Content-Type': CONTENT_TYPE } }
    },
  }),
  publicRoute({
    method: 'GET',
    path: '/scale',
    access: 'public',
    handle: async ({ headers }, { scale, tokens }) => {
      assertOperator(headers.authorization, tokens.metrics)
      return { status: 200, body: await scale() }
    },
  }),
  publicRoute({
    // HireFire's own form: the token is in the path, and the answer is a list.
    method: 'GET',
    path: '/hirefire/:token/info',
    access: 'public',
    handle: async ({ params }, { scale, tokens }) => {
      if (tokens.hirefire === null || !sameSecret(params.token ?? '', tokens.hirefire)) throw nothingHere()
      const { workers } = await scale()
      return { status: 200, body: [{ name: 'worker', value: workers.latency_seconds }] }
    },
  }),
]
