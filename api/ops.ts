/** For those who run the service: whether the process is up, whether it can work, and its figures for Prometheus. */

import { Refusal } from '../db/errors.ts'
import { ping } from '../db/postgres/pool.ts'
import { queueStatus } from '../db/queue/jobs.sql.ts'
import { assertBearer } from './auth.ts'
import { type PublicRoute, publicRoute } from './route.ts'

export const opsRoutes: readonly PublicRoute[] = [
  publicRoute({
    method: 'GET',
    path: '/health',
    access: 'public',
    handle: async () => ({ status: 200, body: { status: 'ok' } }),
  }),
  publicRoute({
    method: 'GET',
    path: '/ready',
    access: 'public',
    // A lost database is 503 `unavailable`, rendered like any other error.
    handle: async (_request, { database }) => {
      await ping(database)
      return { status: 200, body: { status: 'ready' } }
    },
  }),
  publicRoute({
    method: 'GET',
    path: '/metrics',
    access: 'public',
    // Its own token, since figures are the operator's; without METRICS_TOKEN the path does not exist.
    handle: async ({ headers }, { database, metrics, metricsToken }) => {
      if (metricsToken === null) throw new Refusal('not_found', 'there is nothing at this path')
      assertBearer(headers.authorization, metricsToken)
      const { content_type, text } = await metrics.render(await queueStatus(database))
      return { status: 200, body: text, headers: { 'Content-Type': content_type } }
    },
  }),
]
