/**
 * What a provider adapter makes of a raw report: neutral events.
 * Owns the words that the ingestion works with; nothing outside workers/providers knows a provider's own.
 * Must not import an adapter.
 */
import type { ContactEffect } from '../../db/contacts/effect.ts'
import type { EmailEventKind } from '../../db/emails/status.ts'
import type { MessageRef } from '../../db/reports/ref.ts'
import type { Provider } from '../../db/reports/table.ts'
import type { TemplateState } from '../../db/whatsapp/status.ts'

export type { ContactEffect, MessageRef }

/** A raw report as a hook stored it. */
export type RawReport = { provider: Provider; body: Buffer; received_at: Date }

/** Something that happened to an email, or to one recipient of it. */
export type ReportedEmailEvent = {
  channel: 'email'
  ref: MessageRef
  kind: EmailEventKind
  /** As the provider gives it; counts only if it is on the row. null when the report names none. */
  recipient: string | null
  occurred_at: Date
  /** The provider's words, at most 500 characters, no control characters. */
  detail: string
  /** Unique for this event of this message: a repeat of the report gives the same key. */
  event_key: string
  effect: ContactEffect
}

/** A status of a WhatsApp message. */
export type ReportedWhatsappEvent = {
  channel: 'whatsapp'
  ref: MessageRef
  status: 'sent' | 'delivered' | 'read' | 'failed'
  occurred_at: Date
  detail: string
  event_key: string
  /** The provider's id of the message, for a row that has not stored it yet; null when the report has none. */
  provider_message_id: string | null
}

/** A template's new state at the provider. */
export type ReportedTemplateEvent = {
  channel: 'whatsapp-template'
  name: string
  language: string
  status: TemplateState
  occurred_at: Date
  detail: string
}

export type ReportedEvent = ReportedEmailEvent | ReportedWhatsappEvent | ReportedTemplateEvent

/** Turns one raw report into its events. @throws Error when it cannot be read: such a report is parked. */
export type ReportReader = (report: RawReport) => Promise<ReportedEvent[]>
