/**
 * The channels that messages go out by. Code that does something for every channel walks over these lists and names
 * none of them. Must not know what a message says, nor a provider.
 *
 * To add a channel, beside files of its own (facts and tables here, messages, sends, page, hook, delivery, provider):
 * a line in each of list.ts, queues.ts and this file, db/queue/jobs.ts, events/webhooks.ts,
 * db/messages/apply-reports.ts, db/admin/main.ts; api/sends/accepts.ts, api/v1/routes.ts, api/hooks/list.ts,
 * api/dashboard/routes.ts; workers/registry.ts, workers/providers/list.ts. test/db/channels/channels.test.ts says what
 * is missing.
 */
import type { Channel, Deliverable, DeliveryJob } from './channel.sql.ts'
import { BROADCAST, EMAIL, TEST_EMAIL } from './email.sql.ts'
import { WEBHOOK, WEBHOOK_SENDERS } from './webhook.sql.ts'
import { NUMBER_WHATSAPP, TEST_WHATSAPP, WHATSAPP } from './whatsapp.sql.ts'

/** Every channel, in the order in which pages and sweeps take them. */
export const CHANNELS: readonly Channel[] = [EMAIL, WHATSAPP]

/** The queues of channels: email and WhatsApp have two each, and each channel has one for test teams. */
export const CHANNEL_QUEUES: readonly Channel[] = [
  ...[EMAIL, BROADCAST],
  ...[WHATSAPP, NUMBER_WHATSAPP],
  ...[TEST_EMAIL, TEST_WHATSAPP],
]

/** Every queue that the messages of a channel leave by. */
export const queuesOf = ({ name }: Channel): DeliveryJob[] =>
  CHANNEL_QUEUES.filter((own) => own.name === name).map(({ job }) => job)

export const BROADCAST_QUEUES = [BROADCAST, TEST_EMAIL] as const

/** Every queue that delivers, with what it delivers: for whatever walks over queues. */
export const DELIVERIES: readonly Deliverable[] = [...CHANNEL_QUEUES, WEBHOOK]

/** What delivers a channel's messages for such a team: what was given, or what stands in for it in a test team. */
export const servedBy = (channel: Deliverable, { test }: { test: boolean }): Deliverable =>
  channel.test === test
    ? channel
    : (CHANNEL_QUEUES.find((own) => own.test === test && own.name === channel.name) ?? channel)

export function deliveryFrom<J extends DeliveryJob>(job: J): Deliverable<J> {
  const found = DELIVERIES.find((one) => one.job === job)
  if (!found) throw new Error(`nothing is delivered from ${job}`)
  // Found by its job.
  return found as Deliverable as Deliverable<J>
}

/** How the keys of the simulator's senders begin: `test:<channel>`. */
export const TEST_SENDERS = 'test:'

/** How the key of a sender of broadcasts ends: it begins as that of the single emails' sender beside it. */
export const BULK = ':bulk'

/** What a sender of this key delivers: email's keys begin with their provider, another channel's with its name. */
const deliveryOf = (key: string): Deliverable => {
  if (key.startsWith(WEBHOOK_SENDERS)) return WEBHOOK
  if (key.startsWith(TEST_SENDERS))
    return key === `${TEST_SENDERS}${TEST_WHATSAPP.name}` ? TEST_WHATSAPP : TEST_EMAIL
  if (key.endsWith(BULK)) return BROADCAST
  return CHANNELS.find((channel) => key.startsWith(`${channel.name}:`)) ?? EMAIL
}

/** Whether a delivery goes out through the sender of this key. */
export function sendsFor({ job }: Deliverable, key: string): boolean {
  const found = deliveryOf(key)
  return found.job === job || (found.job === WHATSAPP.job && job === NUMBER_WHATSAPP.job)
}
