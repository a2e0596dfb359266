/**
 * The channels that messages go out by. Code that does something for every channel walks over these lists and names
 * none of them. To add a channel: its facts (facts.ts), a value here, its job in db/queue/jobs.ts, and how a worker
 * sends it in workers/registry.ts. Must not know what a message says, nor a provider.
 */
import type { Channel, Deliverable } from './channel.sql.ts'
import { BROADCAST, EMAIL } from './email.sql.ts'
import { WEBHOOK, WEBHOOK_SENDERS } from './webhook.sql.ts'
import { WHATSAPP } from './whatsapp.sql.ts'

/** Every channel, in the order in which pages and sweeps take them. */
export const CHANNELS: readonly Channel[] = [EMAIL, WHATSAPP]

/** The queues of channels: email has two. */
export const CHANNEL_QUEUES: readonly Channel[] = [EMAIL, BROADCAST, WHATSAPP]

/** Every queue that delivers, with what it delivers: for whatever walks over queues. */
export const DELIVERIES: readonly Deliverable[] = [...CHANNEL_QUEUES, WEBHOOK]

/** How the key of a sender of broadcasts ends: it begins as that of the single emails' sender beside it. */
export const BULK = ':bulk'

/** What a sender of this key delivers: email's keys begin with their provider, another channel's with its name. */
const deliveryOf = (key: string): Deliverable => {
  if (key.startsWith(WEBHOOK_SENDERS)) return WEBHOOK
  if (key.endsWith(BULK)) return BROADCAST
  return CHANNELS.find((channel) => key.startsWith(`${channel.name}:`)) ?? EMAIL
}

/** Whether a sender of this key sends what a queue delivers. */
export const sendsFor = ({ job }: Deliverable, key: string): boolean => deliveryOf(key).job === job
