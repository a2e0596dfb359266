/** Every route under /v1: what the application mounts, what the parser's thread and the API's description know. */
import type { Route } from '../route.ts'
import { attachmentRoutes } from './attachments.ts'
import { broadcastRoutes } from './broadcasts.ts'
import { bulkRoutes } from './bulk.ts'
import { contactRoutes } from './contacts.ts'
import { emailRoutes } from './emails.ts'
import { planRoutes } from './plans.ts'
import { subscriptionRoutes } from './subscriptions.ts'
import { whatsappRoutes } from './whatsapp.ts'

export const V1_ROUTES: readonly Route[] = [
  ...contactRoutes,
  ...bulkRoutes,
  ...subscriptionRoutes,
  ...emailRoutes,
  ...attachmentRoutes,
  ...whatsappRoutes,
  ...broadcastRoutes,
  ...planRoutes,
]
