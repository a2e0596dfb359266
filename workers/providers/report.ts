/**
 * What a provider adapter makes of a raw report: neutral events, as the code in db/ that applies them takes them.
 * Nothing outside workers/providers knows a provider's words. Must not import an adapter.
 */

import type { ReportedPause } from '../../db/delivery/senders/reported-pauses.ts'
import type { ReportedEmail } from '../../db/messages/emails/apply-events.ts'
import type { ReportedStatus } from '../../db/messages/whatsapp/apply-events.ts'
import type { TemplateChange, TemplateNews } from '../../db/messages/whatsapp/templates.sql.ts'

/** A raw report as a hook stored it. */
export type RawReport = { body: Buffer; received_at: Date }

export type ReportedEvent =
  | ({ channel: 'email' } & ReportedEmail)
  | ({ channel: 'whatsapp' } & ReportedStatus)
  | ({ channel: 'whatsapp-template' } & TemplateNews)
  | ({ channel: 'whatsapp-template-change' } & TemplateChange)
  | ({ channel: 'sender' } & ReportedPause)

/** Turns one raw report into its events. @throws Error when it cannot be read: such a report is parked. */
export type ReportReader = (report: RawReport) => Promise<ReportedEvent[]>
