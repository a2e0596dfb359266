/** Every job and who works on it, as an explicit list: batches of jobs for a handler, or the delivery of a channel. */

import { EMAIL } from '../db/channels/email.sql.ts'
import type { JobName, ScheduleName } from '../db/queue/jobs.ts'
import type { Handler } from './batches/batches.ts'
import { broadcastChannel } from './channels/deliver-broadcast.ts'
import { emailChannel } from './channels/deliver-email.ts'
import { webhookChannel } from './channels/deliver-webhook.ts'
import { whatsappChannel } from './channels/deliver-whatsapp.ts'
import { type Delivery, startDelivery } from './delivery/engine.ts'
import { createSlots, type Slots } from './delivery/slots.ts'
import type { WorkerDeps } from './deps.ts'
import { checkEmail } from './jobs/check-email.ts'
import { countFiguresJob } from './jobs/count-figures.ts'
import { goOnWithWork } from './jobs/do-work.ts'
import { expandBroadcasts } from './jobs/expand-broadcast.ts'
import { forgetMessages } from './jobs/forget-messages.ts'
import { forgetReports } from './jobs/forget-reports.ts'
import { forgetSessions } from './jobs/forget-sessions.ts'
import { forgetUpserts } from './jobs/forget-upserts.ts'
import { ingestReports } from './jobs/ingest-report.ts'
import { mailOwners } from './jobs/mail-owners.ts'
import { requeueStale } from './jobs/requeue-stale.ts'
import { reviewSuppressions } from './jobs/review-suppressions.ts'
import { syncWhatsappTemplates } from './jobs/sync-whatsapp-templates.ts'
import { runUpserts } from './jobs/upsert-contacts.ts'

/** How a process works on a queue: batches of `batchSize` in a number of loops, or a delivery of its own. */
export type Registration<J extends JobName> =
  | { handle: Handler<J, WorkerDeps>; batchSize: number; loops: number }
  | { deliver: (deps: WorkerDeps, slots: SlotGroups) => Delivery }

/** The slots that queues share: what goes out by one channel has slots of its own. */
export type SlotGroups = { email: Slots; whatsapp: Slots; webhook: Slots }

/** The slots of a process. */
export const openSlots = ({ concurrency, webhooks }: WorkerDeps): SlotGroups => ({
  email: createSlots(concurrency),
  whatsapp: createSlots(concurrency),
  webhook: createSlots(webhooks.concurrency),
})

export const HANDLERS: { [J in JobName]: Registration<J> } = {
  'deliver-email': {
    deliver: (deps, { email }) => startDelivery(emailChannel(EMAIL, deps), deps, email.share()),
  },
  // Single emails go first: broadcasts have at most half of the slots.
  'deliver-broadcast': {
    deliver: (deps, { email }) => startDelivery(broadcastChannel(deps), deps, email.share({ most: 0.5 })),
  },
  'deliver-whatsapp': {
    deliver: (deps, { whatsapp }) => startDelivery(whatsappChannel(deps), deps, whatsapp.share()),
  },
  'deliver-webhook': {
    deliver: (deps, { webhook }) => startDelivery(webhookChannel(deps), deps, webhook.share()),
  },
  'sync-whatsapp-templates': { handle: syncWhatsappTemplates, batchSize: 50, loops: 1 },
  'ingest-report': { handle: ingestReports, batchSize: 100, loops: 2 },
  'upsert-contacts': { handle: runUpserts, batchSize: 5, loops: 4 },
  'do-work': { handle: goOnWithWork, batchSize: 1, loops: 2 },
  'expand-broadcast': { handle: expandBroadcasts, batchSize: 1, loops: 2 },
  'mail-owners': { handle: mailOwners, batchSize: 10, loops: 1 },
  'check-email': { handle: checkEmail, batchSize: 10, loops: 1 },
}

export const SCHEDULED: Record<ScheduleName, (deps: WorkerDeps) => Promise<void>> = {
  'requeue-stale': requeueStale,
  'count-figures': countFiguresJob,
  'forget-upserts': forgetUpserts,
  'forget-reports': forgetReports,
  'forget-sessions': forgetSessions,
  'forget-messages': forgetMessages,
  'review-suppressions': reviewSuppressions,
}
