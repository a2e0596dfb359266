/**
 * Copies suppressions of contacts that are older than suppressed_addresses, or that 0.1.0 writes. A permanent bounce
 * is classified again by its response.
 */
import type { Tx } from '../../postgres/pool.ts'
import { classifyFailure } from '../../validation/failures.ts'
import type { Cause } from '../contacts/effect.ts'
import { insertAddresses, liftAddresses, lockAddresses, updateAddresses } from './addresses.sql.ts'
import { merged, type Suppression, suppressionBy } from './cause.ts'
import { contactsToCopy, type LockedContact, markCopied } from './suppressions.sql.ts'

const keyOf = ({ team_id, identity }: Pick<LockedContact, 'team_id' | 'identity'>) => `${team_id}/${identity}`

/** True if a stored response means that the address doesn't exist or accepts no mail. */
const isAboutAddress = (response: string): boolean =>
  response !== '' && classifyFailure({ reply: response }).about === 'address'

/** Returns the cause of a contact's suppression, from its row. */
function judgedCause({
  suppression,
  suppression_cause: stored,
  suppressed_softly,
}: Pick<LockedContact, 'suppression' | 'suppression_cause' | 'suppressed_softly'>): Cause {
  if (suppression === 'complained') return 'complaint'
  if (stored?.what === 'added by hand') return 'manual'
  const isDead = stored?.what === 'permanent bounce' && !suppressed_softly && isAboutAddress(stored.detail)
  return isDead ? 'bounce' : 'soft_bounces'
}

function suppressionFrom(contact: LockedContact, now: Date): Suppression {
  const stored = contact.suppression_cause
  return suppressionBy(judgedCause(contact), {
    since: stored?.at ?? now.toISOString(),
    email_id: stored?.email_id ?? null,
    report_id: stored?.report_id ?? null,
    response: stored?.detail ?? '',
  })
}

export type Copied = Partial<Record<Cause, number>>

/** Copies the suppressions of locked contacts. @returns how many, by cause. */
export async function copyLockedSuppressions(
  tx: Tx,
  contacts: readonly LockedContact[],
  now: Date,
): Promise<Copied> {
  const changed = contacts.filter(({ is_copied }) => !is_copied)
  if (changed.length === 0) return {}
  const suppressed = changed.filter(({ suppression }) => suppression !== null)
  const wanted = suppressed.map((contact) => {
    const { team_id, identity, email } = contact
    return { team_id, identity, email, ...suppressionFrom(contact, now) }
  })
  const inserted = new Set((await insertAddresses(tx, wanted)).map(keyOf))
  const others = wanted.filter((one) => !inserted.has(keyOf(one)))
  if (others.length > 0) {
    const held = new Map((await lockAddresses(tx, others)).map((one) => [keyOf(one), one]))
    await updateAddresses(
      tx,
      others.map((one) => {
        const before = held.get(keyOf(one))
        const { cause, since } = before ?? { cause: null, since: null }
        return { ...one, ...merged(before && cause && since ? { ...before, cause, since } : null, one) }
      }),
    )
  }
  const lifted = changed.filter(({ suppression }) => suppression === null)
  if (lifted.length > 0) await liftAddresses(tx, lifted, null)
  await markCopied(tx, changed)
  const counts: Copied = {}
  for (const { cause } of wanted) counts[cause] = (counts[cause] ?? 0) + 1
  return counts
}

/** Copies the next suppressions of 0.1.0. @returns the number of checked contacts, and of copied rows. */
export async function copyNext(tx: Tx, limit: number, now: Date) {
  const contacts = await contactsToCopy(tx, limit)
  return { checked: contacts.length, copied: await copyLockedSuppressions(tx, contacts, now) }
}
