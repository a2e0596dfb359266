/** Display names of queues. Pure. */

import type { JobName } from '../../../../db/queue/jobs.ts'
import { headed } from '../../components/cell.ts'

const NAMES: Readonly<Record<string, string>> = {
  'deliver-email': 'Emails',
  'deliver-broadcast': 'Broadcasts',
  'deliver-whatsapp': 'WhatsApp',
  'deliver-whatsapp-parts': 'WhatsApp with media or named variables',
  'deliver-whatsapp-number': 'WhatsApp of teams’ own numbers',
  'deliver-webhook': 'Webhooks',
  'sync-whatsapp-templates': 'WhatsApp template sync',
  'sync-whatsapp-number-templates': 'Template sync of own numbers',
  'deliver-test': 'Simulated emails',
  'deliver-test-whatsapp': 'Simulated WhatsApp',
  'ingest-report': 'Delivery reports',
  'upsert-contacts': 'Contact upserts',
  'run-background-job': 'Background jobs',
  'expand-broadcast': 'Broadcast recipients',
  'mail-owners': 'Notices to owners',
  'check-email': 'Email checks',
} satisfies Partial<Record<JobName, string>>

/** The queues that an operator watches. They are listed even if they are empty. */
export const WATCHED: readonly string[] = [
  'deliver-email',
  'deliver-broadcast',
  'deliver-whatsapp',
  'deliver-webhook',
  'ingest-report',
] satisfies JobName[]

export const queueName = (queue: string): string => NAMES[queue] ?? headed(queue.replaceAll('-', ' '))
