/**
 * What every handler works with. Beneath the handlers and the registry, so that neither imports the other in a
 * circle.
 */

import type { Brakes } from '../db/broadcasts/brakes.ts'
import type { Database } from '../db/postgres/pool.ts'
import type { Log } from '../db/process/log.ts'
import type { Secrets } from '../db/process/secrets.ts'
import type { Consumer } from '../db/queue/boss.ts'
import type { QueuePauses } from '../db/queue/pauses.ts'
import type { Retention } from '../db/retention/forget.ts'
import type { Versions } from '../db/templates/versions.ts'
import type { EncodedFiles } from './encoded-files.ts'
import type { Figures } from './figures.ts'
import type { EmailProvider } from './providers/provider.ts'
import type { Readers } from './providers/readers.ts'
import type { WebhookDelivery } from './providers/webhook.ts'
import type { WhatsappDelivery } from './providers/whatsapp.ts'

/** What handlers work with; made once by main.ts, passed down. */
export type WorkerDeps = {
  database: Database
  queue: Consumer
  secrets: Secrets
  versions: Versions
  /** null in a worker that delivers no email: it leaves that queue alone. */
  email: EmailProvider | null
  /** What broadcasts go out through; null where `email` is. */
  bulk: EmailProvider | null
  /** When a broadcast is paused by itself: BULK_MAX_… */
  brakes: Brakes
  /** null where WhatsApp is not set up: such a worker leaves its queue alone. */
  whatsapp: WhatsappDelivery | null
  webhooks: WebhookDelivery
  /** The files of emails, encoded. */
  files: EncodedFiles
  /** How many messages of a channel are with its provider at once in this process: WORKER_CONCURRENCY. */
  concurrency: number
  pauses: QueuePauses
  /** Counts what is done; absent where nobody counts. */
  figures?: Figures
  readers: Readers
  /** The domain that bounces return to, in ASCII form; null: each email's From domain. */
  return_domain: string | null
  retention: Retention
  log: Log
  clock: () => Date
}
