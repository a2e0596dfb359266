/** Display names and descriptions of queues. Pure. */

import type { JobName } from '../../../../db/queue/jobs.ts'
import { headed } from '../../components/cell.ts'

const QUEUES: Readonly<Record<string, readonly [name: string, about: string]>> = {
  'deliver-email': ['Emails', 'Sends single emails and batches.'],
  'deliver-broadcast': ['Broadcasts', 'Sends emails of broadcasts.'],
  'deliver-whatsapp': ['WhatsApp', 'Sends WhatsApp messages from the default number.'],
  'deliver-whatsapp-parts': [
    'WhatsApp with media or named variables',
    'Sends WhatsApp messages with media or named variables. It is paused together with WhatsApp.',
  ],
  'deliver-whatsapp-number': [
    'WhatsApp of teams’ own numbers',
    'Sends WhatsApp messages from teams’ own numbers.',
  ],
  'deliver-webhook': ['Webhooks', 'Sends events to the webhooks of teams.'],
  'sync-whatsapp-templates': ['WhatsApp template sync', 'Copies templates from Meta to teams.'],
  'sync-whatsapp-number-templates': [
    'Template sync of teams’ own numbers',
    'Copies templates of teams’ own numbers from Meta.',
  ],
  'deliver-test': ['Simulated emails', 'Simulates emails of test teams.'],
  'deliver-test-whatsapp': ['Simulated WhatsApp', 'Simulates WhatsApp messages of test teams.'],
  'ingest-report': [
    'Delivery reports',
    'Reads reports of providers about deliveries, bounces and complaints.',
  ],
  'upsert-contacts': ['Contact upserts', 'Stores contacts of bulk calls.'],
  'run-background-job': ['Background jobs', 'Runs imports and large bulk actions.'],
  'expand-broadcast': ['Broadcast recipients', 'Creates the emails of broadcasts.'],
  'mail-owners': ['Notices to owners', 'Emails owners of teams about problems.'],
  'check-email': ['Email checks', 'Checks the relay on request.'],
} satisfies Record<JobName, readonly [string, string]>

/** The queues that an operator watches. They are listed even if they are empty. */
export const WATCHED: readonly string[] = [
  'deliver-email',
  'deliver-broadcast',
  'deliver-whatsapp',
  'deliver-webhook',
  'ingest-report',
] satisfies JobName[]

export const queueName = (queue: string): string => QUEUES[queue]?.[0] ?? headed(queue.replaceAll('-', ' '))

/** Returns the description of a queue. Empty for a queue of a newer version. */
export const queueAbout = (queue: string): string => QUEUES[queue]?.[1] ?? ''

const DEFAULT_NUMBER_QUEUES: readonly string[] = [
  'deliver-whatsapp',
  'deliver-whatsapp-parts',
] satisfies JobName[]

/** Describes how to get a worker for a queue. The default number's queues need its settings. */
export const queueRemedy = (queue: string): string =>
  DEFAULT_NUMBER_QUEUES.includes(queue)
    ? 'Set WHATSAPP_ACCESS_TOKEN and WHATSAPP_PHONE_NUMBER_ID on a worker, so that it sends from the default number.'
    : `Start a worker with ${queue} in WORKER_QUEUES, or without WORKER_QUEUES.`
