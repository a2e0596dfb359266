/** To whom a test team sends to try things out, and what becomes of it: for the documentation, and the dashboard. */

export type TestRecipients = {
  /** Local parts, at any domain; or the last digits of a number. */
  to: readonly string[]
  /** Whether everybody else fares alike. */
  others?: true
  becomes: string
}

export const TEST_ADDRESSES: readonly TestRecipients[] = [
  { to: ['delivered'], others: true, becomes: 'delivered' },
  { to: ['opened', 'clicked'], becomes: 'delivered, then so' },
  { to: ['bounced', 'complained'], becomes: 'taken, then so; the contact is suppressed' },
  { to: ['refused'], becomes: 'refused at once' },
  { to: ['deferred'], becomes: 'put off twice, then delivered' },
]

export const TEST_NUMBERS: readonly TestRecipients[] = [
  { to: ['0101'], others: true, becomes: 'sent, delivered' },
  { to: ['0102'], becomes: 'sent, delivered, read' },
  { to: ['0103'], becomes: 'taken, then failed' },
  { to: ['0104'], becomes: 'refused at once' },
  { to: ['0105'], becomes: 'put off twice, then delivered' },
  { to: ['0106'], becomes: 'put off once, then delivered' },
  { to: ['0107'], becomes: 'taken, and nothing more is heard' },
]
