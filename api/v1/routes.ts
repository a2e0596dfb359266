/** Every route under /v1: what the application mounts, what the parser's thread and the API's description know. */
import { attachmentRoutes } from './attachments.ts'
import { broadcastRoutes } from './broadcasts.ts'
import { bulkRoutes } from './bulk.ts'
import { contactRoutes } from './contacts.ts'
import type { V1Route } from './deps.ts'
import { emailRoutes } from './emails.ts'
import { planRoutes } from './plans.ts'
import { subscriptionRoutes } from './subscriptions.ts'
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

/** What parses their large bodies, in a thread of its own. */
export const PARSER_THREAD = new URL('./parser-thread.ts', import.meta.url)
