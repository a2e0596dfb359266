/**
 * Finds emails by what somebody knows of them: a recipient, any id, words of the subject, dates, and what a list is
 * filtered by. The CLI and the dashboard list and search through this one function.
 * Promises: newest first; a page follows from the last one's last id; nothing is changed. Must not count.
 */
import { domainToUnicode } from 'node:url'
import { teamOrRefusal } from '../../accounts/teams/view.ts'
import type { Versions } from '../../content/templates/versions.ts'
import { messagesWithId } from '../../delivery/locate.sql.ts'
import { Refusal } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { domainToAscii, parseMailbox } from '../../text/address.ts'
import type { EmailRow } from './emails.sql.ts'
import { type EmailCriteria, emailsFound, type Page } from './find.sql.ts'
import { versionsOf } from './show.ts'
import { type ListedEmail, listedEmail } from './view.ts'

/** What to look for, as people give it. Every part that is set has to fit; without `team_id`: in all teams. */
export type EmailFilter = Omit<EmailCriteria, 'recipients' | 'words' | 'text' | 'domains'> & {
  /** An address, with or without a name. */
  recipient?: string | undefined
  /** Words that are all in the subject, in any order and case. */
  subject?: string | undefined
  /** Words that are all in the subject, or in recipients' names and addresses, in any order and case. */
  text?: string | undefined
  domain?: string | undefined
}

/** Words are looked for one by one in each row. */
const MOST_WORDS = 20

// How many rows are read at a time: those whose size is not known yet come with their html.
const CHUNK = 100

/** A domain name as an address may spell it. @throws Refusal bad_request. */
function domainSpellings(given: string): string[] {
  const ascii = domainToAscii(given)
  if (ascii === null) throw new Refusal('bad_request', `${JSON.stringify(given)} is not a domain name`)
  return [...new Set([ascii, domainToUnicode(ascii)])]
}

/** The identities that a stored address may have: its domain is kept as it was given. @throws Refusal bad_request. */
function recipientSpellings(given: string): string[] {
  const mailbox = parseMailbox(given)
  if (mailbox === null) {
    throw new Refusal('bad_request', `${JSON.stringify(given)} is not an email address`)
  }
  const local = mailbox.address.slice(0, mailbox.address.lastIndexOf('@')).toLowerCase()
  return domainSpellings(mailbox.domain).map((domain) => `${local}@${domain}`)
}

/** The words of a part of the filter. @throws Refusal bad_request for too many. */
function wordsOf(what: 'subject' | 'a search', given: string | undefined): string[] | undefined {
  const words = given?.split(/\s+/).filter((word) => word !== '')
  if (words === undefined || words.length <= MOST_WORDS) return words
  throw new Refusal('bad_request', `${what} must have at most ${MOST_WORDS} words`)
}

/** The filter as the query takes it. @throws Refusal bad_request for what is no address or no domain. */
export function criteriaOf({ recipient, subject, text, domain, ...rest }: EmailFilter): EmailCriteria {
  return {
    ...rest,
    recipients: recipient === undefined ? undefined : recipientSpellings(recipient),
    words: wordsOf('subject', subject),
    text: wordsOf('a search', text),
    domains: domain === undefined ? undefined : domainSpellings(domain),
  }
}

/** For emails that one id names: a request's has as many as its batch, at most a hundred. */
const NAMED = 1_000

/** A page of rows. What an id names is looked up before, so that only the teams that have it are asked. */
async function rowsFound(tx: Tx, criteria: EmailCriteria, page: Page): Promise<readonly EmailRow[]> {
  const { id, team_id } = criteria
  if (id === undefined || team_id !== undefined) return emailsFound(tx, criteria, page)
  const places = await messagesWithId(tx, id, { teams: null, limit: NAMED })
  const teams = new Set(places.filter(({ channel }) => channel === 'email').map((place) => place.team_id))
  const rows: EmailRow[] = []
  for (const team of teams) rows.push(...(await emailsFound(tx, { ...criteria, team_id: team }, page)))
  return rows.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit)
}

/**
 * A page of the emails that fit the filter, newest first, without their bodies.
 * @throws Refusal not_found for an unknown team; bad_request for what is no address or no domain.
 */
export async function findEmails(
  deps: { tx: Tx; versions: Versions; secrets: Secrets },
  filter: EmailFilter,
  { before, limit }: Page,
): Promise<ListedEmail[]> {
  const criteria = criteriaOf(filter)
  if (filter.team_id !== undefined) await teamOrRefusal(deps.tx, filter.team_id)
  const found: ListedEmail[] = []
  while (found.length < limit) {
    const wanted = Math.min(CHUNK, limit - found.length)
    const rows = await rowsFound(deps.tx, criteria, { before: found.at(-1)?.id ?? before, limit: wanted })
    const unsized = rows.filter((row) => row.size_kb === null)
    const versionOf = await versionsOf(deps, unsized)
    found.push(...rows.map((row) => listedEmail(row, versionOf(row), deps.secrets)))
    if (rows.length < wanted) break
  }
  return found
}
