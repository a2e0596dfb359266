/**
 * Suppresses addresses and their contacts because of reports. Five soft bounces in a row suppress, and a delivery
 * resets the count. The result doesn't depend on the order of events, because soft bounces are counted over stored
 * events. Contacts are locked before the events are stored. Otherwise two transactions could each miss the other's
 * events. DECISIONS: Suppression.
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
  softFacts,
  softlySuppressed,
  suppressedAmong,
  updateAddresses,
} from './addresses.sql.ts'
import { causeShown, merged, type Suppression, statusBy, suppressionBy } from './cause.ts'
import { copyLockedSuppressions } from './copy.ts'
import { judgeSoftBounces, SOFT_BOUNCES } from './soft-bounces.ts'
import { type LockedContact, lockContacts, markSuppressed, releaseContacts } from './suppressions.sql.ts'

/** An email that stays `sent` this long without a report counts as delivered (DECISIONS: Delivery reports). */
const SENT_COUNTS_MS = 86_400_000
const REJUDGE_BATCH = 500

/** A recipient, and the effect of an event on it. */
type Touched = {
  team_id: string
  email_id: string
  recipient: string | null
  occurred_at: Date
  detail: string
  effect?: ContactEffect
  report_id?: string | undefined
}

/** `contact` is locked. It is null if the address isn't a contact. */
type TouchedAddress = IdentityRef & { email: string; contact: LockedContact | null }

export type AddressFor = (event: Touched) => TouchedAddress | undefined

const keyOf = ({ team_id, identity }: IdentityRef): string => `${team_id}/${identity}`

/** Returns the address of an event, or undefined if the event has no effect on an address. */
function toRef({ team_id, recipient, effect = 'none' }: Pick<Touched, 'team_id' | 'recipient' | 'effect'>) {
  if (effect === 'none' || recipient === null) return undefined
  const parsed = parseAddress(recipient)
  return parsed ? { team_id, identity: parsed.identity, email: parsed.address } : undefined
}

/** Locks the contacts of addresses, and copies suppressions of version 0.1.0. */
export async function lockTouched(tx: Tx, refs: readonly (IdentityRef & { email: string })[], now: Date) {
  const contacts = await lockContacts(tx, refs)
  await copyLockedSuppressions(tx, contacts, now)
  const byKey = new Map(contacts.map((contact) => [keyOf(contact), contact]))
  return refs.map((ref) => {
    const contact = byKey.get(keyOf(ref)) ?? null
    return { ...ref, email: contact?.email ?? ref.email, contact }
  })
}

/** Locks the contacts that events are about, in one statement. */
export async function lockTouchedAddresses(
  tx: Tx,
  events: readonly Touched[],
  now: Date,
): Promise<AddressFor> {
  const wanted = new Map(
    events.flatMap((event) => {
      const ref = toRef(event)
      return ref ? [[keyOf(ref), ref] as const] : []
    }),
  )
  if (wanted.size === 0) return () => undefined
  const touched = await lockTouched(tx, [...wanted.values()], now)
  const soft = events.flatMap((event) => (event.effect === 'soft' ? (toRef(event) ?? []) : []))
  // For contacts, their lock is sufficient.
  const others = soft.filter((ref) => !touched.find((one) => keyOf(one) === keyOf(ref))?.contact)
  if (others.length > 0) await lockSoftCounts(tx, others)
  const byKey = new Map(touched.map((one) => [keyOf(one), one]))
  return (event) => {
    const ref = toRef(event)
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

/** Suppresses and releases locked addresses after their events were stored. */
export async function applyContactEffects(
  tx: Tx,
  addressFor: AddressFor,
  events: readonly Touched[],
  now: Date,
  sentCountsMs = SENT_COUNTS_MS,
): Promise<void> {
  /** Returns the addresses of events with this effect, each with the last such event. */
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

/** A delivery only matters for addresses that soft bounces suppressed. */
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

type ToSuppress = { address: TouchedAddress; suppression: Suppression }

/** @returns the resulting rows, those that weren't suppressed before, and those whose cause changed. */
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
 * Suppresses addresses and their contacts, and publishes the new suppressions. @returns how many have a new cause.
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

/** How a suppression ends. `lifted` is the time of a manual lift, or null after a delivery. */
type Ending = { now: Date; lifted: Date | null; detail: string }

/** Ends the suppression of addresses whose contacts are locked. @returns the keys of those that were suppressed. */
export async function release(
  tx: Tx,
  refs: readonly IdentityRef[],
  { now, lifted, detail }: Ending,
): Promise<Set<string>> {
  if (refs.length === 0) return new Set()
  const addresses = new Map((await liftAddresses(tx, refs, lifted)).map((row) => [keyOf(row), row]))
  const contacts = new Map((await releaseContacts(tx, refs, { now, lifted })).map((row) => [keyOf(row), row]))
  const released = new Map([...addresses, ...contacts])
  // Their contacts, if any, have no suppression.
  const others = [...addresses.values()].filter((row) => !contacts.has(keyOf(row)))
  const unmarked = others.length === 0 ? [] : await lockContacts(tx, others)
  const contactIds = new Map([...contacts.values(), ...unmarked].map((row) => [keyOf(row), row.contact_id]))
  await publishContacts(
    tx,
    [...released].map(([key, { team_id, email, has_listeners }]) => ({
      ...{ team_id, contact_id: contactIds.get(key) ?? null, has_listeners },
      kind: 'released' as const,
      about: { email },
      ...{ occurred_at: now, detail },
    })),
  )
  return new Set(released.keys())
}

/** Judges locked addresses by their soft bounces. @returns how many it released. */
async function judge(
  tx: Tx,
  undecided: ReadonlyMap<TouchedAddress, Touched | null>,
  { now, sentCountsMs }: { now: Date; sentCountsMs: number },
): Promise<number> {
  const addresses = [...undecided.keys()]
  const rule = { most: SOFT_BOUNCES, undisputed: new Date(now.getTime() - sentCountsMs) }
  const facts = new Map((await softFacts(tx, addresses, rule)).map((row) => [keyOf(row), row]))
  const judgeAddress = (address: TouchedAddress) => {
    const known = facts.get(keyOf(address))
    return known ? judgeSoftBounces(known) : 'keep'
  }
  const wanted = [...undecided].flatMap(([address, event]) =>
    event !== null && judgeAddress(address) === 'suppress'
      ? [{ address, suppression: suppressionFor('soft_bounces', event) }]
      : [],
  )
  if (wanted.length > 0) await suppress(tx, wanted, now)
  const over = addresses.filter((address) => judgeAddress(address) === 'release')
  return (await release(tx, over, { now, lifted: null, detail: 'delivered' })).size
}

/**
 * Judges all addresses again that are suppressed for soft bounces, in batches, because no event tells that an email
 * has stayed `sent` for a day. @returns how many it released.
 */
export async function reviewSoftSuppressions(database: Database, now: Date, sentCountsMs = SENT_COUNTS_MS) {
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
