/**
 * Bulk upsert: validates the items of a call and stores them in the caller's transaction, with a handful of
 * statements. Items are accepted in order until the quota is used up. An existing contact's status never changes.
 * Parallel calls of a team wait at its account, and contacts are locked in one order. DECISIONS: Bulk upsert.
 * Calls are stored as the text that was sent (upserts.sql.ts), and workers validate the items here. So a NUL or lone
 * surrogate, which a JSON column would reject, only affects its own item.
 */

import type { InferType } from 'yup'
import { buildCharge, left, lockAccount, toAccount } from '../../accounts/teams/limits.ts'
import { readAccountRow } from '../../accounts/teams/teams.sql.ts'
import { RequestError, resultOrError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import { parsedAddress } from '../../validation/address.ts'
import { isObject, parse } from '../../validation/fields.ts'
import { TEXTS } from '../texts.ts'
import { insertContacts, propertiesOf, statusesOf, writeContacts } from './contacts.sql.ts'
import { contactsReached } from './edit.ts'
import { initialStates, NEW_CONTACT } from './erased.ts'
import { breach, claimFault, claimsStatus, type StatusClaims, upsertSchema } from './fields.ts'

type Properties = InferType<typeof upsertSchema>['properties']
export type ContactItem = {
  /** The prefix of fields in errors: '', or `contacts[3].` in a call. */
  path: string
  email: string
  identity: string
  properties: Properties
  claims: StatusClaims | null
}

function toItem(value: unknown, place: string): ContactItem {
  const { email, properties, ...claims } = parse(upsertSchema, value, place)
  const parsed = parsedAddress(email)
  return {
    path: place === '' ? '' : `${place}.`,
    email: parsed.address,
    identity: parsed.identity,
    properties,
    claims: claimsStatus(claims) ? claims : null,
  }
}

export const readItem = (value: object): ContactItem | RequestError => resultOrError(() => toItem(value, ''))

/** Parses the items of a stored call. Invalid items become errors. */
export function readItems(body: string): (ContactItem | RequestError)[] {
  const call: unknown = JSON.parse(body)
  const items = isObject(call) && Array.isArray(call.contacts) ? call.contacts : []
  return items.map((item, index) => resultOrError(() => toItem(item, `contacts[${index}]`)))
}

/** Returns the properties for each contact of a call: those of the last item that has any, or null. */
function collectProperties(
  items: readonly (ContactItem | RequestError)[],
): Map<string, NonNullable<Properties> | null> {
  const maps = new Map<string, NonNullable<Properties> | null>()
  for (const item of items) {
    if (item instanceof RequestError) continue
    maps.set(item.identity, item.properties ?? maps.get(item.identity) ?? null)
  }
  return maps
}

/** Accepts items in order while the quota allows. @returns a result for each, and the contacts to create. */
function decide(
  items: readonly (ContactItem | RequestError)[],
  existing: ReadonlyMap<string, string>,
  maps: ReadonlyMap<string, NonNullable<Properties> | null>,
  { room, full }: { room: number; full: RequestError },
) {
  const fresh = new Map<string, { id: string; email: string }>()
  const outcomes = items.map((item) => {
    if (item instanceof RequestError) return item
    const { email, identity } = item
    const known = existing.get(identity) ?? fresh.get(identity)?.id
    if (known !== undefined) return known
    if (fresh.size >= room) return full
    const id = idNow()
    fresh.set(identity, { id, email })
    return id
  })
  return {
    outcomes,
    fresh: [...fresh].map(([identity, contact]) => ({
      ...contact,
      identity,
      properties: maps.get(identity) ?? {},
    })),
  }
}

type Upserting = At & { secrets: Pick<Secrets, 'signatures'> }

/** Replaces items that claim another status than the contact has with errors, because the claim would be lost. */
async function withoutLosses(
  { tx, secrets }: Upserting,
  teamId: string,
  items: readonly (ContactItem | RequestError)[],
): Promise<readonly (ContactItem | RequestError)[]> {
  const claiming = items.flatMap((item) =>
    item instanceof RequestError || !item.claims ? [] : [item.identity],
  )
  if (claiming.length === 0) return items
  const identities = [...new Set(claiming)]
  const statuses = await statusesOf(tx, teamId, identities)
  const fresh = identities.filter((identity) => !statuses.has(identity))
  const begun = await initialStates(tx, secrets, teamId, fresh)
  return items.map((item) => {
    if (item instanceof RequestError || !item.claims) return item
    const { status } = begun.get(item.identity) ?? NEW_CONTACT
    const fault = claimFault(item.claims, statuses.get(item.identity) ?? status, item.path)
    return fault ? new RequestError('bad_request', fault) : item
  })
}

/**
 * Merges the properties of items into those of existing contacts. Returns an error for items that would have too
 * many.
 * @param hold true to lock the contacts.
 */
async function merged(
  { tx }: { tx: Tx },
  teamId: string,
  items: readonly (ContactItem | RequestError)[],
  hold: boolean,
): Promise<readonly (ContactItem | RequestError)[]> {
  const identities = items.flatMap((item) =>
    item instanceof RequestError || !item.properties ? [] : [item.identity],
  )
  const known = await propertiesOf(tx, teamId, [...new Set(identities)], hold)
  return items.map((item) => {
    if (item instanceof RequestError || !item.properties) return item
    const properties = { ...known.get(item.identity), ...item.properties }
    const fault = breach(properties, `${item.path}properties`)
    if (fault) return new RequestError('bad_request', fault)
    known.set(item.identity, properties)
    return { ...item, properties }
  })
}

/** With `merge`, properties are added to existing ones. Otherwise they replace all of them, as in the API. */
type Writing = { merge: boolean }
const REPLACE: Writing = { merge: false }

/**
 * Predicts the results of an upsert, without storing or locking. `repeated` counts items after the first of a
 * contact.
 */
export async function tryUpsert(
  at: Upserting,
  teamId: string,
  given: readonly (ContactItem | RequestError)[],
  { merge }: Writing,
): Promise<{
  created: number
  updated: number
  repeated: number
  outcomes: readonly (string | RequestError)[]
}> {
  const row = await readAccountRow(at.tx, teamId)
  if (!row) throw new RequestError('not_found', TEXTS.noTeam)
  const { limits, used } = toAccount(row)
  const judged = await withoutLosses(at, teamId, given)
  const items = merge ? await merged(at, teamId, judged, false) : judged
  const maps = collectProperties(items)
  const existing = await statusesOf(at.tx, teamId, [...maps.keys()])
  const room = { room: left(limits.contacts, used.contacts), full: contactsReached(limits.contacts) }
  const { outcomes, fresh } = decide(items, existing, maps, room)
  const taken = items.flatMap((item, at) =>
    item instanceof RequestError || outcomes[at] instanceof RequestError ? [] : [item.identity],
  )
  const [created, contacts] = [fresh.length, new Set(taken).size]
  return { created, updated: contacts - created, repeated: taken.length - contacts, outcomes }
}

/**
 * The result of each item, a contact's ID or an error, or an error for the complete call. `created` are the new
 * contacts.
 */
export type Upserted =
  | { items: (string | RequestError)[]; created: readonly string[] }
  | { refusal: RequestError }

/**
 * Upserts the items. If the quota is used up and no item updates an existing contact, the complete call is rejected.
 */
export async function upsertContacts(
  { tx, now, secrets }: Upserting,
  teamId: string,
  given: readonly (ContactItem | RequestError)[],
  { merge }: Writing = REPLACE,
): Promise<Upserted> {
  const account = await lockAccount(tx, teamId)
  const judged = await withoutLosses({ tx, now, secrets }, teamId, given)
  const items = merge ? await merged({ tx }, teamId, judged, true) : judged
  const maps = collectProperties(items)
  const existing = await writeContacts(tx, teamId, maps, now)
  const { limits, used } = account
  const room = left(limits.contacts, used.contacts)
  const full = contactsReached(limits.contacts)
  if (maps.size > 0 && existing.size === 0 && room === 0) return { refusal: full }
  const { outcomes, fresh } = decide(items, existing, maps, { room, full })
  if (fresh.length > 0) {
    used.contacts += fresh.length
    const identities = fresh.map(({ identity }) => identity)
    const begun = await initialStates(tx, secrets, teamId, identities)
    const contacts = fresh.map((contact) => ({ ...contact, ...(begun.get(contact.identity) ?? NEW_CONTACT) }))
    await insertContacts(tx, teamId, contacts, { now: account.now, charge: buildCharge(teamId, account) })
  }
  return { items: outcomes, created: fresh.map(({ id }) => id) }
}
