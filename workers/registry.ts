/** Lists every job and its worker explicitly: batches of jobs for a handler, or the delivery of a channel. */

import { EMAIL } from '../db/channels/email.sql.ts'
import type { JobName, ScheduleName, SharedJob } from '../db/queue/jobs.ts'
import type { Handler } from './batches/batches.ts'
import { broadcastChannel } from './channels/deliver-broadcast.ts'
import { emailChannel } from './channels/deliver-email.ts'
import { testEmailChannel } from './channels/deliver-test.ts'
import { testWhatsappChannel } from './channels/deliver-test-whatsapp.ts'
import { webhookChannel } from './channels/deliver-webhook.ts'
import { whatsappChannel } from './channels/deliver-whatsapp.ts'
import { numberWhatsappChannel } from './channels/deliver-whatsapp-number.ts'
import { partsWhatsappChannel } from './channels/deliver-whatsapp-parts.ts'
import type { DeliveryChannel } from './delivery/channel.ts'
import { type Delivery, startDelivery } from './delivery/engine.ts'
import { createSlots, type SlotShare } from './delivery/slots.ts'
import type { WorkerDeps } from './deps.ts'
import { checkEmail } from './jobs/check-email.ts'
import { checkWhatsappNumbers } from './jobs/check-whatsapp-numbers.ts'
import { copySuppressions } from './jobs/copy-suppressions.ts'
import { countStats } from './jobs/count-stats.ts'
import { expandBroadcasts } from './jobs/expand-broadcast.ts'
import { ingestReports } from './jobs/ingest-report.ts'
import { mailOwners } from './jobs/mail-owners.ts'
import { purgeMessages } from './jobs/purge-messages.ts'
import { purgeReports } from './jobs/purge-reports.ts'
import { purgeSessions } from './jobs/purge-sessions.ts'
import { purgeUpserts } from './jobs/purge-upserts.ts'
import { purgeWhatsappTexts } from './jobs/purge-whatsapp-texts.ts'
import { recheckDomainsJob } from './jobs/recheck-domains.ts'
import { refreshWhatsappTemplates } from './jobs/refresh-whatsapp-templates.ts'
import { requeueStale } from './jobs/requeue-stale.ts'
import { reviewSuppressions } from './jobs/review-suppressions.ts'
import { runBackgroundJobs } from './jobs/run-background-job.ts'
import { syncNumberTemplates } from './jobs/sync-whatsapp-number-templates.ts'
import { syncWhatsappTemplates } from './jobs/sync-whatsapp-templates.ts'
import { runUpserts } from './jobs/upsert-contacts.ts'

/**
 * How a process works on a queue: batches of `batchSize` in a number of loops, or its own delivery. A loop rests
 * `restMs` after a batch, because fewer and larger batches need less CPU time.
 */
export type Registration<J extends JobName> =
  | { handle: Handler<J, WorkerDeps>; batchSize: number; loops: number; restMs?: number }
  | { deliver: (deps: WorkerDeps, slots: SlotShares) => Delivery }

export type SlotShares = Readonly<Record<SharedJob, SlotShare>>

/**
 * Opens the slots of a process. Emails share theirs, and broadcasts get half at most, so that single emails go first.
 * The messages of the default WhatsApp number share theirs. Webhooks yield to messages that someone waits for.
 */
export function openSlots({ concurrency, webhooks }: WorkerDeps): SlotShares {
  const emails = createSlots(concurrency)
  const single = emails.share()
  const defaultNumber = createSlots(concurrency)
  const whatsapp = defaultNumber.share()
  const parts = defaultNumber.share()
  const numbers = createSlots(concurrency).share()
  return {
    'deliver-email': single,
    'deliver-broadcast': emails.share({ most: 0.5 }),
    'deliver-whatsapp': whatsapp,
    'deliver-whatsapp-parts': parts,
    'deliver-whatsapp-number': numbers,
    'deliver-test': createSlots(concurrency).share(),
    'deliver-test-whatsapp': createSlots(concurrency).share(),
    'deliver-webhook': createSlots(webhooks.concurrency).share({ prior: [single, whatsapp, parts, numbers] }),
  }
}

/** Makes a channel's delivery in the slots of its queue. */
const delivery = <J extends SharedJob, A>(channelOf: (deps: WorkerDeps) => DeliveryChannel<J, A>) => ({
  deliver(deps: WorkerDeps, slots: SlotShares): Delivery {
    const channel = channelOf(deps)
    return startDelivery(channel, deps, slots[channel.channel.job])
  },
})

export const JOB_HANDLERS: { [J in JobName]: Registration<J> } = {
  'deliver-email': delivery((deps) => emailChannel(EMAIL, deps)),
  'deliver-broadcast': delivery(broadcastChannel),
  'deliver-whatsapp': delivery(whatsappChannel),
  'deliver-whatsapp-parts': delivery(partsWhatsappChannel),
  'deliver-whatsapp-number': delivery(numberWhatsappChannel),
  'deliver-test': delivery(testEmailChannel),
  'deliver-test-whatsapp': delivery(testWhatsappChannel),
  'deliver-webhook': delivery(webhookChannel),
  'sync-whatsapp-templates': { handle: syncWhatsappTemplates, batchSize: 50, loops: 1 },
  'sync-whatsapp-number-templates': { handle: syncNumberTemplates, batchSize: 50, loops: 1 },
  'ingest-report': { handle: ingestReports, batchSize: 100, loops: 1, restMs: 50 },
  'upsert-contacts': { handle: runUpserts, batchSize: 5, loops: 4 },
  'run-background-job': { handle: runBackgroundJobs, batchSize: 1, loops: 2 },
  'expand-broadcast': { handle: expandBroadcasts, batchSize: 1, loops: 2 },
  'mail-owners': { handle: mailOwners, batchSize: 10, loops: 1 },
  'check-email': { handle: checkEmail, batchSize: 10, loops: 1 },
}

export const SCHEDULED_JOBS: Record<ScheduleName, (deps: WorkerDeps) => Promise<void>> = {
  'requeue-stale': requeueStale,
  'purge-whatsapp-texts': purgeWhatsappTexts,
  'count-stats': countStats,
  'purge-upserts': purgeUpserts,
  'purge-reports': purgeReports,
  'purge-sessions': purgeSessions,
  'purge-messages': purgeMessages,
  'review-suppressions': reviewSuppressions,
  'copy-suppressions': copySuppressions,
  'check-whatsapp-numbers': checkWhatsappNumbers,
  'refresh-whatsapp-templates': refreshWhatsappTemplates,
  'recheck-domains': recheckDomainsJob,
}
