/** The facts of the WhatsApp channel that need no query: names, statuses and quotas. Pure. */
import type { Facts } from './facts.ts'

/** Lowest status first. Proof of delivery overrides a failure, and a late `sent` changes nothing. */
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
  /** Reports of a number's own hook have their own provider name, so that older versions ignore them. */
  providers: ['whatsapp', 'whatsapp-number'],
  provider_names: { whatsapp: 'WhatsApp', 'whatsapp-number': 'teams’ own WhatsApp numbers' },
  lines: ['whatsapp', 'whatsapp_batch', 'whatsapp_parts', 'whatsapp_parts_batch'],
} as const satisfies Facts
