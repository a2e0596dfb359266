/**
 * Recipients as a server may see them. Pure.
 * Promises: a string stands for one address or for none, however a provider might read it.
 */
import { parseAddress, toWireAddress } from '../../../db/validation/address.ts'
import type { Outcome } from '../provider.ts'

const NO_ADDRESS: Outcome = { kind: 'refused', detail: 'not one email address', effect: 'none' }

/** The address as a server may see it, or null when the string is anything but one address. */
export function wireAddress(address: string): string | null {
  return parseAddress(address) === null ? null : toWireAddress(address)
}

/** The recipients of one attempt: the addresses to name to a server, and the way back from what it made of them. */
export function wireRecipients(recipients: readonly string[]) {
  const wire = new Map(recipients.map((recipient) => [recipient, wireAddress(recipient)]))
  return {
    to: [...new Set(wire.values())].filter((address) => address !== null),
    /** An outcome for each recipient: its address's among those of `found`, or a refusal of what is none. */
    outcomes: (found: ReadonlyMap<string, Outcome>): Map<string, Outcome> =>
      new Map([...wire].map(([recipient, address]) => [recipient, found.get(address ?? '') ?? NO_ADDRESS])),
  }
}
