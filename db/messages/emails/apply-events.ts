/**
 * Applies events to emails: stores each event once, raises the status of rows and updates contacts, in the caller's
 * transaction. Any order, repeats and split of the same events end in the same state. Works on sets, with the same few
 * statements for any number of events. Only recipients of the row are affected, and a stored provider ID never changes.
 * Locks rows in one order, emails before contacts.
 */

import { lockExistingAccounts } from '../../accounts/teams/teams.sql.ts'
import type { ContactEffect } from '../../audience/contacts/effect.ts'
import { unsubscribeReported } from '../../audience/subscription/subscription.ts'
import {
  type AddressFor,
  applyContactEffects,
  lockTouchedAddresses,
} from '../../audience/suppressions/suppress.ts'
import type { MessageEvent } from '../../channels/events/events.sql.ts'
import { type EventResult, ignored, UNKNOWN } from '../../delivery/reports/event-result.ts'
import { type ReportedRef, rowsOfReported } from '../../delivery/reports/ref.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { ERASED, recipientIdentity } from '../../validation/addressees.ts'
import { changeEmails, emailsByProviderIds, lockEmails } from './apply-events.sql.ts'
import type { EmailRef } from './emails.sql.ts'
import { type EmailEvent, storeEmailEvents } from './events.sql.ts'
import { bareRecipients } from './recipients.ts'
import type { AttemptBegan, EmailChange } from './state-changes.ts'
import { type EmailEventKind, higherStatus, isOutcome, statusOfEvent } from './status.ts'

/** An event, and the provider's ID of the message if known. The ID proves that the provider accepted it. */
type AppliedEvent = EmailEvent & Partial<Pick<ReportedEmail, 'provider_message_id' | 'by_mail'>>

/** An event of an email, or of one of its recipients, from a report. */
export type ReportedEmail = Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail'> & {
  ref: ReportedRef
  kind: EmailEventKind
  /** As the provider writes it, or null. Ignored unless it is on the row. */
  recipient: string | null
  effect: ContactEffect
  /** The stored report that it comes from. */
  report_id?: string
  /** True if it came by mail. Any recipient can send that, because each sees the signed return address. */
  by_mail?: boolean
  /** For a row that lost its response. Null if the report can't prove that all recipients were accepted together. */
  provider_message_id: string | null
}

/**
 * `sentCountsMs`: after how long a sent email counts as delivered. `secrets`: to hash addresses without a contact.
 */
export type ApplyOptions = {
  sentCountsMs?: number | undefined
  secrets?: Pick<Secrets, 'sign' | 'signatures'> | undefined
}

const FOREIGN_RECIPIENT = 'it names a recipient that the email does not have'

/** The fields of an event whose recipient has been erased. */
const OF_NOBODY = { recipient: null, detail: '' }

const keyOf = ({ team_id, email_id }: EmailRef): string => `${team_id}/${email_id}`

/** The result of one attempt to deliver an email, in addition to its events. */
export type AttemptRecord = EmailRef & {
  provider_message_id: string | null
  size_kb: number | null
  /** Recipients still to be attempted. Null for none or all. */
  pending_recipients: readonly string[] | null
  /** Recipients of the attempt that were neither accepted nor permanently rejected. */
  undecided: readonly string[]
  /** True if all its remaining recipients are suppressed. */
  is_suppressed?: boolean
  seen: AttemptBegan
}

/**
 * Stores events and updates their rows. Events that are already stored change nothing.
 * @param attempts the attempts of these events, if they come from a delivery.
 * @returns a result for each event.
 */
export async function applyEmailEvents(
  tx: Tx,
  events: readonly AppliedEvent[],
  now: Date,
  attempts: readonly AttemptRecord[] = [],
  { sentCountsMs, secrets }: ApplyOptions = {},
): Promise<EventResult[]> {
  // A batch of deliveries without events needs no statement.
  if (events.length === 0) return []
  const rows = await lockEmails(tx, events)
  const recipients = new Map(rows.map((row) => [keyOf(row), bareRecipients(row.to_emails)]))
  const results: EventResult[] = []
  /** The results of `placed`, by their indexes. */
  const indexes: number[] = []
  const placed: AppliedEvent[] = []
  for (const event of events) {
    const own = recipients.get(keyOf(event))
    const recipient = own && findRecipient(event, own)
    if (!own) results.push(UNKNOWN)
    else if (recipient === undefined) results.push(ignored(FOREIGN_RECIPIENT))
    else {
      const said = own.has(ERASED) && own.size === 1 ? OF_NOBODY : { recipient }
      const one = { ...event, ...said, effect: effectOn(event, own) }
      placed.push(one)
      indexes.push(results.length)
      results.push({ kind: 'applied', team_id: event.team_id })
    }
  }
  if (placed.length === 0) return results
  const addressFor = await lockTouchedAddresses(tx, placed, now)
  const given = placed.map((event) => ({ ...event, contact_id: addressFor(event)?.contact?.contact_id }))
  const news = new Set(await storeEmailEvents(tx, given))
  for (const [at, event] of given.entries()) {
    const index = indexes[at]
    if (index !== undefined && !news.has(event))
      results[index] = { kind: 'applied', team_id: event.team_id, repeated: true }
  }
  const left = attempts.map((one) => ({ ...one, pending_recipients: stillThere(one, recipients) }))
  const changes = toChanges([...news], left, recipients)
  if (changes.length > 0) await changeEmails(tx, changes, rows)
  await applyContactEffects(tx, addressFor, [...news], now, sentCountsMs)
  await unsubscribeReported({ tx, now, secrets }, leavers([...news], addressFor))
  return results
}

