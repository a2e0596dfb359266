/**
 * Applies what happened to emails: stores each event once, moves rows up the ladder, updates contacts.
 * Promises: any order, any number of repeats and any split of the same events end in the same state; set-based, the
 * same few statements for one event or a thousand; only recipients that are on the row count; a provider's id, once
 * stored, stays. Rows are locked in one order, emails before contacts. Given a transaction; must not know a provider's
 * words.
 */

import { holdAccounts } from '../../accounts/teams/teams.sql.ts'
import type { ContactEffect } from '../../audience/contacts/effect.ts'
import { unsubscribeReported } from '../../audience/subscription/by-report.ts'
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
import { ERASED } from '../../validation/addressees.ts'
import {
  type AttemptBegan,
  changeEmails,
  type EmailChange,
  emailsByProviderIds,
  lockEmails,
} from './apply-events.sql.ts'
import type { EmailRef } from './emails.sql.ts'
import { type EmailEvent, storeEmailEvents } from './events.sql.ts'
import { bareRecipients, recipientIdentity } from './recipients.ts'
import { type EmailEventKind, higherStatus, isOutcome, statusOfEvent } from './status.ts'

/** An event, and the provider's id of the message where it brings one: that proves that the provider has taken it. */
type AppliedEvent = EmailEvent & Partial<Pick<ReportedEmail, 'provider_message_id' | 'by_mail'>>

/** Something that happened to an email, or to one recipient of it, as a report says. */
export type ReportedEmail = Pick<MessageEvent, 'event_key' | 'occurred_at' | 'detail'> & {
  ref: ReportedRef
  kind: EmailEventKind
  /** As the provider gives it; counts only if it is on the row. null when the report names none. */
  recipient: string | null
  effect: ContactEffect
  /** The stored report that it comes from. */
  report_id?: string
  /** Anyone who got the email can have sent it: each recipient sees the signed return address that proves it. */
  by_mail?: boolean
  /** Given by a provider that takes a message whole, for a row that lost its answer; null when the report has none. */
  provider_message_id: string | null
}

/** `sentCountsMs`: after how long a sent email counts as delivered. `secrets`: to remember who isn't a contact. */
export type ApplyOptions = { sentCountsMs?: number | undefined; secrets?: Pick<Secrets, 'sign'> | undefined }

const FOREIGN_RECIPIENT = 'it names a recipient that the email does not have'

/** What is kept of an event whose email went to a person who has been erased: that it happened. */
const OF_NOBODY = { recipient: null, detail: '' }

const keyOf = ({ team_id, email_id }: EmailRef): string => `${team_id}/${email_id}`

/** What one try to deliver an email leaves, besides its events. */
export type AttemptRecord = EmailRef & {
  provider_message_id: string | null
  size_kb: number | null
  /** Who is still to be tried, where the others' result is decided; null when that is nobody, or everybody. */
  pending_recipients: readonly string[] | null
  /** Those of whom it was for that were neither taken nor refused for good. */
  undecided: readonly string[]
  /** Whether no recipient was left that isn't suppressed. */
  is_suppressed?: boolean
  seen: AttemptBegan
}

/**
 * Stores events and lifts their rows. Events that were stored before change nothing.
 * @param attempts what the events are of, where they come from a delivery. @returns a result for each event.
 */
export async function applyEmailEvents(
  tx: Tx,
  events: readonly AppliedEvent[],
  now: Date,
  attempts: readonly AttemptRecord[] = [],
  { sentCountsMs, secrets }: ApplyOptions = {},
): Promise<EventResult[]> {
  // A batch of deliveries may have none, and pays for no statement then.
  if (events.length === 0) return []
  const rows = await lockEmails(tx, events)
  const recipients = new Map(rows.map((row) => [keyOf(row), bareRecipients(row.to_emails)]))
  const results: EventResult[] = []
  const indexes = new Map<AppliedEvent, number>()
  const placed: AppliedEvent[] = []
  for (const event of events) {
    const own = recipients.get(keyOf(event))
    const recipient = own && recipientOf(event, own)
    if (!own) results.push(UNKNOWN)
    else if (recipient === undefined) results.push(ignored(FOREIGN_RECIPIENT))
    else {
      const said = own.has(ERASED) && own.size === 1 ? OF_NOBODY : { recipient }
      const one = { ...event, ...said, effect: effectOn(event, own) }
      placed.push(one)
      indexes.set(one, results.length)
      results.push({ kind: 'applied', team_id: event.team_id })
    }
  }
  if (placed.length === 0) return results
  const addressFor = await lockTouchedAddresses(tx, placed, now)
  const given = placed.map((event) => ({ ...event, contact_id: addressFor(event)?.contact?.contact_id }))
  const news = await storeEmailEvents(tx, given)
  for (const [at, event] of given.entries()) {
    const index = news.includes(event) ? undefined : indexes.get(placed[at] as AppliedEvent)
    if (index !== undefined) results[index] = { kind: 'applied', team_id: event.team_id, repeated: true }
  }
  const left = attempts.map((one) => ({ ...one, pending_recipients: stillThere(one, recipients) }))
  const changes = changesOf(news, left, recipients)
  if (changes.length > 0) await changeEmails(tx, changes)
  await applyContactEffects(tx, addressFor, news, now, sentCountsMs)
  await unsubscribeReported({ tx, now, secrets }, leavers(news, addressFor))
  return results
}

