/**
 * What becomes of WhatsApp messages where nothing is delivered: in test teams and in the sandbox, by the number that a
 * message is to. Pure; must not know how it is said (magic-recipients.ts).
 *
 * The last four digits of a number; any other number behaves like the first:
 * - 0101 is taken, then reported sent and delivered. 0102: sent, delivered and read.
 * - 0103 is taken, then reported failed (131026, undeliverable). 0104 is refused at once (131026).
 * - 0105 is rate limited twice (130429), then taken and delivered.
 * - 0106 is put off once because of too many messages to it (131056), then taken and delivered.
 * - 0107 is taken, and nothing is ever reported of it.
 */

export type WhatsappReply = 'taken' | 'undeliverable' | 'too fast' | 'too many to it'
export type WhatsappReport = 'sent' | 'delivered' | 'read' | 'failed'

/** The provider's codes for these. */
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

/** How a message to a number is answered. @param tries how often it was put off before. */
export function whatsappReply(to: string, tries: number): WhatsappReply {
  const digits = to.slice(-4)
  if (digits === '0104') return 'undeliverable'
  if (digits === '0105' && tries < 2) return 'too fast'
  return digits === '0106' && tries < 1 ? 'too many to it' : 'taken'
}

/** What is reported of a message to a number once it was taken, in order. */
export const whatsappReports = (to: string): readonly WhatsappReport[] =>
  WHATSAPP_REPORTS.get(to.slice(-4)) ?? ['sent', 'delivered']
