/** What the pages for recipients work with, and how they are declared. */
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { publicRoutes } from '../http/route.ts'

export type RecipientDeps = { database: Database; secrets: Secrets }

export const publicRoute = publicRoutes<RecipientDeps>()
