/** The dependencies of pages for recipients, and how their routes are declared. */
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { publicRoutes } from '../http/route.ts'

export type RecipientDeps = { database: Database; secrets: Secrets }

export const publicRoute = publicRoutes<RecipientDeps>()
