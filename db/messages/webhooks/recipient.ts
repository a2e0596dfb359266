/** Finds the subjects of events about one recipient, because events have no index on recipients. */
import { invalidField } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { parseMailbox } from '../../validation/address.ts'
import { normalisePhone } from '../../validation/phone.ts'
import { recipientSpellings } from '../emails/search.ts'
import { sentToNumbers } from '../to-numbers.sql.ts'
import { subjectsOfAddress } from './listing.sql.ts'

/** Only events about this many messages to a recipient are found, the newest. */
export const MAX_SUBJECTS = 500

/**
 * Returns the IDs of the newest messages to a recipient, and the ID of the contact.
 * @param given an address or a phone number. @throws RequestError bad_request.
 */
export async function subjectsOf(tx: Tx, teamId: string, given: string): Promise<readonly string[]> {
  const phone = given.includes('@') ? null : normalisePhone(given)
  if (phone) {
    const found = await sentToNumbers(tx, teamId, [phone.e164], MAX_SUBJECTS)
    return found.flatMap(({ sent }) => sent.map(({ id }) => id))
  }
  if (parseMailbox(given) === null)
    throw invalidField('recipient', 'must be a whole email address or phone number')
  return subjectsOfAddress(tx, teamId, recipientSpellings(given), MAX_SUBJECTS)
}
