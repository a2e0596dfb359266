/**
 * Lists and searches emails for the CLI and the dashboard. Uses an index if possible. Otherwise it searches from the
 * newest email in growing parts, until the page is full or the time limit passes, and returns the position to
 * continue from.
 */

import { domainToUnicode } from 'node:url'
import { MAX } from 'uuid'
import { requireTeam } from '../../accounts/teams/view.ts'
import type { Versions } from '../../content/templates/versions.ts'
import { messagesWithId } from '../../delivery/locate.sql.ts'
import { invalidField } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { SEARCH_MS, type Searched, searchParts } from '../../postgres/search-parts.ts'
import type { Secrets } from '../../process/secrets.ts'
import { domainToAscii, parseMailbox } from '../../validation/address.ts'
import { firstIdAt, timeOfId } from '../../validation/ids.ts'
import { TEXTS } from '../texts.ts'
import type { EmailRow } from './emails.sql.ts'
import { latest, stretches } from './id-ranges.ts'
import { type EmailCriteria, type EmailPage, emailFurther, emailsFound } from './search.sql.ts'
import { loadVersions } from './show.ts'
import { isRare } from './status.ts'
import { type ListedEmail, listedEmail } from './view.ts'

type Deps = { tx: Tx; versions: Versions; secrets: Secrets }

/** The filter as users enter it. All set parts must match. Without `team_id`, all teams are searched. */
export type EmailFilter = Omit<EmailCriteria, 'recipients' | 'words' | 'text' | 'domains'> & {
  /** An address, with or without a name. */
  recipient?: string | undefined
  /** Words that are all in the subject, in any order and case. */
  subject?: string | undefined
  /** Words that are all in the subject, or in recipients' names and addresses, in any order and case. */
  text?: string | undefined
  domain?: string | undefined
}

const MAX_WORDS = 20

// How many rows are read at once. Rows without a stored size include their HTML.
const READ_BATCH = 100

/** Returns the spellings that an address may use for a domain name. @throws RequestError bad_request. */
function domainSpellings(given: string): string[] {
  const ascii = domainToAscii(given)
  if (ascii === null) throw invalidField('domain', TEXTS.notDomainGiven, { given: JSON.stringify(given) })
  return [...new Set([ascii, domainToUnicode(ascii)])]
}

/**
 * Returns the identities that a stored address may have, because its domain is stored as given.
 * @throws RequestError bad_request.
 */
export function recipientSpellings(given: string): string[] {
  const mailbox = parseMailbox(given)
  if (mailbox === null) {
    throw invalidField('recipient', TEXTS.notAddressGiven, { given: JSON.stringify(given) })
  }
  const local = mailbox.address.slice(0, mailbox.address.lastIndexOf('@')).toLowerCase()
  return domainSpellings(mailbox.domain).map((domain) => `${local}@${domain}`)
}

/** Splits a filter at spaces. @throws RequestError bad_request if it has too many terms. */
function splitWords(what: 'subject' | 'q', given: string | undefined): string[] | undefined {
  const words = given?.split(/\s+/).filter((word) => word !== '')
  if (words === undefined || words.length <= MAX_WORDS) return words
  throw invalidField(what, TEXTS.tooManyWords, { most: MAX_WORDS })
}

/** Converts the filter for the query. @throws RequestError bad_request for an invalid address or domain. */
export function toCriteria({ recipient, subject, text, domain, ...rest }: EmailFilter): EmailCriteria {
  return {
    ...rest,
    recipients: recipient === undefined ? undefined : recipientSpellings(recipient),
    words: splitWords('subject', subject),
    text: splitWords('q', text),
    domains: domain === undefined ? undefined : domainSpellings(domain),
  }
}

/** The most emails that one ID can name. A request has as many as its batch, at most 100. */
const MAX_NAMED = 1_000

/** Returns a page of rows. If the filter has an ID, the teams that have it are found first. */
async function rowsFound(tx: Tx, criteria: EmailCriteria, page: EmailPage): Promise<readonly EmailRow[]> {
  const { id, team_id } = criteria
  if (id === undefined || team_id !== undefined) return emailsFound(tx, criteria, page)
  const places = await messagesWithId(tx, id, { teams: null, limit: MAX_NAMED })
  const teams = new Set(places.filter(({ channel }) => channel === 'email').map((place) => place.team_id))
  const rows: EmailRow[] = []
  for (const team of teams) rows.push(...(await emailsFound(tx, { ...criteria, team_id: team }, page)))
  return rows.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit)
}