/** The addresses that the relay reports as unsubscribed. */
const leavers = (news: readonly AppliedEvent[], addressFor: AddressFor) =>
  news.flatMap((event) => (event.effect === 'unsubscribe' ? (addressFor(event) ?? []) : []))

/**
 * Mail about an email with several recipients changes no contact (DECISIONS: Delivery reports). A bounce of another
 * address than the only recipient's comes from a forward.
 */
function effectOn(event: AppliedEvent, own: ReadonlyMap<string, string>): ContactEffect {
  const effect = event.effect ?? 'none'
  if (!event.by_mail) return effect
  if (own.size > 1) return 'none'
  const isForwarded = event.recipient !== null && !own.has(recipientIdentity(event.recipient))
  return isForwarded && effect === 'hard' ? 'soft' : effect
}

/**
 * Returns the event's recipient as the row spells it, undefined if the row doesn't have it, or null if the event names
 * none of several. An event without a name is about the only recipient. Mail with a signed reference is about the only
 * recipient, whatever it names. A complaint is about the email, even if it hides the recipient (RFC 6590).
 */
function findRecipient(
  { recipient, by_mail, kind }: AppliedEvent,
  own: ReadonlyMap<string, string>,
): string | null | undefined {
  const [only = null, ...others] = own.values()
  const sole = others.length === 0 ? only : null
  if (recipient === null || (by_mail && sole !== null)) return sole
  return own.get(recipientIdentity(recipient)) ?? (by_mail && kind === 'complained' ? null : undefined)
}

function stillThere(
  { pending_recipients, ...ref }: AttemptRecord,
  recipients: Recipients,
): readonly string[] | null {
  const own = recipients.get(keyOf(ref))
  const left = pending_recipients?.filter((recipient) => own?.has(recipientIdentity(recipient))) ?? []
  return left.length > 0 ? left : null
}

/** The recipients of a row by identity, by the row's key. */
type Recipients = ReadonlyMap<string, ReadonlyMap<string, string>>

function toChanges(
  events: readonly AppliedEvent[],
  attempts: readonly AttemptRecord[],
  recipients: Recipients,
): (EmailRef & EmailChange)[] {
  const changes = new Map<string, EmailRef & EmailChange>()
  for (const { pending_recipients: left, undecided, is_suppressed, seen, ...attempt } of attempts) {
    const pending = is_suppressed ? 'suppressed' : { left, undecided, seen }
    changes.set(keyOf(attempt), { ...attempt, status: 'queued', pending })
  }
  for (const event of events) {
    const { team_id, email_id, provider_message_id } = event
    const change: EmailRef & EmailChange = changes.get(keyOf(event)) ?? {
      ...{ team_id, email_id, status: 'queued', provider_message_id: null, size_kb: null },
      pending: 'unchanged',
    }
    change.status = higherStatus(change.status, statusOfEvent(event.kind))
    change.hard_bounced ||= event.kind === 'bounced' && event.effect === 'hard'
    change.left_out ||= event.kind === 'suppressed'
    if (provider_message_id) {
      // Set once the provider has accepted the email, even if only a report shows that. Each attempt is for
      // all pending recipients, so that a fully accepted message leaves none.
      change.provider_message_id = provider_message_id
      change.pending = 'none left'
    } else if (change.pending === 'unchanged' || isReported(change.pending)) {
      change.pending = withoutDecided(change.pending, event, recipients.get(keyOf(event)))
    }
    changes.set(keyOf(event), change)
  }
  return [...changes.values()]
}

type Reported = Extract<EmailChange['pending'], { reported: true }>

const isReported = (pending: EmailChange['pending']): pending is Reported =>
  typeof pending === 'object' && 'reported' in pending

/**
 * Returns the undecided recipients after a report about one of several. If a worker was killed during an attempt, the
 * server may have deferred others, which would otherwise never be retried.
 */
function withoutDecided(
  pending: 'unchanged' | Reported,
  { kind, recipient }: AppliedEvent,
  own: ReadonlyMap<string, string> = new Map(),
): 'unchanged' | Reported {
  const others = [...own.values()].filter((each) => each !== ERASED)
  if (recipient === null || others.length < 2 || !isOutcome(kind)) return pending
  const before = pending === 'unchanged' ? others : pending.undecided
  return { reported: true, undecided: before.filter((each) => each !== recipient) }
}

/** Applies the events of reports, found by our own IDs or the provider's. @returns a result for each. */
export async function applyReportedEmails(
  tx: Tx,
  events: readonly ReportedEmail[],
  now: Date,
  options: ApplyOptions = {},
) {
  const found = await rowsOfReported(
    events,
    (team_id, email_id) => ({ team_id, email_id }),
    (ids) => emailsByProviderIds(tx, ids),
  )
  const known = events.flatMap((event, index): { event: AppliedEvent; index: number }[] => {
    const ref = found[index]
    return ref ? [{ event: { ...event, ...ref }, index }] : []
  })
  const knownEvents = known.map(({ event }) => event)
  // An account is locked before emails. Without its lock, the address could become a contact at the same time.
  const leaving = knownEvents.filter(({ effect }) => effect === 'unsubscribe')
  if (leaving.length > 0 && options.secrets)
    await lockExistingAccounts(
      tx,
      leaving.map(({ team_id }) => team_id),
    )
  const applied = await applyEmailEvents(tx, knownEvents, now, [], options)
  const results = events.map(() => UNKNOWN)
  for (const [at, { index }] of known.entries()) results[index] = applied[at] ?? UNKNOWN
  return results
}
