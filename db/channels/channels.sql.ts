/**
 * The channels. To add a channel, write its own files (facts and tables here, messages, sends, page, hook, delivery,
 * provider), and add a line to list.ts, queues.ts and this file, db/queue/jobs.ts, events/webhooks.ts,
 * db/messages/apply-reports.ts, db/admin/main.ts; api/sends/accepts.ts, api/v1/routes.ts, api/hooks/list.ts,
 * api/dashboard/routes.ts; workers/registry.ts, workers/providers/list.ts. test/db/channels/channels.test.ts reports
 * missing lines.
 */
import type { Channel, Deliverable, DeliveryJob } from './channel.sql.ts'
import { BROADCAST, EMAIL, TEST_EMAIL } from './email.sql.ts'
import { WEBHOOK, WEBHOOK_SENDERS } from './webhook.sql.ts'
import { NUMBER_WHATSAPP, PARTS_WHATSAPP, TEST_WHATSAPP, WHATSAPP } from './whatsapp.sql.ts'

/** Every channel, in the order of pages and sweeps. */
export const CHANNELS: readonly Channel[] = [EMAIL, WHATSAPP]

/** The queues of channels. Email has two, WhatsApp three, and each channel has one for test teams. */
export const CHANNEL_QUEUES: readonly Channel[] = [
  ...[EMAIL, BROADCAST],
  ...[WHATSAPP, PARTS_WHATSAPP, NUMBER_WHATSAPP],
  ...[TEST_EMAIL, TEST_WHATSAPP],
]

export const queuesOf = ({ name }: Channel): DeliveryJob[] =>
  CHANNEL_QUEUES.filter((own) => own.name === name).map(({ job }) => job)

export const BROADCAST_QUEUES = [BROADCAST, TEST_EMAIL] as const

/** Every delivery queue, with its kind of message. */
export const DELIVERIES: readonly Deliverable[] = [...CHANNEL_QUEUES, WEBHOOK]

/** Returns the channel itself, or its simulator for a test team. */
export const servedBy = (channel: Deliverable, { test }: { test: boolean }): Deliverable =>
  channel.test === test
    ? channel
    : (CHANNEL_QUEUES.find((own) => own.test === test && own.name === channel.name) ?? channel)

export function deliveryFrom<J extends DeliveryJob>(job: J): Deliverable<J> {
  const found = DELIVERIES.find((one) => one.job === job)
  if (!found) throw new Error(`nothing is delivered from ${job}`)
  return found as Deliverable as Deliverable<J>
}

/** The prefix of the simulator's sender keys: `test:<channel>`. */
export const TEST_SENDERS = 'test:'

/** The suffix of the key of a broadcast sender. The rest is the key of the sender for single emails. */
export const BULK = ':bulk'

/** Returns the channel of a sender key, by the name or the email provider at its start. */
const findDelivery = (key: string): Deliverable => {
  if (key.startsWith(WEBHOOK_SENDERS)) return WEBHOOK
  if (key.startsWith(TEST_SENDERS))
    return key === `${TEST_SENDERS}${TEST_WHATSAPP.name}` ? TEST_WHATSAPP : TEST_EMAIL
  if (key.endsWith(BULK)) return BROADCAST
  return CHANNELS.find((channel) => key.startsWith(`${channel.name}:`)) ?? EMAIL
}

/**
 * Returns a sender's channel, and its group of jobs if it shares the queue. @param number the name of its WhatsApp
 * number.
 */
export const deliveryOfSender = (
  key: string,
  number: string | null,
): { channel: Deliverable; group: string | null } =>
  number === null || number === 'default'
    ? { channel: findDelivery(key), group: null }
    : { channel: NUMBER_WHATSAPP, group: key }

/** True if a delivery uses the sender with this key. */
export function sendsFor({ job }: Deliverable, key: string): boolean {
  const found = findDelivery(key)
  return (
    found.job === job || (found === WHATSAPP && (job === PARTS_WHATSAPP.job || job === NUMBER_WHATSAPP.job))
  )
}
