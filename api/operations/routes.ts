/**
 * Endpoints for operators: health, readiness, metrics for Prometheus, and the signal for scaling workers.
 * /health and /ready are public. The others need a token and don't exist if it isn't set.
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
  /** Returns the status of the queues, at most a few seconds old. */
  queues: () => Promise<QueueStatus[]>
  /** How many emails a team must have sent before its rates become metrics: TEAM_PAUSE_MIN_EMAILS. */
  least: number
  /** Checks whether bounces can be delivered to us. */
  returnPath: (tx: Database) => Promise<ReturnPathCheck>
  /** The tokens of the operator's paths. If one is null, its paths don't exist. */
  tokens: { metrics: string | null; hirefire: string | null }
  isDraining: () => boolean
  /** Returns the database's error while its disk is full, otherwise null. */
  diskFault: () => string | null
  /** Runs reads that can be slightly out of date. */
  replica: Pick<Replica, 'read'>
}

const publicRoute = publicRoutes<OperationsDeps>()

const nothingHere = (): RequestError => new RequestError('not_found', TEXTS.nothingHere)

/** Checks the operator's token. @throws RequestError not_found if it isn't set, unauthorized */
function assertOperator(authorization: string | undefined, token: string | null): void {
  if (token === null) throw nothingHere()
  assertBearer(authorization, token)
}

/** The Retry-After of /ready, if it fails. */
const READY_RETRY_AFTER_S = 5

export const opsRoutes: readonly PublicRoute<OperationsDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/health',
    handle: async () => ({ status: 200, body: { status: 'ok', version: VERSION } }),
  }),
  publicRoute({
    method: 'GET',
    path: '/ready',
    // If the database is unavailable, `databaseFault` throws, and the response is 503 like for any other
    // request.
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
    handle: async ({ headers }, { database, fleet, queues, replica, least, returnPath, tokens }) => {
      assertOperator(headers.authorization, tokens.metrics)
      // Stores this process's own counts first, so that they are as recent as those of the other processes.
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
    handle: async ({ headers }, { scale, tokens }) => {
      assertOperator(headers.authorization, tokens.metrics)
      return { status: 200, body: await scale() }
    },
  }),
  publicRoute({
    // HireFire's format: the token is in the path, and the response is a list.
    method: 'GET',
    path: '/hirefire/:token/info',
    handle: async ({ params }, { scale, tokens }) => {
      if (tokens.hirefire === null || !sameSecret(params.token ?? '', tokens.hirefire)) throw nothingHere()
      const { workers } = await scale()
      return { status: 200, body: [{ name: 'worker', value: workers.latency_seconds }] }
    },
  }),
]
