/** The channel of WhatsApp, as far as it needs no statement: its words, its ladder, what a team is allowed. Pure. */
import type { Facts } from './facts.ts'

/** Lowest rung first: proof of delivery beats a stray failure, a late `sent` changes nothing. */
export const WHATSAPP_LADDER = ['queued', 'sent', 'failed', 'delivered', 'read'] as const

export const WHATSAPP_FACTS = {
  name: 'whatsapp',
  title: 'WhatsApp',
  noun: 'WhatsApp message',
  path: 'whatsapp',
  scope: 'whatsapp:send',
  ladder: WHATSAPP_LADDER,
  quota: {
    name: 'whatsapp',
    title: 'WhatsApp',
    noun: 'WhatsApp messages',
    limit: 'whatsapp_limit',
    used: 'whatsapp_used',
    defaults: { free: 250, paid: 10_000, custom: null },
  },
  webhooks: ['sent', 'delivered', 'read', 'failed'],
  webhooks_apart: ['whatsapp.opted_out', 'whatsapp.opted_in', 'whatsapp_template.category_changed'],
  webhook_names: { gave_up: 'failed' },
  /** What a number's own hook takes has a name of its own: versions before it leave such reports to newer ones. */
  providers: ['whatsapp', 'whatsapp-number'],
  lines: ['whatsapp', 'whatsapp_batch'],
} as const satisfies Facts
