/**
 * Suppresses addresses and their contacts because of reports. Five soft bounces in a row suppress, and a
 * delivery resets the count. The result only depends on the set of events, not on order, repeats or split
 * over transactions, because soft bounces are counted over stored events. Contacts are locked before the
 * events are stored. Otherwise two transactions could each miss the other's events. DECISIONS: Suppression.
 */
import type { Database, Tx } from '../../postgres/pool.ts'
import { parseAddress } from '../../validation/address.ts'
import { publishContacts } from '../contacts/changes.ts'
import type { Cause, ContactEffect } from '../contacts/effect.ts'
import {
  type IdentityRef,
  insertAddresses,
  liftAddresses,
  lockAddresses,
  lockSoftCounts,
  type SoftRule,
  softFacts,
  softlySuppressed,
  suppressedAmong,
  updateAddresses,
} from './addresses.sql.ts'
import { causeShown, merged, type Suppression, statusBy, suppressionBy } from './cause.ts'
import { copyOf } from './copy.ts'
import { judgeSoftBounces, SOFT_BOUNCES } from './soft-bounces.ts'
import { type LockedContact, lockContacts, markSuppressed, releaseContacts } from './suppressions.sql.ts'

/** An email that stayed `sent` for so long without a report has arrived (DECISIONS: Delivery reports). */
const SENT_COUNTS_MS = 86_400_000
/** How many addresses are judged again in one transaction. */
const REJUDGE_BATCH = 500

/** A recipient and what an event means for it. */
type Touched = {
  team_id: string
  email_id: string
  recipient: string | null
  occurred_at: Date
  /** The provider's response. */
  detail: string
  effect?: ContactEffect
  /** The report that it comes from, if any. */
  report_id?: string | undefined
}

/** An address that an event is about. `contact`: its contact, locked. Null if it is none. */
type TouchedAddress = IdentityRef & { email: string; contact: LockedContact | null }

/** Finds the address that an event is about. */
export type AddressFor = (event: Touched) => TouchedAddress | undefined

const keyOf = ({ team_id, identity }: IdentityRef): string => `${team_id}/${identity}`

/** The address that an event is about; none if it means nothing for one. */
function refOf({ team_id, recipient, effect = 'none' }: Pick<Touched, 'team_id' | 'recipient' | 'effect'>) {
  if (effect === 'none' || recipient === null) return undefined
  const parsed = parseAddress(recipient)
  return parsed ? { team_id, identity: parsed.identity, email: parsed.address } : undefined
}

/** Locks the contacts of addresses, and copies what version 0.1.0 has stored of them. */
export async function lockTouched(
  tx: Tx,
  refs: readonly (IdentityRef & { email: string })[],
  now: Date,
): Promise<TouchedAddress[]> {
  const contacts = await lockContacts(tx, refs)
  await copyOf(tx, contacts, now)
  const byKey = new Map(contacts.map((contact) => [keyOf(contact), contact]))
  return refs.map((ref) => {
    const contact = byKey.get(keyOf(ref)) ?? null
    return { ...ref, email: contact?.email ?? ref.email, contact }
  })
}

/** Locks the contacts of what events are about, in one statement; none if no event means anything for an address. */
export async function lockTouchedAddresses(
  tx: Tx,
  events: readonly Touched[],
  now: Date,
): Promise<AddressFor> {
  const wanted = new Map(
    events.flatMap((event) => {
      const ref = refOf(event)
      return ref ? [[keyOf(ref), ref] as const] : []
    }),
  )
  if (wanted.size === 0) return () => undefined
  const touched = await lockTouched(tx, [...wanted.values()], now)
  const soft = events.flatMap((event) => (event.effect === 'soft' ? (refOf(event) ?? []) : []))
  // A contact's lock does it for contacts.
  const others = soft.filter((ref) => !touched.find((one) => keyOf(one) === keyOf(ref))?.contact)
  if (others.length > 0) await lockSoftCounts(tx, others)
  const byKey = new Map(touched.map((one) => [keyOf(one), one]))
  return (event) => {
    const ref = refOf(event)
    return ref && byKey.get(keyOf(ref))
  }
}

