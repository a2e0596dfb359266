/**
 * The channels that messages go out by. Code that does something for every channel walks over these lists and names
 * none of them. Must not know what a message says, nor a provider.
 *
 * To add a channel, beside files of its own (facts and tables here, messages, sends, page, hook, delivery, provider):
 * a line in each of list.ts and this file, db/queue/jobs.ts, happenings/webhooks.ts, db/messages/apply-reports.ts,
 * db/admin/main.ts; api/sends/accepts.ts, api/v1/routes.ts, api/hooks/list.ts, api/dashboard/routes.ts;
 * workers/registry.ts, workers/providers/list.ts. test/db/channels/channels.test.ts says what is missing.
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
