/** Types of webhooks, and the type of each domain event. Pure. */
import type { Facts } from '../facts.ts'
import { CHANNEL_FACTS, type ChannelFacts } from '../list.ts'
import type { DomainEvent } from './domain-event.ts'

type TypeOf<F extends ChannelFacts> = F extends ChannelFacts ? `${F['name']}.${F['webhooks'][number]}` : never

/** The event types that an endpoint can receive. `webhook.test` can be sent to any. */
export const WEBHOOK_TYPES = [
  ...CHANNEL_FACTS.flatMap(({ name, webhooks, webhooks_apart }) => [
    ...webhooks.map((what) => `${name}.${what}` as TypeOf<ChannelFacts>),
    ...webhooks_apart,
  ]),
  ...['contact.unsubscribed', 'contact.resubscribed', 'contact.suppressed', 'contact.released'],
  'contact.topics_left',
  ...['broadcast.started', 'broadcast.paused', 'broadcast.sent', 'broadcast.cancelled'],
  'domain.failing',
  'team.reputation',
] as const
export type WebhookType = (typeof WEBHOOK_TYPES)[number]

export const ALL_TYPES = '*'
export const TEST_TYPE = 'webhook.test'

const findFacts = (subject: string): Facts | undefined => CHANNEL_FACTS.find(({ name }) => name === subject)

/** Returns the webhook type of a domain event, or null if webhooks don't include it. */
export function toWebhookType({ subject, kind }: DomainEvent): WebhookType | null {
  const name = subject === 'other' ? kind : `${subject}.${findFacts(subject)?.webhook_names[kind] ?? kind}`
  return WEBHOOK_TYPES.find((type) => type === name) ?? null
}

/** Returns the rank of an event. Receivers keep the highest, whatever the order of arrival. */
export const rankOf = ({ subject, kind }: { subject: string; kind: string }): number =>
  Math.max(0, findFacts(subject)?.ladder.indexOf(kind) ?? 0)
