/** How a draft stands before its start: whom it would go to, how many would be skipped, and what is missing. */
import { isTooSlow, type Tx } from '../../postgres/pool.ts'
import { UNSUBSCRIBE_SLOT } from '../../text/slots.ts'
import { lackingMembers } from './audience.sql.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import {
  audienceHindrance,
  domainHindrance,
  linkHindrance,
  templateHindrance,
  topicHindrances,
} from './hindrances.ts'
import { letterOf } from './letter.ts'

export type Readiness = {
  /** null: too many to be counted while somebody waits. */
  audience: number | null
  /** How many of them have no value for one of the slots, and these slots. */
  lacking: number
  slots: string[]
  /** The version of the template that would be sent; null without one. */
  version_id: string | null
  missing: string[]
}

export async function readinessOf(tx: Tx, row: BroadcastRow, publicUrl: string | null): Promise<Readiness> {
  const template = await templateHindrance(tx, row)
  const slots = letterOf(row, template.slots).slots.filter(
    (slot) => slot !== UNSUBSCRIBE_SLOT && slot !== 'email' && !Object.hasOwn(row.variables, slot),
  )
  const set = [
    ...(await domainHindrance(tx, row)),
    ...linkHindrance(publicUrl),
    ...template.hindrances,
    ...(await topicHindrances(tx, row)),
  ]
  const { version_id } = template
  const missing = set.map(({ words }) => words)
  try {
    const { audience, hindrances } = await audienceHindrance(tx, row, row.send_at === null)
    const lacking = slots.length === 0 ? 0 : await lackingMembers(tx, row, slots)
    return {
      audience,
      lacking,
      slots,
      version_id,
      missing: [...missing, ...hindrances.map(({ words }) => words)],
    }
  } catch (error) {
    if (!isTooSlow(error)) throw error
    return { audience: null, lacking: 0, slots, version_id, missing }
  }
}
