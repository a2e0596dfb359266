/** The recipients of the simulator for test teams and their results, for the documentation and the dashboard. */

/**
 * `to` is a local part at any domain, or the last digits of a number. `others` is true if all other recipients get the
 * same result. `ends` is its last status in the API, and `shown` the state on the dashboard if it differs.
 */
type TestRecipient = { to: string; becomes: string; ends: string; shown?: string; others?: true }

export const TEST_ADDRESSES: readonly TestRecipient[] = [
  { to: 'delivered', becomes: 'delivered', ends: 'delivered', others: true },
  { to: 'opened', becomes: 'delivered, then opened', ends: 'opened' },
  { to: 'clicked', becomes: 'delivered, then clicked', ends: 'clicked' },
  { to: 'bounced', becomes: 'accepted, then bounced. The contact is suppressed', ends: 'bounced' },
  {
    to: 'suppressed',
    becomes: 'not sent, like an address with a hard bounce',
    ends: 'bounced',
    shown: 'skipped',
  },
  {
    to: 'complained',
    becomes: 'delivered, then reported as spam. The contact is suppressed',
    ends: 'complained',
  },
  { to: 'refused', becomes: 'rejected immediately', ends: 'bounced' },
  { to: 'deferred', becomes: 'deferred twice, then delivered', ends: 'delivered' },
]

export const TEST_NUMBERS: readonly TestRecipient[] = [
  { to: '0101', becomes: 'sent, delivered', ends: 'delivered', others: true },
  { to: '0102', becomes: 'sent, delivered, read', ends: 'read' },
  { to: '0103', becomes: 'accepted, then failed', ends: 'failed' },
  { to: '0104', becomes: 'rejected immediately', ends: 'failed' },
  { to: '0105', becomes: 'deferred twice, then delivered', ends: 'delivered' },
  { to: '0106', becomes: 'deferred once, then delivered', ends: 'delivered' },
  { to: '0107', becomes: 'accepted, without any reports', ends: 'queued', shown: 'accepted' },
]