const suppressionFor = (cause: Cause, event: Touched): Suppression =>
  suppressionBy(cause, {
    since: event.occurred_at.toISOString(),
    email_id: event.email_id,
    report_id: event.report_id ?? null,
    response: event.detail,
  })

/** Suppresses and releases the locked addresses by events that have just been stored. */
export async function applyContactEffects(
  tx: Tx,
  addressFor: AddressFor,
  events: readonly Touched[],
  now: Date,
  sentCountsMs = SENT_COUNTS_MS,
): Promise<void> {
  /** The addresses of one effect, each with the last event of it. */
  const having = (effect: ContactEffect) => {
    const found = new Map<TouchedAddress, Touched>()
    for (const event of events) {
      const address = event.effect === effect ? addressFor(event) : undefined
      if (address) found.set(address, event)
    }
    return [...found]
  }
  for (const [effect, cause] of [
    ['hard', 'bounce'],
    ['complaint', 'complaint'],
  ] as const) {
    const wanted = having(effect).map(([address, event]) => ({
      address,
      suppression: suppressionFor(cause, event),
    }))
    if (wanted.length > 0) await suppress(tx, wanted, now)
  }
  const undecided = new Map<TouchedAddress, Touched | null>([
    ...(await softlyAmong(tx, having('delivered'))),
    ...having('soft'),
  ])
  if (undecided.size > 0) await judge(tx, undecided, { now, sentCountsMs })
}

/** A delivery only matters where soft bounces have suppressed. */
async function softlyAmong(
  tx: Tx,
  delivered: readonly (readonly [TouchedAddress, Touched])[],
): Promise<(readonly [TouchedAddress, null])[]> {
  if (delivered.length === 0) return []
  const refs = delivered.map(([address]) => address)
  const softly = new Set(
    (await suppressedAmong(tx, refs)).filter(({ cause }) => cause === 'soft_bounces').map(keyOf),
  )
  return refs.filter((address) => softly.has(keyOf(address))).map((address) => [address, null])
}

/** An address, locked if it is a contact, and what is to suppress it. */
type ToSuppress = { address: TouchedAddress; suppression: Suppression }

/** Stores what suppresses addresses. @returns what suppresses each now, which are new, and which have changed. */
async function storeSuppressions(tx: Tx, wanted: readonly ToSuppress[]) {
  const rows = new Map(
    wanted.map(({ address, suppression }) => {
      const { team_id, identity, email } = address
      return [keyOf(address), { team_id, identity, email, ...suppression }]
    }),
  )
  const inserted = await insertAddresses(tx, [...rows.values()])
  const fresh = new Map(inserted.map((row) => [keyOf(row), row.has_listeners]))
  const changed = new Set(fresh.keys())
  const others = [...rows].flatMap(([key, row]) => (fresh.has(key) ? [] : [row]))
  const held = others.length > 0 ? await lockAddresses(tx, others) : []
  const updates = held.flatMap((before) => {
    const key = keyOf(before)
    const next = rows.get(key)
    if (!next) return []
    const { cause, since, has_listeners } = before
    const known = cause === null || since === null ? null : { ...before, cause, since }
    if (known === null) fresh.set(key, has_listeners)
    const row = { ...next, ...merged(known, next), email: before.email }
    rows.set(key, row)
    if (known?.cause === row.cause && known.bounced_at === row.bounced_at) return []
    if (known?.cause !== row.cause) changed.add(key)
    return [row]
  })
  if (updates.length > 0) await updateAddresses(tx, updates)
  return { rows, fresh, changed }
}

/**
 * Suppresses addresses, and their contacts, and announces those that weren't suppressed before.
 * @returns how many have another cause now.
 */
export async function suppress(tx: Tx, wanted: readonly ToSuppress[], now: Date): Promise<number> {
  const { rows, fresh, changed } = await storeSuppressions(tx, wanted)
  const contacts = wanted.flatMap(({ address, suppression }) => {
    const row = rows.get(keyOf(address))
    if (!address.contact || !row) return []
    const { team_id, contact_id } = address.contact
    return [
      {
        ...{ team_id, contact_id, status: statusBy(suppression.cause), suppression: statusBy(row.cause) },
        softly: row.cause === 'soft_bounces',
        cause: causeShown(row),
      },
    ]
  })
  if (contacts.length > 0) await markSuppressed(tx, contacts, now)
  await publishContacts(
    tx,
    wanted.flatMap(({ address, suppression }) => {
      const has_listeners = fresh.get(keyOf(address))
      if (has_listeners === undefined) return []
      const { cause, email_id, since, response } = suppression
      return [
        {
          ...{ team_id: address.team_id, contact_id: address.contact?.contact_id ?? null, has_listeners },
          kind: 'suppressed' as const,
          about: { email: address.email, cause, email_id },
          ...{ occurred_at: new Date(since), detail: response },
        },
      ]
    }),
  )
  return changed.size
}

