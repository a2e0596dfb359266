/**
 * Searches emails while somebody waits. What an index can find is found at once. Anything else is searched from the
 * newest email on, in growing stretches of time, until a page is full or the time is up.
 * Promises: a quick answer however many emails there are, with the place to go on from; never a row twice.
 */
import type { Tx } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import type { Versions } from '../templates/versions.ts'
import { firstIdAt } from '../text/ids.ts'
import type { Page } from './find.sql.ts'
import { type EmailFilter, findEmails } from './find.ts'
import type { ListedEmail } from './view.ts'

type Deps = { tx: Tx; versions: Versions; secrets: Secrets }

/** A page, and the id to go on before when the search was broken off; null when all was looked through. */
export type Searched = { emails: ListedEmail[]; reached: string | null }

const HOUR = 3_600_000
/** By how much the database's clock may be ahead of ours. The first stretch reaches as far into the past. */
const AHEAD = HOUR
/** For how long to begin further stretches, in milliseconds. */
const PATIENCE = 100

/** The time in a UUIDv7, in milliseconds. */
const timeOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/** Whether an index finds what fits, or each row has to be looked at. */
const needsLooking = ({ recipient, id, status, tag, subject, domain, template_id }: EmailFilter): boolean =>
  recipient === undefined &&
  id === undefined &&
  [status, tag, subject, domain, template_id].some((part) => part !== undefined)

/** @param since no email of the team is older. @throws Refusal as `findEmails`. */
export async function searchEmails(
  deps: Deps,
  filter: EmailFilter & { since: Date; now: Date },
  { before, limit }: Page,
  patience = PATIENCE,
): Promise<Searched> {
  const { since, now, ...wanted } = filter
  if (!needsLooking(wanted))
    return { emails: await findEmails(deps, wanted, { before, limit }), reached: null }
  const started = performance.now()
  const first = Math.max(since.getTime(), wanted.from?.getTime() ?? 0)
  const last = Math.min(wanted.to?.getTime() ?? Number.POSITIVE_INFINITY, now.getTime() + AHEAD)
  let end = before === undefined ? last : Math.min(last, timeOf(before) + 1)
  const emails: ListedEmail[] = []
  for (let width = AHEAD + HOUR; emails.length < limit && end > first; ) {
    const began = performance.now()
    const from = Math.max(first, end - width)
    const stretch = { ...wanted, from: new Date(from), to: new Date(end) }
    const page = { before: emails.at(-1)?.id ?? before, limit: limit - emails.length }
    emails.push(...(await findEmails(deps, stretch, page)))
    end = from
    const ended = performance.now()
    if (ended - started > patience) break
    // A stretch twice as long takes about twice as long: it is begun only if that ends in time, or nearly.
    width *= Math.min(2, Math.max(1, (started + patience - ended) / (ended - began)))
  }
  const isDone = emails.length >= limit || end <= first
  return { emails, reached: isDone ? null : firstIdAt(new Date(end)) }
}
