/** To whom a test team sends to try things out, and what becomes of it: for the documentation, and the dashboard. */

/**
 * @param to a local part, at any domain; or a number's last digits.
 * @param others whether everybody else fares alike.
 */
type TestRecipient = { to: string; becomes: string; others?: true }

export const TEST_ADDRESSES: readonly TestRecipient[] = [
  { to: 'delivered', becomes: 'delivered', others: true },
  { to: 'opened', becomes: 'delivered, then opened' },
  { to: 'clicked', becomes: 'delivered, then clicked' },
  { to: 'bounced', becomes: 'taken, then bounced; the contact is suppressed' },
  { to: 'suppressed', becomes: 'not sent: like an address with a hard bounce' },
  { to: 'complained', becomes: 'delivered, then reported as spam; the contact is suppressed' },
  { to: 'refused', becomes: 'refused at once' },
  { to: 'deferred', becomes: 'put off twice, then delivered' },
]

export const TEST_NUMBERS: readonly TestRecipient[] = [
  { to: '0101', becomes: 'sent, delivered', others: true },
  { to: '0102', becomes: 'sent, delivered, read' },
  { to: '0103', becomes: 'taken, then failed' },
  { to: '0104', becomes: 'refused at once' },
  { to: '0105', becomes: 'put off twice, then delivered' },
  { to: '0106', becomes: 'put off once, then delivered' },
  { to: '0107', becomes: 'taken, and nothing more is heard' },
]
