/**
 * What reports mean for contacts: bounces and complaints suppress them (contract §3.1, decisions: delivery reports).
 * Promises: a contact's state is a function of the set of events, whatever their order, repeats or split over
 * transactions; hence soft bounces are counted over stored events, never by a running counter. Set-based. Contacts
 * must be locked before the events are stored: two transactions that cannot see each other's would both be wrong.
 */
import type { Tx } from '../postgres/pool.ts'
import { parseAddress } from '../text/address.ts'
import type { ContactEffect } from './effect.ts'
import {
  bounceContacts,
  type ContactRef,
  complainContacts,
  type IdentityRef,
  lockContacts,
  settleSoftBounces,
} from './suppressions.sql.ts'

/** The fifth soft bounce in a row without a delivery between is a bounce. */
const SOFT_BOUNCES = 5

/** A recipient and what an event means for it. */
export type Touched = { team_id: string; recipient: string | null; effect?: ContactEffect }

/** A contact as it was locked. */
export type LockedContact = ContactRef & { suppression: string | null; status_before: string | null }

/** Finds the locked contact that an event is about. */
export type ContactOf = (event: Touched) => LockedContact | undefined

const keyOf = ({ team_id, identity }: IdentityRef): string => `${team_id}/${identity}`

/** Whose contact an event is about, if it means anything to one. */
function refOf({ team_id, recipient, effect = 'none' }: Touched): IdentityRef | undefined {
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
  const rows = wanted.size === 0 ? [] : await lockContacts(tx, [...wanted.values()])
  const locked = new Map<string, LockedContact>(rows.map((row) => [keyOf(row), row]))
  return (event) => {
    const ref = refOf(event)
    return ref && locked.get(keyOf(ref))
  }
}

/** Moves the locked contacts by events that have just been stored: at most a statement for each kind of move. */
export async function applyContactEffects(
  tx: Tx,
  contactOf: ContactOf,
  events: readonly Touched[],
  now: Date,
): Promise<void> {
  const having = (...effects: ContactEffect[]): LockedContact[] => [
    ...new Set(
      events
        .filter(({ effect = 'none' }) => effects.includes(effect))
        .flatMap((event) => contactOf(event) ?? []),
    ),
  ]
  // A delivery matters only where soft bounces have suppressed; a soft bounce only where nothing has yet.
  const unsettled = [
    ...having('soft').filter(({ suppression }) => suppression === null),
    ...having('delivered').filter(({ status_before }) => status_before !== null),
  ]
  const [hard, complaints] = [having('hard'), having('complaint')]
  if (hard.length > 0) await bounceContacts(tx, hard, now)
  if (complaints.length > 0) await complainContacts(tx, complaints, now)
  if (unsettled.length > 0) await settleSoftBounces(tx, [...new Set(unsettled)], SOFT_BOUNCES, now)
}
