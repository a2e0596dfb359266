/** Checks a draft or scheduled broadcast. Counts the contacts to reach and to skip, and lists missing data. */
import { missingProperties } from '../../audience/contacts/search.sql.ts'
import { isTooSlow, type Tx } from '../../postgres/pool.ts'
import { UNSUBSCRIBE_SLOT } from '../../validation/slots.ts'
import {
  type Audience,
  audienceSize,
  type ComparedAsText,
  comparedAsText,
  lackingMembers,
} from './audience.sql.ts'
import { type Blocker, findAudienceBlockers, findEmailBlockers, newestVersion } from './blockers.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import { toMailing } from './mailing.ts'

export type Readiness = {
  /** Null if the count timed out. */
  audience: number | null
  /** How many of them have no value for one of the slots, and these slots. */
  lacking: number
  slots: string[]
  /** Slots that no property of the latest contacts fills. */
  unfilled: readonly string[]
  as_text: readonly ComparedAsText[]
  /** The version of the template that would be sent, or null. */
  version_id: string | null
  missing: readonly Blocker[]
}

/** Returns a count, or null if it is too slow for an interactive request. */
async function inTime<T>(counted: Promise<T>): Promise<T | null> {
  try {
    return await counted
  } catch (error) {
    if (!isTooSlow(error)) throw error
    return null
  }
}

/** Counts an audience (null: too many), and the values that its number conditions compare as text. */
export async function countAudience(
  tx: Tx,
  audience: Audience,
): Promise<{ size: number | null; as_text: readonly ComparedAsText[] }> {
  const size = await inTime(audienceSize(tx, audience))
  return { size, as_text: (size !== null && (await inTime(comparedAsText(tx, audience)))) || [] }
}

/** Returns the variables that a contact's properties or the defaults fill. */
const givenSlots = (row: BroadcastRow, slots: readonly string[]): string[] =>
  toMailing(row, slots).slots.filter((slot) => slot !== UNSUBSCRIBE_SLOT && slot !== 'email')

/** Returns the variables that a contact's properties must fill, because they have no default. */
export const ownSlots = (row: BroadcastRow, slots: readonly string[]): string[] =>
  givenSlots(row, slots).filter((slot) => !Object.hasOwn(row.variables, slot))

/** Returns the slots of a draft, and its slots without a value: no default, and no property of the latest contacts. */
export async function draftSlots(tx: Tx, row: BroadcastRow) {
  const { slots } = await newestVersion(tx, row, null)
  const unfilled = await missingProperties(tx, row.team_id, ownSlots(row, slots))
  return { given: givenSlots(row, slots), unfilled }
}

export async function checkReadiness(
  tx: Tx,
  row: BroadcastRow,
  publicUrl: string | null,
): Promise<Readiness> {
  const { version_id, blockers: missing, ...mail } = await findEmailBlockers(tx, row, publicUrl)
  const slots = ownSlots(row, mail.slots)
  const unfilled = await missingProperties(tx, row.team_id, slots)
  const counted = await inTime(findAudienceBlockers(tx, row, row.send_at === null))
  const none = { audience: null, lacking: 0, as_text: [], slots, unfilled, version_id, missing }
  if (counted === null) return none
  const { audience, blockers } = counted
  const lacking = slots.length === 0 ? 0 : await inTime(lackingMembers(tx, row, slots))
  if (lacking === null) return none
  const as_text = (await inTime(comparedAsText(tx, row))) ?? []
  return { audience, lacking, as_text, slots, unfilled, version_id, missing: [...missing, ...blockers] }
}
