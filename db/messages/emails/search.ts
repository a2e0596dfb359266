/**
 * Searches emails while somebody waits. What an index can find is found at once. Anything else is searched from the
 * newest email on, in growing stretches of time, until a page is full or the time is up.
 * Promises: a quick answer however many emails there are, with the place to go on from; never a row twice.
 */

import type { Versions } from '../../content/templates/versions.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { firstIdAt } from '../../text/ids.ts'
import type { Page } from './find.sql.ts'
import { type EmailFilter, findEmails } from './find.ts'
import { isRare } from './status.ts'
import { latest, stretches, timeOf } from './stretches.ts'
import type { ListedEmail } from './view.ts'

type Deps = { tx: Tx; versions: Versions; secrets: Secrets }

/** A page, and the id to go on before when the search was broken off; null when all was looked through. */
export type Searched = { emails: ListedEmail[]; reached: string | null }

/** For how long to begin further stretches, in milliseconds. */
const SEARCH_MS = 100

type Filter = Omit<EmailFilter, 'team_id'>

/** Whether an index leads to what fits, whatever the team. */
const isNamed = ({ recipient, id }: Filter): boolean => recipient !== undefined || id !== undefined

/** Whether each of a team's rows has to be looked at, because no index finds what fits in the order of its list. */
export const needsLooking = (filter: Filter): boolean => {
  const { status, scheduled = false, tag, subject, text, domain, template_id, broadcast_id } = filter
  if (isNamed(filter) || scheduled || status === 'queued') return false
  const others = [tag, subject, text, domain, template_id, broadcast_id].some((part) => part !== undefined)
  return others || (status !== undefined && !isRare(status))
}

/** The time in which emails that fit were accepted. @param since none is older. */
export const timeToLook = (
  { from, to }: Filter,
  { since, now }: { since: Date; now: Date },
): { first: number; last: number } => ({
  first: Math.max(since.getTime(), from?.getTime() ?? 0),
  last: Math.min(to?.getTime() ?? Number.POSITIVE_INFINITY, latest(now)),
})

/** @param since no email of the team is older. @throws Refusal as `findEmails`. */
export async function searchEmails(
  deps: Deps,
  filter: EmailFilter & { since: Date; now: Date },
  { before, limit }: Page,
  patience = SEARCH_MS,
): Promise<Searched> {
  const { since, now, ...wanted } = filter
  // No index has the emails of all teams in the order of a list.
  const ofAll = wanted.team_id === undefined && !isNamed(wanted)
  if (!ofAll && !needsLooking(wanted))
    return { emails: await findEmails(deps, wanted, { before, limit }), reached: null }
  const time = timeToLook(wanted, { since, now })
  if (before !== undefined) time.last = Math.min(time.last, timeOf(before) + 1)
  const emails: ListedEmail[] = []
  let end = new Date(time.last)
  for (const stretch of stretches(time, patience)) {
    const page = { before: emails.at(-1)?.id ?? before, limit: limit - emails.length }
    emails.push(...(await findEmails(deps, { ...wanted, ...stretch }, page)))
    end = stretch.from
    if (emails.length >= limit) break
  }
  const isDone = emails.length >= limit || end.getTime() <= time.first
  return { emails, reached: isDone ? null : firstIdAt(end) }
}
