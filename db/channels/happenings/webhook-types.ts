/** The types of webhooks, and which of them something that happened is. Pure. */
import { EMAIL_LADDER } from '../email.ts'
import { WHATSAPP_LADDER } from '../whatsapp.ts'
import type { Happening } from './happening.ts'

/** The types of events that a team's server can get. `webhook.test` besides, which is sent to any. */
export const WEBHOOK_TYPES = [
  'email.sent',
  'email.delivered',
  'email.delivery_delayed',
  'email.bounced',
  'email.complained',
  'email.opened',
  'email.clicked',
  'email.failed',
  'whatsapp.sent',
  'whatsapp.delivered',
  'whatsapp.read',
  'whatsapp.failed',
  'contact.unsubscribed',
  'contact.resubscribed',
  'contact.suppressed',
  'contact.released',
  'broadcast.started',
  'broadcast.paused',
  'broadcast.sent',
  'broadcast.cancelled',
] as const
export type WebhookType = (typeof WEBHOOK_TYPES)[number]

/** What stands for all types. */
export const ALL_TYPES = '*'
export const TEST_TYPE = 'webhook.test'

/** The events that are called otherwise in webhooks than in timelines. */
const NAMES: Readonly<Record<string, WebhookType>> = {
  'email.deferred': 'email.delivery_delayed',
  'email.delayed': 'email.delivery_delayed',
  'email.gave_up': 'email.failed',
  'whatsapp.gave_up': 'whatsapp.failed',
}

/** The type of something that happened; null for what no webhook reports. */
export function webhookTypeOf({ subject, kind }: Happening): WebhookType | null {
  const name = `${subject}.${kind}`
  return NAMES[name] ?? WEBHOOK_TYPES.find((type) => type === name) ?? null
}

/** The rung of what happened: a receiver keeps the highest, in whatever order they arrive. */
export function rankOf({ subject, kind }: Happening): number {
  const ladder: readonly string[] = subject === 'email' ? EMAIL_LADDER : WHATSAPP_LADDER
  return Math.max(0, ladder.indexOf(kind))
}
