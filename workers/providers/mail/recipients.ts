/** Prepares recipients for a server. Pure. A string is one address or invalid. */
import { parseAddress, toWireAddress } from '../../../db/validation/address.ts'
import type { Outcome } from '../provider.ts'

const NO_ADDRESS: Outcome = { kind: 'refused', detail: 'not an email address', effect: 'none' }

/** Returns the address for the server. Null unless the string is exactly one address. */
export function wireAddress(address: string): string | null {
  return parseAddress(address) === null ? null : toWireAddress(address)
}

/**
 * Maps the recipients of one attempt to the addresses for the server, and the server's results back to recipients.
 */
export function wireRecipients(recipients: readonly string[]) {
  const wire = new Map(recipients.map((recipient) => [recipient, wireAddress(recipient)]))
  return {
    to: [...new Set(wire.values())].filter((address) => address !== null),
    /** Returns an outcome per recipient: its address's in `found`, or a rejection if it isn't an address. */
    outcomes: (found: ReadonlyMap<string, Outcome>): Map<string, Outcome> =>
      new Map([...wire].map(([recipient, address]) => [recipient, found.get(address ?? '') ?? NO_ADDRESS])),
  }
}
