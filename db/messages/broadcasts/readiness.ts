/** How a draft stands before its start: whom it would go to, how many would be skipped, and what is missing. */
import { isTooSlow, type Tx } from '../../postgres/pool.ts'
import { UNSUBSCRIBE_SLOT } from '../../text/slots.ts'
import {
  type Audience,
  audienceSize,
  type ComparedAsText,
  comparedAsText,
  lackingMembers,
} from './audience.sql.ts'
import { audienceBlocker, domainBlocker, linkBlocker, templateBlocker, topicBlockers } from './blockers.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import { mailingOf } from './mailing.ts'

export type Readiness = {
  /** null: too many to be counted while somebody waits. */
  audience: number | null
  /** How many of them have no value for one of the slots, and these slots. */
  lacking: number
  slots: string[]
  as_text: readonly ComparedAsText[]
  /** The version of the template that would be sent; null without one. */
  version_id: string | null
  missing: string[]
}

/** What a count answers; null when that takes longer than somebody waits. */
async function inTime<T>(counted: Promise<T>): Promise<T | null> {
  try {
    return await counted
  } catch (error) {
    if (!isTooSlow(error)) throw error
    return null
  }
}

/** How many contacts an audience has, null: too many to count; and what its number conditions compare as text. */
export async function countAudience(
  tx: Tx,
  audience: Audience,
): Promise<{ size: number | null; as_text: readonly ComparedAsText[] }> {
  const size = await inTime(audienceSize(tx, audience))
  return { size, as_text: (size !== null && (await inTime(comparedAsText(tx, audience)))) || [] }
}

export async function readinessOf(tx: Tx, row: BroadcastRow, publicUrl: string | null): Promise<Readiness> {
  const template = await templateBlocker(tx, row)
  const slots = mailingOf(row, template.slots).slots.filter(
    (slot) => slot !== UNSUBSCRIBE_SLOT && slot !== 'email' && !Object.hasOwn(row.variables, slot),
  )
  const set = [
    ...(await domainBlocker(tx, row)),
    ...linkBlocker(publicUrl),
    ...template.blockers,
    ...(await topicBlockers(tx, row)),
  ]
  const { version_id } = template
  const missing = set.map(({ words }) => words)
  const counted = await inTime(audienceBlocker(tx, row, row.send_at === null))
  const none = { audience: null, lacking: 0, as_text: [], slots, version_id, missing }
  if (counted === null) return none
  const { audience, blockers } = counted
  const lacking = slots.length === 0 ? 0 : await inTime(lackingMembers(tx, row, slots))
  if (lacking === null) return none
  return {
    audience,
    lacking,
    as_text: (await inTime(comparedAsText(tx, row))) ?? [],
    slots,
    version_id,
    missing: [...missing, ...blockers.map(({ words }) => words)],
  }
}
