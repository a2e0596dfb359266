/**
 * Finds suppressed recipients of emails that are about to be sent, from the data read with the rows. Erased addresses
 * and international domains need another lookup. With SIMULATED_RECIPIENTS, addresses of the
 * simulator aren't checked, so that a test suite can use them again.
 */

import { stopsTransactional, suppressedDetail } from '../../db/audience/suppressions/cause.ts'
import { findStopping } from '../../db/audience/suppressions/suppressed.ts'
import type { OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { recipientIdentity } from '../../db/validation/addressees.ts'
import { isMagic, isSuppressedByName } from '../providers/test/magic-recipients.ts'
import { recipientsOf } from './render.ts'

/** `simulated_recipients` is true if recipients' names decide the outcome because nothing is delivered. */
type SuppressionDeps = { database: Database; secrets: Secrets; simulated_recipients: boolean }

/** The detail of the event for each suppressed recipient. */
export type Suppressed = ReadonlyMap<string, string>

export const NOBODY_SUPPRESSED: Suppressed = new Map()

type Row = OutgoingRow

const isChecked = ({ broadcast_id, internal, suppression, suppress_transactional }: Row): boolean =>
  suppress_transactional !== 'nothing' && broadcast_id === null && !internal && suppression !== 'ignored'

/** True if a recipient's domain may be spelled differently in the table. */
const isInternational = (recipient: string): boolean => /[^\x20-\x7e]/.test(recipient)

/** Returns the suppressions of a row's recipients, by identity. An erased recipient's has no date. */
async function findDetails(row: Row, { database, secrets }: SuppressionDeps): Promise<Map<string, string>> {
  const stops = row.suppress_transactional
  const recipients = recipientsOf(row)
  const stored = (row.suppressed ?? []).filter((one) => stopsTransactional(stops, one))
  const details = new Map(stored.map((one) => [one.identity, suppressedDetail(one)]))
  if (!row.has_erased && !recipients.some(isInternational)) return details
  const team = { teamId: row.team_id, stops }
  const found = await findStopping(database, secrets, team, recipients.map(recipientIdentity))
  for (const [identity, known] of found) details.set(identity, known ? suppressedDetail(known) : '')
  return details
}

/** Returns the suppressed recipients of rows, by the ID of the row. */
export async function suppressedRecipients(rows: readonly Row[], deps: SuppressionDeps) {
  const today = new Date().toISOString()
  const simulated = suppressedDetail({
    ...{ cause: 'bounce', since: today, response: 'simulated' },
    ...{ bounced_at: today, bounce_response: 'simulated' },
  })
  const found = new Map<string, Suppressed>()
  for (const row of rows.filter(isChecked)) {
    const details = await findDetails(row, deps)
    const own = recipientsOf(row).flatMap((to): [string, string][] => {
      if (deps.simulated_recipients && isMagic(to)) return isSuppressedByName(to) ? [[to, simulated]] : []
      const detail = details.get(recipientIdentity(to))
      return detail === undefined ? [] : [[to, detail]]
    })
    if (own.length > 0) found.set(row.id, new Map(own))
  }
  return found
}
