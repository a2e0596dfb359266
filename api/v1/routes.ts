/** All routes under /v1, which the application mounts and the API's description lists. */
import { attachmentRoutes } from './attachments.ts'
import { broadcastRoutes } from './broadcasts.ts'
import { bulkRoutes } from './bulk.ts'
import { contactRoutes, subscriptionRoutes } from './contacts.ts'
import type { V1Route } from './deps.ts'
import { emailRoutes } from './emails.ts'
import { planRoutes } from './plans.ts'
import { whatsappRoutes } from './whatsapp.ts'

export const V1_ROUTES: readonly V1Route[] = [
  ...contactRoutes,
  ...bulkRoutes,
  ...subscriptionRoutes,
  ...emailRoutes,
  ...attachmentRoutes,
  ...whatsappRoutes,
  ...broadcastRoutes,
  ...planRoutes,
]

/** The thread that parses their large bodies. */
export const PARSER_THREAD = new URL('./parser-thread.ts', import.meta.url)
