/**
 * Suppresses addresses manually: one, or a batch of an imported list. Neither needs nor creates a contact. An address
 * with an equal or stronger suppression keeps its cause. DECISIONS: Suppression.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { invalidField, type RequestError } from '../../errors.ts'
import type { At } from '../../postgres/pool.ts'
import { parseAddress } from '../../validation/address.ts'
import type { Cause } from '../contacts/effect.ts'
import { TEXTS } from '../texts.ts'
import { suppressionBy } from './cause.ts'
import {
  type ContactDetail,
  parseReason,
  type ShownSuppression,
  showAddress,
  showSuppression,
} from './lift.ts'
import { lockTouched, suppress } from './suppress.ts'

export const SUPPRESSIONS = ['bounced', 'complained'] as const
/** @param detail the user's reason. */
export type ByHand = { as: (typeof SUPPRESSIONS)[number]; detail: string }

export const ADDED_CAUSES = ['bounce', 'complaint', 'manual'] as const satisfies readonly Cause[]

export const CAUSE_AS = { bounced: 'bounce', complained: 'complaint' } as const satisfies Record<
  ByHand['as'],
  Cause
>

type Added = { identity: string; email: string; cause: Cause; reason: string }

/** Suppresses addresses that don't have an equal or stronger suppression. @returns how many. */
export async function suppressAddresses({ tx, now }: At, teamId: string, added: readonly Added[]) {
  const unique = new Map(added.map((one) => [one.identity, one]))
  const refs = [...unique.values()].map(({ identity, email }) => ({ team_id: teamId, identity, email }))
  if (refs.length === 0) return 0
  const touched = await lockTouched(tx, refs, now)
  const wanted = touched.flatMap((address) => {
    const one = unique.get(address.identity)
    if (!one) return []
    const given = { since: now.toISOString(), email_id: null, report_id: null, response: one.reason }
    return [{ address, suppression: suppressionBy(one.cause, given) }]
  })
  return suppress(tx, wanted, now)
}

const suppressedAlready = (address: string): RequestError =>
  invalidField('email', TEXTS.alreadySuppressed, { email: address })

/**
 * @returns the contact, or the suppression if the address isn't a contact.
 * @throws RequestError bad_request for an invalid address or reason, or if it has an equal or stronger suppression.
 */
export async function suppressByHand(
  by: By,
  teamId: string,
  { email, as, reason }: { email: string; as: ByHand['as']; reason: string },
): Promise<ContactDetail | ShownSuppression> {
  const parsed = parseAddress(email)
  if (!parsed) throw invalidField('email', 'must be an email address')
  const detail = parseReason(reason)
  const { address, identity } = parsed
  const added = { identity, email: address, cause: CAUSE_AS[as], reason: detail }
  if ((await suppressAddresses(by, teamId, [added])) === 0) throw suppressedAlready(address)
  await record(by, {
    team_id: teamId,
    action: 'contact.suppress',
    subject: address,
    detail: `${as}: ${detail}`,
  })
  return showAddress(by.tx, teamId, identity)
}

/** Suppresses one address, unless it has an equal or stronger suppression. @returns its suppression. */
export async function addSuppression(
  by: By,
  teamId: string,
  { email, cause, reason = '' }: { email: string; cause: Cause; reason?: string | undefined },
): Promise<ShownSuppression> {
  const parsed = parseAddress(email)
  if (!parsed) throw invalidField('email', 'must be an email address')
  const { address, identity } = parsed
  const words = reason === '' ? '' : parseReason(reason)
  const added = { identity, email: address, cause, reason: words }
  if ((await suppressAddresses(by, teamId, [added])) > 0)
    await record(by, {
      team_id: teamId,
      action: 'suppression.add',
      subject: address,
      detail: words === '' ? cause : `${cause}: ${words}`,
    })
  return showSuppression(by.tx, teamId, identity)
}