async function readPage(deps: Deps, filter: EmailFilter, { before, limit }: EmailPage) {
  const criteria = toCriteria(filter)
  if (filter.team_id !== undefined) await requireTeam(deps.tx, filter.team_id)
  const found: ListedEmail[] = []
  while (found.length < limit) {
    const wanted = Math.min(READ_BATCH, limit - found.length)
    const rows = await rowsFound(deps.tx, criteria, { before: found.at(-1)?.id ?? before, limit: wanted })
    const unsized = rows.filter((row) => row.size_kb === null)
    const versionOf = await loadVersions(deps, unsized)
    found.push(...rows.map((row) => listedEmail(row, versionOf(row), deps.secrets)))
    if (rows.length < wanted) break
  }
  return found
}

type Filter = Omit<EmailFilter, 'team_id'>

/** True if an index finds matches in all teams. */
const isNamed = ({ recipient, id }: Filter): boolean => recipient !== undefined || id !== undefined

/** True if each row of a team must be checked, because no index finds matches in list order. */
export const needsScan = (filter: Filter): boolean => {
  const { status, scheduled = false, tag, subject, text, domain, template_id, broadcast_id } = filter
  const { in_broadcast, failed } = filter
  if (isNamed(filter)) return false
  // An index has failures, but some are of emails that were requeued since.
  if (failed) return true
  if (scheduled || status === 'queued') return false
  const others = [tag, subject, text, domain, template_id, broadcast_id].some((part) => part !== undefined)
  // An index has single emails in order, but not those of a rare status.
  const isApart = in_broadcast === true || (in_broadcast === false && isRare(status))
  return others || isApart || (status !== undefined && !isRare(status))
}

/** Returns the time range in which matching emails were accepted. @param since none is older. */
export const searchRange = (
  { from, to }: Filter,
  { since, now }: { since: Date; now: Date },
): { first: number; last: number } => ({
  first: Math.max(since.getTime(), from?.getTime() ?? 0),
  last: Math.min(to?.getTime() ?? Number.POSITIVE_INFINITY, latest(now)),
})

/** The number of emails in the first part of a team's search, and in the largest one. */
const FIRST_PART = 2_000
const LONGEST_PART = 50_000
/** The first part among emails of a rare status or with a failure. Their rows are looked up one by one. */
const FIRST_RARE = 500

/** Searches a team's emails in parts of equal numbers, because a small team has few in any time range. */
const searchTeam = (
  deps: Deps,
  filter: EmailFilter,
  { before, limit }: EmailPage,
  { patience, first }: { patience: number; first: number },
): Promise<Searched<ListedEmail>> =>
  searchParts({ before, limit, patience, first, longest: LONGEST_PART }, async ({ length, ...place }) => {
    const reached = await emailFurther(deps.tx, toCriteria(filter), place.before, length)
    const between = reached === null ? {} : { between: { newest: MAX, oldest: reached } }
    return { rows: await readPage(deps, { ...filter, ...between }, place), reached }
  })

/**
 * Returns a page of matching emails, newest first, without their bodies.
 * @param since no email of the team is older.
 * @throws RequestError not_found for an unknown team, bad_request for an invalid address or domain.
 */
export async function searchEmails(
  deps: Deps,
  filter: EmailFilter & { since: Date; now: Date },
  { before, limit }: EmailPage,
  { patience = SEARCH_MS, first = filter.failed || isRare(filter.status) ? FIRST_RARE : FIRST_PART } = {},
): Promise<Searched<ListedEmail>> {
  const { since, now, ...wanted } = filter
  // No index has the emails of all teams in the order of a list.
  const ofAll = wanted.team_id === undefined && !isNamed(wanted)
  if (!ofAll && !needsScan(wanted))
    return { rows: await readPage(deps, wanted, { before, limit }), reached: null }
  if (!ofAll) return searchTeam(deps, wanted, { before, limit }, { patience, first })
  const time = searchRange(wanted, { since, now })
  if (before !== undefined) time.last = Math.min(time.last, timeOfId(before) + 1)
  const rows: ListedEmail[] = []
  let end = new Date(time.last)
  for (const stretch of stretches(time, patience)) {
    const page = { before: rows.at(-1)?.id ?? before, limit: limit - rows.length }
    rows.push(...(await readPage(deps, { ...wanted, ...stretch }, page)))
    end = stretch.from
    if (rows.length >= limit) break
  }
  const isDone = rows.length >= limit || end.getTime() <= time.first
  return { rows, reached: isDone ? null : firstIdAt(end) }
}
