/** Defines the header in which each relay returns an email's signed reference with its reports. Pure. */
import { RELAY_HEADERS, type Relay } from '../../../db/validation/relays.ts'
import type { OutgoingEmail } from '../provider.ts'

/** The key of the reference in a header with several values. */
export const OWN_NAME = 'heliograph'

const VALUES: Record<Relay, (reference: string) => string> = {
  mailgun: (reference) => JSON.stringify({ [OWN_NAME]: reference }),
  sendgrid: (reference) => JSON.stringify({ unique_args: { [OWN_NAME]: reference } }),
  postmark: (reference) => reference,
  brevo: (reference) => reference,
}

export const relayHeaderLine = (relay: Relay, reference: string): string =>
  `${RELAY_HEADERS[relay]}: ${VALUES[relay](reference)}`

/** Removes a custom header of this name. The email may have been accepted before the relay was configured. */
export function withoutRelayHeader(relay: Relay, email: OutgoingEmail): OutgoingEmail {
  const own = RELAY_HEADERS[relay].toLowerCase()
  const kept = Object.entries(email.headers ?? {}).filter(([name]) => name.toLowerCase() !== own)
  return { ...email, headers: email.headers && Object.fromEntries(kept) }
}
