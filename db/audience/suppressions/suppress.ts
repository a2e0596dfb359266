/**
 * What reports mean for contacts: bounces and complaints suppress them (DECISIONS: Delivery reports).
 * Promises: a contact's state depends on the set of events alone, not on their order, repeats or split over
 * transactions. So soft bounces are counted over stored events, never by a running counter. Set-based. Contacts must be
 * locked before the events are stored: else two transactions could each miss the other's events.
 */
import type { Database, Tx } from '../../postgres/pool.ts'
import { parseAddress } from '../../validation/address.ts'
import { publishContacts } from '../contacts/changes.ts'
import type { ContactEffect, SuppressionCause } from '../contacts/effect.ts'
import {
  bounceContacts,
  type ContactRef,
  complainContacts,
  type IdentityRef,
  judgeSoftBounces,
  lockContacts,
  lockSoftlySuppressed,
  type SoftRule,
  type Suppressed,
} from './suppressions.sql.ts'

/** The fifth soft bounce in a row without a delivery between is a bounce. */
const SOFT_BOUNCES = 5
/** An email that stayed `sent` for so long without a bounce has arrived (DECISIONS: Delivery reports). */
const UNDISPUTED_MS = 86_400_000
/** How many contacts are judged again in one transaction. */
const REJUDGE_BATCH = 500

/** A recipient and what an event means for it. */
type Touched = {
  team_id: string
  email_id: string
  recipient: string | null
  occurred_at: Date
  /** The provider's words. */
  detail: string
  effect?: ContactEffect
  /** The report that it comes from, if any. */
  report_id?: string | undefined
}

type LockedContact = ContactRef & { suppression: string | null; suppressed_softly: boolean }

/** Finds the locked contact that an event is about. */
type ContactOf = (event: Touched) => LockedContact | undefined

const keyOf = ({ team_id, identity }: IdentityRef): string => `${team_id}/${identity}`

/** The identity whose contact an event is about; none when it means nothing for a contact. */
function refOf({ team_id, recipient, effect = 'none' }: Pick<Touched, 'team_id' | 'recipient' | 'effect'>) {
  if (effect === 'none' || recipient === null) return undefined
  const parsed = parseAddress(recipient)
  return parsed ? { team_id, identity: parsed.identity } : undefined
}

/** Locks the contacts that events are about, in one statement; none when no event means anything to one. */
export async function lockTouchedContacts(tx: Tx, events: readonly Touched[]): Promise<ContactOf> {
  const wanted = new Map(
    events.flatMap((event) => {
      const ref = refOf(event)
      return ref ? [[keyOf(ref), ref] as const] : []
    }),
  )
  if (wanted.size === 0) return () => undefined
  const rows = await lockContacts(tx, [...wanted.values()])
  const locked = new Map<string, LockedContact>(rows.map((row) => [keyOf(row), row]))
  return (event) => {
    const ref = refOf(event)
    return ref && locked.get(keyOf(ref))
  }
}

const causeOf = (what: SuppressionCause['what'], event: Touched): SuppressionCause => ({
  what,
  at: event.occurred_at.toISOString(),
  email_id: event.email_id,
  report_id: event.report_id ?? null,
  detail: event.detail,
})

const softRule = (now: Date): SoftRule => ({
  most: SOFT_BOUNCES,
  undisputed: new Date(now.getTime() - UNDISPUTED_MS),
  now,
})

/** Moves the locked contacts by events that have just been stored: at most a statement for each kind of move. */
export async function applyContactEffects(
  tx: Tx,
  contactOf: ContactOf,
  events: readonly Touched[],
  now: Date,
): Promise<void> {
  /** The contacts of one effect, each with the last event of it. */
  const having = (effect: ContactEffect, what: SuppressionCause['what'] | null) => {
    const found = new Map<LockedContact, Suppressed>()
    for (const event of events) {
      const contact = event.effect === effect ? contactOf(event) : undefined
      if (contact) found.set(contact, { ...contact, cause: what && causeOf(what, event) })
    }
    return [...found]
  }
  // A delivery matters only where soft bounces have suppressed; a soft bounce only where nothing has yet.
  const undecided = new Map([
    ...having('delivered', null).filter(([{ suppressed_softly }]) => suppressed_softly),
    ...having('soft', 'soft bounces').filter(([{ suppression }]) => suppression === null),
  ])
  for (const [contacts, how] of [
    [having('hard', 'permanent bounce'), bounce],
    [having('complaint', 'complaint'), complain],
  ] as const)
    if (contacts.length > 0) await suppress(tx, contacts, { ...how, now })
  if (undecided.size > 0) await judge(tx, [...undecided.values()], now)
}

/** How contacts are suppressed, and what is as much `already`. */
type Suppressing = { write: typeof bounceContacts; already: readonly (string | null)[] }
export const bounce: Suppressing = { write: bounceContacts, already: ['bounced', 'complained'] }
export const complain: Suppressing = { write: complainContacts, already: ['complained'] }

/** Suppresses contacts that are locked, and announces those that were not suppressed for as much already. */
export async function suppress(
  tx: Tx,
  contacts: readonly (readonly [LockedContact, Suppressed])[],
  { write, already, now }: Suppressing & { now: Date },
): Promise<void> {
  const changed = await write(
    tx,
    contacts.map(([, ref]) => ref),
    now,
  )
  const fresh = new Map(
    contacts
      .filter(([{ suppression }]) => !already.includes(suppression))
      .map(([{ contact_id }, { cause }]) => [contact_id, cause]),
  )
  const changes = changed.filter(({ contact_id }) => fresh.has(contact_id))
  await publishContacts(
    tx,
    changes.map((change) => ({
      ...change,
      kind: 'suppressed',
      ...whenAndWhy(fresh.get(change.contact_id), now),
    })),
  )
}

const whenAndWhy = (cause: SuppressionCause | null | undefined, now: Date) =>
  cause ? { occurred_at: new Date(cause.at), detail: cause.detail } : { occurred_at: now, detail: '' }

/** Judges contacts by their soft bounces, and announces what came of it. @returns how many changed. */
async function judge(tx: Tx, refs: readonly Suppressed[], now: Date): Promise<number> {
  const changed = await judgeSoftBounces(tx, refs, softRule(now))
  const causes = new Map(refs.map(({ contact_id, cause }) => [contact_id, cause]))
  await publishContacts(
    tx,
    changed.map(({ over, ...change }) => ({
      ...change,
      kind: over ? 'suppressed' : 'released',
      ...whenAndWhy(over ? causes.get(change.contact_id) : null, now),
    })),
  )
  return changed.length
}

/**
 * Judges contacts that soft bounces alone suppress once more, one batch after another: no event says when an email has
 * stayed `sent` for a day. @returns how many came back.
 */
export async function reviewSoftSuppressions(database: Database, now: Date): Promise<number> {
  let after: ContactRef | undefined
  let back = 0
  for (;;) {
    const { refs, changed } = await database.transaction(async (tx) => {
      const refs = await lockSoftlySuppressed(tx, after, REJUDGE_BATCH)
      const judged = refs.map((ref) => ({ ...ref, cause: null }))
      return { refs, changed: await judge(tx, judged, now) }
    })
    back += changed
    after = refs.at(-1)
    if (refs.length < REJUDGE_BATCH) return back
  }
}
