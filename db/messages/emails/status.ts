/** The ladder of email statuses (DECISIONS: Statuses) and what can happen to an email. Pure. */
import { EMAIL_LADDER } from '../../channels/email.ts'
import { createLadder } from '../../channels/status-order.ts'

export type EmailStatus = (typeof EMAIL_LADDER)[number]

/** What can happen to an email; those that name a status move the row to it, the others only inform. */
export type EmailEventKind =
  | Exclude<EmailStatus, 'queued'>
  | 'deferred'
  | 'held'
  | 'unknown'
  | 'delayed'
  | 'suppressed'
  | 'requeued'
  /** A report about it that nobody could read. */
  | 'unreadable'
  /** An automatic reply of the recipient's, such as an out-of-office message. */
  | 'auto_reply'
  /** By a link or a list of the provider's own. */
  | 'unsubscribed'
  /** By a proxy or a scanner, not by a person. */
  | 'machine_opened'
  | 'machine_clicked'
  | 'gave_up'
  | LinkKind

/** Few emails of many have one of these, and a team's are found by an index of their own (`rare_status`). */
export const isRare = (status: EmailStatus | undefined): boolean =>
  status === 'bounced' || status === 'complained'

const ladder = createLadder<EmailStatus>(EMAIL_LADDER)

/** The status an event lifts its row to; `queued`, the lowest, when it moves nothing. */
export const statusOfEvent = (kind: EmailEventKind): EmailStatus => ladder.statusOf(kind)

export const higherStatus = ladder.higher

/** Whether an event says what became of a recipient once the email was handed over. */
export const isOutcome = (kind: EmailEventKind): boolean =>
  kind !== 'sent' && statusOfEvent(kind) !== 'queued'

/** How an email was sent again, as its own timeline says it; the new one's says `…_from`. */
export type Again = 'resent' | 'copied'
const LINKS = ['resent', 'copied', 'resent_from', 'copied_from'] as const
export type LinkKind = (typeof LINKS)[number]

/** The other email, and who sent it again, where an entry of a timeline tells of that (links.ts). */
export function linkIn(event: {
  kind: string
  detail: string
}): { kind: LinkKind; id: string; by: string } | null {
  const kind = LINKS.find((candidate) => candidate === event.kind)
  const [id = '', by = ''] = event.detail.split(' by ')
  return kind ? { kind, id, by } : null
}
