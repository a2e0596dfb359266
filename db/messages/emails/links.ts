/**
 * Links an email and the one that was sent again from it. The timelines store no recipient, because recipients can be
 * erased.
 */
import type { By } from '../../accounts/audit/record.ts'
import type { Tx } from '../../postgres/pool.ts'
import { addressees } from '../../validation/addressees.ts'
import { addresseesOfEmail } from './emails.sql.ts'
import { storeEmailEvents } from './events.sql.ts'
import { type Again, type LinkKind, linkIn } from './status.ts'

/** Records in both timelines that `fresh` was sent again from `original`. */
export async function linkEmails(
  { tx, now, actor }: By,
  teamId: string,
  { original, fresh, how }: { original: string; fresh: string; how: Again },
): Promise<void> {
  const event = (email_id: string, other: string, kind: LinkKind) => ({
    ...{ team_id: teamId, email_id, kind, event_key: `${kind}:${other}`, recipient: null },
    occurred_at: now,
    detail: `${other} by ${actor}`,
  })
  await storeEmailEvents(tx, [event(original, fresh, how), event(fresh, original, `${how}_from`)])
}

type LinkedEmail = { kind: LinkKind; id: string; by: string; time: string; to_emails: string[] | null }

/** How many linked emails are shown. A user may send a copy a hundred times. */
const MAX_LINKED_EMAILS = 5

/** Returns the emails linked in a timeline, latest first. `to_emails` is null for a deleted email. */
export async function linkedEmails(
  tx: Tx,
  { team_id, events }: { team_id: string; events: readonly { kind: string; detail: string; time: string }[] },
): Promise<LinkedEmail[]> {
  const links = events.flatMap((event) => {
    const link = linkIn(event)
    return link ? [{ ...link, time: event.time }] : []
  })
  const linked: LinkedEmail[] = []
  for (const link of links.reverse().slice(0, MAX_LINKED_EMAILS)) {
    const other = await addresseesOfEmail(tx, team_id, link.id)
    linked.push({ ...link, to_emails: other && addressees(other).to })
  }
  return linked
}
