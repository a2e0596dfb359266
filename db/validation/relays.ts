/**
 * Hosted relays whose reports are taken in: their names, and the one header that each hands back with its reports.
 * Both processes must agree on it: a worker adds it, the API keeps it from clients. Pure.
 */
export const RELAY_HEADERS = {
  mailgun: 'X-Mailgun-Variables',
  sendgrid: 'X-SMTPAPI',
  postmark: 'X-PM-Metadata-heliograph',
  brevo: 'X-Mailin-custom',
} as const

export type Relay = keyof typeof RELAY_HEADERS

export const RELAYS = Object.keys(RELAY_HEADERS) as Relay[]
