/**
 * What has just become true of a message or a contact, as it is handed on to its consumers.
 * Owns the types that both sides share. Pure; must not know who listens.
 */
import type { ChannelFacts, ChannelName } from '../list.ts'

type What = {
  team_id: string
  /** The id of the message or the contact. */
  id: string
  /** When it happened, by the clock of its reporter. */
  occurred_at: Date
  /** The provider's words, or ours. */
  detail: string
}

/** An event of a message that was never stored before. `recipient` null: it is about the whole message. */
type MessageHappening = What & { subject: ChannelName | 'webhook'; kind: string; recipient: string | null }

/** A change of what a contact gets from us. */
export type ContactEvent = Omit<What, 'id'> & {
  subject: 'contact'
  /** Null if the address is no contact. */
  id: string | null
  kind: 'unsubscribed' | 'resubscribed' | 'suppressed' | 'released' | 'topics_left'
  topic_ids?: readonly string[] | undefined
  /** The address, and why it is suppressed, where the change is the address's. */
  about?: { email: string; cause?: string; email_id?: string | null } | undefined
}

export type BroadcastEvent = What & {
  subject: 'broadcast'
  kind: 'started' | 'paused' | 'sent' | 'cancelled'
  /** What is known of it at that moment, its stats too. */
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

/** What became of a sending domain. */
type SendingDomainEvent = What & {
  subject: 'domain'
  kind: 'failing'
  /** Its name, and its DKIM record: where, what belongs there, what DNS has instead, since when. */
  about: {
    name: string
    host: string
    value: string
    state: 'missing' | 'different'
    missing_since: string | null
  }
}

/** That much of a team's email bounces or is complained about. */
type TeamHappening = What & {
  subject: 'team'
  kind: 'reputation'
  /** Of the last 24 hours. `paused`: whether its bulk email is paused for it. */
  about: { bounce_percent: number; complaint_percent: number; sent: number; paused: boolean }
}

/** Something that no other subject has: its type says what, and `about` is all that a webhook says of it. */
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
