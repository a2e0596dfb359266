/**
 * Decides how an email's state changes after attempts and reports (DECISIONS: Delivery reports). Pure. A recipient
 * that a report decided during an attempt stays decided, and an erased recipient stays erased. A recipient whose
 * response was lost isn't retried once a report about that recipient arrives, or about one accepted together with it.
 */
import { EMAIL_LADDER } from '../../channels/email.ts'
import type { EmailRow } from './emails.sql.ts'
import { type EmailStatus, higherStatus } from './status.ts'

export type AttemptBegan = Pick<EmailRow, 'provider_message_id' | 'pending_recipients'>

export type StoredState = AttemptBegan &
  Pick<EmailRow, 'status' | 'size_kb'> & { suppression: string | null; hard_bounced: boolean }

export type EmailChange = {
  /** The new status, if it is higher than the current one. */
  status: EmailStatus
  /** A stored ID doesn't change. */
  provider_message_id: string | null
  size_kb: number | null
  pending: Pending
  /** True if a new event is a hard bounce, or reports that a recipient was skipped as suppressed. */
  hard_bounced?: boolean
  left_out?: boolean
}

/** The new value of the recipients still to be attempted. */
type Pending =
  | 'unchanged'
  | 'none left'
  /** All are suppressed. The email is bounced unless it has another result. */
  | 'suppressed'
  /** The result of an attempt, unless another transaction has changed the row since the attempt read it. */
  | AttemptEnded
  /** Recipients without a report, if no attempt has stored its result. */
  | { reported: true; undecided: readonly string[] }

/** `left`: recipients still to be attempted, null for none or all. `undecided`: recipients without a result. */
type AttemptEnded = { left: readonly string[] | null; undecided: readonly string[]; seen: AttemptBegan }

/** A stored event. `is_since` is true if it happened since the email was accepted or requeued. */
export type StoredEvent = { kind: string; recipient: string | null; occurred_at: string; is_since: boolean }

/** Returns the recipients to attempt after a change. Null for none or all. */
function candidates(
  { provider_message_id, pending_recipients: before, status }: StoredState,
  pending: Pending,
  events: readonly StoredEvent[],
): readonly string[] | null {
  if (pending === 'none left' || pending === 'suppressed') return null
  if (pending === 'unchanged') return before
  const undecided = (recipients: readonly string[]) =>
    recipients.filter((recipient) => pending.undecided.includes(recipient))
  if ('reported' in pending) {
    const isOpen = provider_message_id === null && (before !== null || status === 'queued')
    // After a lost response, a report about one recipient proves that the server accepted all of them.
    const isLost = events.some(({ kind }) => kind === 'unknown')
    return isOpen && !isLost ? undecided(before ?? pending.undecided) : before
  }
  // `left` applies to an attempt for all recipients, `undecided` to any other.
  if (before !== null) return undecided(before)
  const { left, seen } = pending
  const isSeen = provider_message_id === seen.provider_message_id
  return isSeen && seen.pending_recipients === null ? left : null
}

const ATTEMPTED: readonly string[] = ['deferred', 'held', 'unknown']
const STATUSES: readonly string[] = EMAIL_LADDER

/** Returns the recipients whose response was lost and whom a report has decided since. */
function decidedByReport(events: readonly StoredEvent[]): Set<string | null> {
  const attempts = new Set(
    events.filter(({ kind }) => ATTEMPTED.includes(kind)).map(({ occurred_at }) => occurred_at),
  )
  const recipients = [...Map.groupBy(events, ({ recipient }) => recipient)].map(([recipient, own]) => {
    const timesOf = (...kinds: string[]) =>
      own.filter(({ kind }) => kinds.includes(kind)).map(({ occurred_at }) => occurred_at)
    // A rejection during an attempt isn't a report.
    const isReported = own.some(
      ({ kind, occurred_at, is_since }) =>
        STATUSES.includes(kind) && is_since && !(kind === 'bounced' && attempts.has(occurred_at)),
    )
    return { recipient, isReported, lost: timesOf('unknown'), accepted: timesOf('unknown', 'sent') }
  })
  const reported = recipients.filter(({ isReported }) => isReported)
  const isDecided = ({ recipient, lost }: (typeof recipients)[number]): boolean =>
    lost.length > 0 &&
    reported.some(
      (other) =>
        other.recipient === recipient ||
        (other.accepted.length > 0 && other.accepted.every((time) => lost.includes(time))),
    )
  return new Set(recipients.filter(isDecided).map(({ recipient }) => recipient))
}

/** True if the email's stored events can matter. Few emails need them. */
export const needsEvents = (state: StoredState, { pending }: EmailChange): boolean =>
  candidates(state, pending, []) !== null

/** Returns the state after a change. @param events the email's events, if they can matter. */
export function stateAfter(
  state: StoredState,
  change: EmailChange,
  events: readonly StoredEvent[],
): StoredState {
  const isSuppressed = change.pending === 'suppressed' && state.status === 'queued'
  const decided = decidedByReport(events)
  const pending = candidates(state, change.pending, events)?.filter((recipient) => !decided.has(recipient))
  return {
    status: isSuppressed ? 'bounced' : higherStatus(state.status, change.status),
    provider_message_id: state.provider_message_id ?? change.provider_message_id,
    size_kb: state.size_kb ?? change.size_kb,
    pending_recipients: pending && pending.length > 0 ? pending : null,
    suppression: isSuppressed ? 'applied' : state.suppression,
    hard_bounced: state.hard_bounced || (change.hard_bounced ?? false),
  }
}

/**
 * Returns the additions of a change to its team's stats. An email is sent when the relay accepts or rejects it. It has
 * at most one hard bounce.
 */
export function countedAfter(before: StoredState, after: StoredState, change: EmailChange) {
  const isApplied = after.suppression === 'applied'
  const becomes = (status: EmailStatus) => before.status !== status && after.status === status
  return {
    is_sent: before.status === 'queued' && after.status !== 'queued' && !isApplied,
    is_hard: (change.hard_bounced ?? false) && (before.status === 'queued' || !before.hard_bounced),
    is_complaint: becomes('complained'),
    is_bounce: becomes('bounced') && !isApplied,
    left_out: change.left_out ?? false,
  }
}
