/**
 * Suppressions that people add: of one address, or of a batch of a list that was brought from elsewhere.
 * Promises: an address that is no contact yet becomes one, within the allowance; a contact that is suppressed for as
 * much keeps its cause; they end as others do, by a person with a reason (lift.ts). The API never suppresses anybody.
 * DECISIONS: Suppression.
 */
import { type By, record } from '../../accounts/audit/record.ts'
import { RequestError } from '../../errors.ts'
import type { At } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { parseAddress } from '../../validation/address.ts'
import type { SuppressionCause } from '../contacts/effect.ts'
import { readItem, upsertContacts } from '../contacts/upsert.ts'
import { type ContactDetail, reasonOf, showContact } from './lift.ts'
import { bounce, complain, suppress } from './suppress.ts'
import { lockContacts } from './suppressions.sql.ts'

/** What a person can suppress a contact as. */
export const SUPPRESSIONS = ['bounced', 'complained'] as const
/** @param detail why, in the words of the person who says so. */
export type ByHand = { as: (typeof SUPPRESSIONS)[number]; detail: string }

const WRITES = { bounced: bounce, complained: complain }

/** Suppresses those of these contacts that are not suppressed for as much. @returns how many they were. */
export async function suppressContacts({ tx, now }: At, teamId: string, marks: ReadonlyMap<string, ByHand>) {
  const locked = await lockContacts(
    tx,
    [...marks.keys()].map((identity) => ({ team_id: teamId, identity })),
  )
  let changed = 0
  for (const as of SUPPRESSIONS) {
    const fresh = locked.flatMap((contact) => {
      const mark = marks.get(contact.identity)
      if (mark?.as !== as || WRITES[as].already.includes(contact.suppression)) return []
      const cause: SuppressionCause = {
        what: 'added by hand',
        at: now.toISOString(),
        email_id: null,
        report_id: null,
        detail: mark.detail,
      }
      return [[contact, { ...contact, cause }] as const]
    })
    if (fresh.length > 0) await suppress(tx, fresh, { ...WRITES[as], now })
    changed += fresh.length
  }
  return changed
}

/**
 * Suppresses one address, which becomes a contact if it is none.
 * @throws RequestError bad_request without an address or a reason, or when it is suppressed for as much already;
 * quota_exceeded.
 */
export async function suppressByHand(
  { secrets, ...by }: By & { secrets: Pick<Secrets, 'signatures'> },
  teamId: string,
  { email, as, reason }: { email: string; as: ByHand['as']; reason: string },
): Promise<ContactDetail> {
  const parsed = parseAddress(email)
  if (!parsed) throw new RequestError('bad_request', 'email must be an email address')
  const detail = reasonOf(reason)
  const result = await upsertContacts({ ...by, secrets }, teamId, [readItem({ email })])
  const [outcome] = 'refusal' in result ? [result.refusal] : result.items
  if (outcome instanceof RequestError) throw outcome
  const { address, identity } = parsed
  if ((await suppressContacts(by, teamId, new Map([[identity, { as, detail }]]))) === 0)
    throw new RequestError('bad_request', `${JSON.stringify(address)} is suppressed already`)
  await record(by, {
    team_id: teamId,
    action: 'contact.suppress',
    subject: address,
    detail: `${as}: ${detail}`,
  })
  return showContact(by.tx, teamId, identity)
}
