/**
 * Selects the simulated result of a WhatsApp message by its number, in test teams and in the sandbox. Pure.
 * It uses neutral terms (magic-recipients.ts). The last four digits decide. Any other number behaves like the
 * first:
 * - 0101 is accepted, then reported as sent and delivered. 0102: sent, delivered and read.
 * - 0103 is accepted, then reported as failed (131026, undeliverable). 0104 is rejected at once (131026).
 * - 0105 is rate limited twice (130429), then accepted and delivered.
 * - 0106 is deferred once because of too many messages to it (131056), then accepted and delivered.
 * - 0107 is accepted, and never reported on.
 */

export type WhatsappReply = 'taken' | 'undeliverable' | 'too fast' | 'too many to it'
export type WhatsappReport = 'sent' | 'delivered' | 'read' | 'failed'

export const FAULT_CODES = { undeliverable: 131026, 'too fast': 130429, 'too many to it': 131056 } as const
export const UNDELIVERABLE = {
  title: 'Message undeliverable',
  details: 'Message Undeliverable. The number may not be on WhatsApp.',
} as const

const WHATSAPP_REPORTS = new Map<string, readonly WhatsappReport[]>([
  ['0102', ['sent', 'delivered', 'read']],
  ['0103', ['failed']],
  ['0107', []],
])

/** Returns the response to a message to a number. @param tries the number of earlier deferrals. */
export function whatsappReply(to: string, tries: number): WhatsappReply {
  const digits = to.slice(-4)
  if (digits === '0104') return 'undeliverable'
  if (digits === '0105' && tries < 2) return 'too fast'
  return digits === '0106' && tries < 1 ? 'too many to it' : 'taken'
}

/** Returns the reports for an accepted message to a number, in order. */
export const whatsappReports = (to: string): readonly WhatsappReport[] =>
  WHATSAPP_REPORTS.get(to.slice(-4)) ?? ['sent', 'delivered']
