/** Types of domain events: changes of messages, contacts and other objects, which are published to webhooks. */
import type { ChannelFacts, ChannelName } from '../list.ts'

type What = {
  team_id: string
  id: string
  /** When it happened, by the clock of its reporter. */
  occurred_at: Date
  /** The provider's message, or ours. */
  detail: string
}

/** A new event of a message. `recipient` null: it is about all recipients. */
type MessageHappening = What & { subject: ChannelName | 'webhook'; kind: string; recipient: string | null }

/** A change of a contact's subscriptions. */
export type ContactEvent = Omit<What, 'id'> & {
  subject: 'contact'
  /** Null if the address isn't a contact. */
  id: string | null
  kind: 'unsubscribed' | 'resubscribed' | 'suppressed' | 'released' | 'topics_left'
  topic_ids?: readonly string[] | undefined
  /** The address and why it is suppressed, for changes of an address. */
  about?: { email: string; cause?: string; email_id?: string | null } | undefined
}

export type BroadcastEvent = What & {
  subject: 'broadcast'
  kind: 'started' | 'paused' | 'sent' | 'cancelled'
  /** Its current data, including its stats. */
  about: {
    name: string
    from: string
    subject: string
    tags: readonly string[]
    template_id: string
    idempotency_key: string | null
    audience: number | null
    stats: Readonly<Record<string, number>>
  }
}

type SendingDomainEvent = What & {
  subject: 'domain'
  kind: 'failing'
  /** Its name, and its DKIM record: host, expected value, published value, and since when. */
  about: {
    name: string
    host: string
    value: string
    state: 'missing' | 'different'
    missing_since: string | null
  }
}

/** A team's bounces or complaints exceed a limit. */
type TeamHappening = What & {
  subject: 'team'
  kind: 'reputation'
  /** Over the last 24 hours. `paused`: true if these shares paused its bulk email. */
  about: { bounce_percent: number; complaint_percent: number; sent: number; paused: boolean }
}

/** An event with its own type. `about` is the complete data of its webhook. */
type OtherHappening = Omit<What, 'id'> & {
  subject: 'other'
  id: string | null
  kind: ChannelFacts['webhooks_apart'][number]
  about: object
}

export type DomainEvent =
  | OtherHappening
  | MessageHappening
  | ContactEvent
  | BroadcastEvent
  | SendingDomainEvent
  | TeamHappening
