/** For those who run the service: whether the process is up, and whether it can work. */
import { ping } from '../db/pool.ts'
import type { PublicRoute } from './route.ts'

export const opsRoutes: readonly PublicRoute[] = [
  {
    method: 'GET',
    path: '/health',
    access: 'public',
    handle: async () => ({ status: 200, body: { status: 'ok' } }),
  },
  {
    method: 'GET',
    path: '/ready',
    access: 'public',
    // A lost database is 503 `unavailable`, rendered like any other error.
    handle: async (_request, { database }) => {
      await ping(database)
      return { status: 200, body: { status: 'ready' } }
    },
  },
]
