/**
 * The ladder of email statuses (contract §3.2, decisions: statuses). Pure.
 * A report moves a row up and never down, so any order and any number of repeats end in the same state.
 */

/** Lowest rung first. */
export const EMAIL_LADDER = [
  'queued',
  'sent',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'complained',
] as const
export type EmailStatus = (typeof EMAIL_LADDER)[number]

/** What can happen to an email; those that name a status move the row to it, the others only tell. */
export const EMAIL_EVENTS = [
  'sent',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'complained',
  'deferred',
  'unknown',
  'delayed',
  'requeued',
  'gave_up',
] as const
export type EmailEventKind = (typeof EMAIL_EVENTS)[number]

/** The status an event lifts its row to; `queued`, the lowest, when it moves nothing. */
export const statusOfEvent = (kind: EmailEventKind): EmailStatus =>
  EMAIL_LADDER.find((status) => status === kind) ?? 'queued'

/** The higher of two rungs. */
export const higherStatus = (one: EmailStatus, other: EmailStatus): EmailStatus =>
  EMAIL_LADDER.indexOf(one) >= EMAIL_LADDER.indexOf(other) ? one : other