/** How a suppression ends. `lifted`: when it was lifted manually. Null if a delivery ended it. */
type Ending = { now: Date; lifted: Date | null; detail: string }

/** Ends the suppression of addresses whose contacts are locked, and announces it. @returns the keys of these. */
export async function release(
  tx: Tx,
  refs: readonly IdentityRef[],
  { now, lifted, detail }: Ending,
): Promise<Set<string>> {
  if (refs.length === 0) return new Set()
  const addresses = new Map((await liftAddresses(tx, refs, lifted)).map((row) => [keyOf(row), row]))
  const contacts = new Map((await releaseContacts(tx, refs, { now, lifted })).map((row) => [keyOf(row), row]))
  const released = new Map([...addresses, ...contacts])
  const others = await contactIdsOf(
    tx,
    [...addresses.values()].filter((row) => !contacts.has(keyOf(row))),
  )
  await publishContacts(
    tx,
    [...released].map(([key, { team_id, email, has_listeners }]) => ({
      ...{ team_id, contact_id: contacts.get(key)?.contact_id ?? others.get(key) ?? null, has_listeners },
      kind: 'released' as const,
      about: { email },
      ...{ occurred_at: now, detail },
    })),
  )
  return new Set(released.keys())
}

/** The contacts of addresses whose own rows say nothing of a suppression. */
async function contactIdsOf(tx: Tx, refs: readonly IdentityRef[]): Promise<Map<string, string>> {
  if (refs.length === 0) return new Map()
  return new Map((await lockContacts(tx, refs)).map((row) => [keyOf(row), row.contact_id]))
}

const softRule = (now: Date, sentCountsMs: number): SoftRule => ({
  most: SOFT_BOUNCES,
  undisputed: new Date(now.getTime() - sentCountsMs),
})

/** Judges locked addresses by their soft bounces. @returns how many it released. */
async function judge(
  tx: Tx,
  undecided: ReadonlyMap<TouchedAddress, Touched | null>,
  { now, sentCountsMs }: { now: Date; sentCountsMs: number },
): Promise<number> {
  const addresses = [...undecided.keys()]
  const rule = softRule(now, sentCountsMs)
  const facts = new Map((await softFacts(tx, addresses, rule)).map((row) => [keyOf(row), row]))
  const verdictOf = (address: TouchedAddress) => {
    const known = facts.get(keyOf(address))
    return known ? judgeSoftBounces(known) : 'keep'
  }
  const wanted = [...undecided].flatMap(([address, event]) =>
    event !== null && verdictOf(address) === 'suppress'
      ? [{ address, suppression: suppressionFor('soft_bounces', event) }]
      : [],
  )
  if (wanted.length > 0) await suppress(tx, wanted, now)
  const over = addresses.filter((address) => verdictOf(address) === 'release')
  return (await release(tx, over, { now, lifted: null, detail: 'delivered' })).size
}

/**
 * Judges addresses that soft bounces alone suppress once more, one batch after another: no event says when an email has
 * stayed `sent` for a day. @returns how many it released.
 */
export async function reviewSoftSuppressions(
  database: Database,
  now: Date,
  sentCountsMs = SENT_COUNTS_MS,
): Promise<number> {
  let after: IdentityRef | undefined
  let released = 0
  for (;;) {
    const { found, count } = await database.transaction(async (tx) => {
      const found = await softlySuppressed(tx, after, REJUDGE_BATCH)
      const touched = await lockTouched(tx, found, now)
      const count = await judge(tx, new Map(touched.map((address) => [address, null])), { now, sentCountsMs })
      return { found, count }
    })
    released += count
    after = found.at(-1)
    if (found.length < REJUDGE_BATCH) return released
  }
}
