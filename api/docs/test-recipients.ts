/** The recipients of the simulator for test teams and their results, for the documentation and the dashboard. */

/**
 * `to` is a local part at any domain, or the last digits of a number. `others` is true if all other recipients get the
 * same result.
 */
type TestRecipient = { to: string; becomes: string; others?: true }

export const TEST_ADDRESSES: readonly TestRecipient[] = [
  { to: 'delivered', becomes: 'delivered', others: true },
  { to: 'opened', becomes: 'delivered, then opened' },
  { to: 'clicked', becomes: 'delivered, then clicked' },
  { to: 'bounced', becomes: 'accepted, then bounced. The contact is suppressed' },
  { to: 'suppressed', becomes: 'not sent, like an address with a hard bounce' },
  { to: 'complained', becomes: 'delivered, then reported as spam. The contact is suppressed' },
  { to: 'refused', becomes: 'rejected immediately' },
  { to: 'deferred', becomes: 'deferred twice, then delivered' },
]

export const TEST_NUMBERS: readonly TestRecipient[] = [
  { to: '0101', becomes: 'sent, delivered', others: true },
  { to: '0102', becomes: 'sent, delivered, read' },
  { to: '0103', becomes: 'accepted, then failed' },
  { to: '0104', becomes: 'rejected immediately' },
  { to: '0105', becomes: 'deferred twice, then delivered' },
  { to: '0106', becomes: 'deferred once, then delivered' },
  { to: '0107', becomes: 'accepted, without any reports' },
]