/** The addresses that the relay reports as unsubscribed. */
const leavers = (news: readonly AppliedEvent[], addressFor: AddressFor) =>
  news.flatMap((event) => (event.effect === 'unsubscribe' ? (addressFor(event) ?? []) : []))

/**
 * Mail about an email with several recipients changes no contact (DECISIONS: Delivery reports). A bounce of another
 * address than the sole recipient's comes from behind it: its own mailbox accepted the email.
 */
function effectOn(event: AppliedEvent, own: ReadonlyMap<string, string>): ContactEffect {
  const effect = event.effect ?? 'none'
  if (!event.by_mail) return effect
  if (own.size > 1) return 'none'
  const isForwarded = event.recipient !== null && !own.has(recipientIdentity(event.recipient))
  return isForwarded && effect === 'hard' ? 'soft' : effect
}

/**
 * The event's recipient as the row spells it; undefined when the row does not have it. An event that names nobody
 * is about the sole recipient; about nobody (null) when there are several. Mail with a signed reference is about the
 * sole recipient, whatever name it has, and a complaint about the email, also when it hides who complained (RFC 6590).
 */
function recipientOf(
  { recipient, by_mail, kind }: AppliedEvent,
  own: ReadonlyMap<string, string>,
): string | null | undefined {
  const [only = null, ...others] = own.values()
  const sole = others.length === 0 ? only : null
  if (recipient === null || (by_mail && sole !== null)) return sole
  return own.get(recipientIdentity(recipient)) ?? (by_mail && kind === 'complained' ? null : undefined)
}

/** Who is still to be tried, of those who are on the row: somebody may have been erased from it meanwhile. */
function stillThere(
  { pending_recipients, ...ref }: AttemptRecord,
  recipients: Recipients,
): readonly string[] | null {
  const own = recipients.get(keyOf(ref))
  const left = pending_recipients?.filter((recipient) => own?.has(recipientIdentity(recipient))) ?? []
  return left.length > 0 ? left : null
}

/** Who a row goes to, by identity; of each row by its key. */
type Recipients = ReadonlyMap<string, ReadonlyMap<string, string>>

function changesOf(
  events: readonly AppliedEvent[],
  attempts: readonly AttemptRecord[],
  recipients: Recipients,
): EmailChange[] {
  const changes = new Map<string, EmailChange>()
  for (const { pending_recipients: left, undecided, is_suppressed, seen, ...attempt } of attempts) {
    const pending = is_suppressed ? 'suppressed' : { left, undecided, seen }
    changes.set(keyOf(attempt), { ...attempt, status: 'queued', pending })
  }
  for (const event of events) {
    const { team_id, email_id, provider_message_id } = event
    const change: EmailChange = changes.get(keyOf(event)) ?? {
      ...{ team_id, email_id, status: 'queued', provider_message_id: null, size_kb: null },
      pending: 'as they were',
    }
    change.status = higherStatus(change.status, statusOfEvent(event.kind))
    change.hard_bounced ||= event.kind === 'bounced' && event.effect === 'hard'
    change.left_out ||= event.kind === 'suppressed'
    if (provider_message_id) {
      // Set once the email is handed over, also when only a report says so. Each attempt is for
      // everyone who is still pending, so a message that was taken whole leaves nobody to try again.
      change.provider_message_id = provider_message_id
      change.pending = 'none left'
    } else if (change.pending === 'as they were' || isReported(change.pending)) {
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
 * Whom a report about one of several recipients leaves undecided. A worker that was killed may have left no word of its
 * attempt, in which a server took some of them and put others off: these would never be tried again.
 */
function withoutDecided(
  pending: 'as they were' | Reported,
  { kind, recipient }: AppliedEvent,
  own: ReadonlyMap<string, string> = new Map(),
): 'as they were' | Reported {
  const others = [...own.values()].filter((each) => each !== ERASED)
  if (recipient === null || others.length < 2 || !isOutcome(kind)) return pending
  const before = pending === 'as they were' ? others : pending.undecided
  return { reported: true, undecided: before.filter((each) => each !== recipient) }
}

/** Applies events as reports bring them: found by our own ids, or by the provider's. @returns a result for each. */
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
    await holdAccounts(
      tx,
      leaving.map(({ team_id }) => team_id),
    )
  const applied = await applyEmailEvents(tx, knownEvents, now, [], options)
  const results = events.map(() => UNKNOWN)
  for (const [at, { index }] of known.entries()) results[index] = applied[at] ?? UNKNOWN
  return results
}
