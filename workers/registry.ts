/** Every job and its handler, as an explicit list: who works on what, and how many at a time. */

import type { FetchedJob, Settlement } from '../db/queue/boss.ts'
import type { JobName, ScheduleName } from '../db/queue/jobs.ts'
import type { WorkerDeps } from './deps.ts'
import { countFiguresJob } from './jobs/count-figures.ts'
import { deliverEmails } from './jobs/deliver-email.ts'
import { deliverWhatsapp } from './jobs/deliver-whatsapp.ts'
import { forgetMessages } from './jobs/forget-messages.ts'
import { forgetReports } from './jobs/forget-reports.ts'
import { forgetSessions } from './jobs/forget-sessions.ts'
import { forgetUpserts } from './jobs/forget-upserts.ts'
import { ingestReports } from './jobs/ingest-report.ts'
import { requeueStale } from './jobs/requeue-stale.ts'
import { reviewSuppressions } from './jobs/review-suppressions.ts'
import { syncWhatsappTemplates } from './jobs/sync-whatsapp-templates.ts'
import { runUpserts } from './jobs/upsert-contacts.ts'

export type Handler<J extends JobName> = (jobs: FetchedJob<J>[], deps: WorkerDeps) => Promise<Settlement[]>

/**
 * How a process works on a queue: batches of `batchSize` in so many loops. A batch ends with its slowest message, so
 * delivery has more loops than the provider calls at once (slots.ts) fill: two slow servers hold up two batches only.
 */
type Registration<J extends JobName> = { handle: Handler<J>; batchSize: number; loops: number }

export const HANDLERS: { [J in JobName]: Registration<J> } = {
  'deliver-email': { handle: deliverEmails, batchSize: 10, loops: 10 },
  'deliver-whatsapp': { handle: deliverWhatsapp, batchSize: 10, loops: 10 },
  'sync-whatsapp-templates': { handle: syncWhatsappTemplates, batchSize: 5, loops: 1 },
  'ingest-report': { handle: ingestReports, batchSize: 100, loops: 2 },
  'upsert-contacts': { handle: runUpserts, batchSize: 5, loops: 4 },
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
