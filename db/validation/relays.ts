/**
 * The hosted relays whose reports we accept, and the header that each relay copies into its reports. A worker adds
 * the header, and the API rejects it in requests.
 */
import { keysOf } from './keys.ts'
export const RELAY_HEADERS = {
  mailgun: 'X-Mailgun-Variables',
  sendgrid: 'X-SMTPAPI',
  postmark: 'X-PM-Metadata-heliograph',
  brevo: 'X-Mailin-custom',
} as const

export type Relay = keyof typeof RELAY_HEADERS

export const RELAYS = keysOf(RELAY_HEADERS)
