/**
 * Stores reports in bounces by mail about our own configuration. They never pause a sender, because every recipient
 * has seen the return address that authenticates them. DECISIONS: Failure classes.
 */
import { APPLIED, UNKNOWN } from '../../delivery/reports/event-result.ts'
import type { Tx } from '../../postgres/pool.ts'
import { type SenderReport, storeSenderReports } from '../../stats/fleet/sender-reports.sql.ts'
import { ERASED, recipientIdentity } from '../../validation/addressees.ts'
import { impersonal } from '../../validation/words.ts'
import { type ReportedSender, senderReportRows } from './apply-events.sql.ts'
import { bareRecipients } from './recipients.ts'

/** `bulk`: the sender of broadcasts, if they have their own. */
type SenderReportEvent = {
  sender: { single: string; bulk: string }
  ref: { team_id: string; id: string }
  /** As the report names it. It only chooses among the email's recipients. */
  recipient: string | null
  detail: string
  occurred_at: Date
}

const keyOf = ({ team_id, id }: SenderReportEvent['ref']): string => `${team_id}/${id}`.toLowerCase()

/** Returns the domain of the recipient that a report is about, or null. */
function domainOf({ recipient }: SenderReportEvent, { to_emails }: ReportedSender): string | null {
  const own = bareRecipients(to_emails)
  const named = recipient === null ? undefined : own.get(recipientIdentity(recipient))
  const [only, ...others] = own.values()
  const address = named ?? (others.length === 0 ? only : undefined)
  if (address === undefined || address === ERASED) return null
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}

export async function applySenderReports(tx: Tx, events: readonly SenderReportEvent[]) {
  const rows = await senderReportRows(
    tx,
    events.map(({ ref }) => ({ team_id: ref.team_id, email_id: ref.id })),
  )
  const known = new Map(rows.map((row) => [keyOf({ team_id: row.team_id, id: row.email_id }), row]))
  const reports = events.flatMap((event): SenderReport[] => {
    const row = known.get(keyOf(event.ref))
    const domain = row ? domainOf(event, row) : null
    if (!row || domain === null) return []
    const { occurred_at, sender, detail } = event
    const report = { domain, email_id: row.email_id, occurred_at, response: impersonal(detail) }
    return [{ ...report, sender: row.is_broadcast ? sender.bulk : sender.single }]
  })
  if (reports.length > 0) await storeSenderReports(tx, reports)
  return events.map(({ ref }) => (known.has(keyOf(ref)) ? APPLIED : UNKNOWN))
}
