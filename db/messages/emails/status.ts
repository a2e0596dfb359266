/** The order of email statuses (DECISIONS: Statuses), and the events of an email. Pure. */
import { EMAIL_LADDER } from '../../channels/email.ts'
import { createLadder } from '../../channels/status-order.ts'

export type EmailStatus = (typeof EMAIL_LADDER)[number]

/** The events of an email. Those that name a status can raise it. The others are for information. */
export type EmailEventKind =
  | Exclude<EmailStatus, 'queued'>
  | 'deferred'
  | 'held'
  | 'unknown'
  | 'delayed'
  | 'suppressed'
  | 'requeued'
  /** A report about the email that could not be parsed. */
  | 'unreadable'
  /** An automatic reply, such as an out-of-office message. */
  | 'auto_reply'
  /** Through a link or a list of the provider. */
  | 'unsubscribed'
  /** By a proxy or a scanner, not by the recipient. */
  | 'machine_opened'
  | 'machine_clicked'
  | 'gave_up'
  | LinkKind

/** True for statuses that few emails have. A team's emails with one have their own index (`rare_status`). */
export const isRare = (status: EmailStatus | undefined): boolean =>
  status === 'bounced' || status === 'complained'

const ladder = createLadder<EmailStatus>(EMAIL_LADDER)

/** Returns the status that an event can raise its row to, or `queued`, the lowest. */
export const statusOfEvent = (kind: EmailEventKind): EmailStatus => ladder.statusOf(kind)

export const higherStatus = ladder.higher

/** True if an event is a result for a recipient after the provider accepted the email. */
export const isOutcome = (kind: EmailEventKind): boolean =>
  kind !== 'sent' && statusOfEvent(kind) !== 'queued'

/** How an email was sent again, in its timeline. In that of the new one, `…_from`. */
export type Again = 'resent' | 'copied'
const LINKS = ['resent', 'copied', 'resent_from', 'copied_from'] as const
export type LinkKind = (typeof LINKS)[number]

/** Returns the linked email, and who sent it again, from a timeline entry (links.ts). */
export function linkIn(event: {
  kind: string
  detail: string
}): { kind: LinkKind; id: string; by: string } | null {
  const kind = LINKS.find((candidate) => candidate === event.kind)
  const [id = '', by = ''] = event.detail.split(' by ')
  return kind ? { kind, id, by } : null
}
