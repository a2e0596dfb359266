/** Searches one team, by kind of object, newest first. Searches without an index have a time limit. */
import { namesOfThings, thingKey, thingsNamed } from '../../../db/accounts/teams/search-index.sql.ts'
import type { TeamRow } from '../../../db/accounts/teams/teams.sql.ts'
import { type ContactRow, contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import type { ContactSearch } from '../../../db/audience/contacts/search.sql.ts'
import { searchContacts } from '../../../db/audience/contacts/search.ts'
import type { ChannelName } from '../../../db/channels/list.ts'
import { findEnds } from '../../../db/messages/emails/ended.sql.ts'
import { lastResponses } from '../../../db/messages/emails/events.sql.ts'
import { searchEmails } from '../../../db/messages/emails/search.ts'
import type { ListedEmail } from '../../../db/messages/emails/view.ts'
import { type SentBy, sentToNumbers } from '../../../db/messages/to-numbers.sql.ts'
import type { Searched } from '../../../db/postgres/search-parts.ts'
import { parseAddress } from '../../../db/validation/address.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { responseCell } from '../components/bounces.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import { findName } from '../components/names.ts'
import type { PageLink, Section } from '../components/section.ts'
import { buildTable, compact } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { lookedTo } from '../server/list.ts'
import { type OwnRequest, teamPath } from '../server/page.ts'
import {
  isAddressPart,
  isPhone,
  numberIn,
  type ParsedSearch,
  parseSearch,
  wordsIn,
} from '../server/search.ts'
import { namedContactCell } from './contacts.ts'
import { recipientsCell } from './email-place.ts'
import { ALL_EMAILS, namesOfTemplates, templateName } from './emails-filter.ts'
import { listedState } from './scheduled.ts'
import { describeKind, thingPath } from './search-results.ts'

export const SHOWN_OF_EACH_KIND = 10

/** `patience` is the time limit for searches without an index, in milliseconds. */
type TeamSearch = {
  team: TeamRow
  typed: string
  request: OwnRequest
  deps: PageDeps
  patience?: number | undefined
}

/**
 * Returns links to the list with the same search, and to where an incomplete search continues.
 * @param least without more rows than this, the list has no others.
 */
function further(
  { team, typed }: TeamSearch,
  {
    path,
    title,
    more = {},
    least = 0,
  }: { path: string; title: string; more?: Record<string, string>; least?: number },
  { rows, reached }: { rows: readonly unknown[]; reached: string | null },
): PageLink[] {
  const pageFrom = (before: string | null) =>
    `${teamPath(team, path)}?${new URLSearchParams({ q: typed, ...more, ...(before === null ? {} : { before }) })}`
  return compact([
    rows.length > least && { href: pageFrom(null), label: `All matching ${title}` },
    reached !== null && { href: pageFrom(reached), label: `Search older ${title}`, rel: 'next' as const },
  ])
}

/** Finds emails. A complete address uses an index. If it finds nothing, the address is searched as text. */
export async function emailsFound({
  team,
  typed,
  request: { now },
  deps,
  patience,
}: TeamSearch): Promise<Searched<ListedEmail>> {
  const search = (parsed: ParsedSearch & { in_broadcast?: boolean }) =>
    searchEmails(
      { ...deps, tx: deps.database },
      { team_id: team.id, ...parsed, since: new Date(team.created_at), now },
      { limit: SHOWN_OF_EACH_KIND },
      { patience },
    )
  const parsed = parseSearch(typed)
  if ('id' in parsed) return search(parsed)
  // Single emails come first, because newsletters would hide them.
  const single = await search({ ...parsed, in_broadcast: false })
  const found = single.rows.length > 0 || single.reached !== null ? single : await search(parsed)
  return 'recipient' in parsed && found.rows.length === 0 ? search({ text: typed }) : found
}

/** Statuses of emails whose last response is shown. */
const UNSENT: ReadonlySet<string> = new Set(['queued', 'bounced'])

async function emailsFor(asked: TeamSearch): Promise<Section> {
  const { team, request } = asked
  const { database } = asked.deps
  const { rows, reached } = await emailsFound(asked)
  const ends = await findEnds(database, team.id, rows, request.now)
  const names = await namesOfTemplates(asked, asked.deps)
  const unsent = rows.flatMap(({ id, status: word }) => (UNSENT.has(word) ? [id] : []))
  const responses = await lastResponses(database, team.id, unsent)
  return buildTable(
    rows,
    (email) => ({
      Status: listedState(email, request.now, ends.get(email.id)),
      Recipient: recipientsCell(email),
      Subject: text(email.subject || '(no subject)', {
        href: teamPath(team, 'emails', email.id),
        detail: templateName(email, names),
      }),
      Problem: responses.size > 0 && responseCell(responses.get(email.id) ?? ''),
      Accepted: time(email.created_at, request.now),
    }),
    {
      title: 'Emails',
      main: 'Subject',
      grow: ['Recipient', 'Subject'],
      wrap: ['Problem'],
      ...lookedTo(reached, request.now),
      next: further(asked, { path: 'emails', title: 'emails', more: ALL_EMAILS }, { rows, reached }),
      empty: 'No match so far. Older emails haven’t been searched yet.',
    },
  )
}

/** Finds the contact with this address, otherwise those whose address contains the text or that match its terms. */
export async function contactsFound({
  team,
  typed,
  deps: { database },
  patience,
}: TeamSearch): Promise<Searched<ContactRow>> {
  const identity = parseAddress(typed)?.identity
  const own = identity === undefined ? null : await contactByIdentity(database, team.id, identity)
  if (own) return { rows: [own], reached: null }
  const search = (wanted: ContactSearch) =>
    searchContacts(database, team.id, wanted, { limit: SHOWN_OF_EACH_KIND }, { patience })
  const number = numberIn(typed)
  const isPart = number === null && isAddressPart(typed)
  const byAddress = isPart ? await search({ email: typed }) : { rows: [], reached: null }
  if (byAddress.rows.length === SHOWN_OF_EACH_KIND) return byAddress
  const byWords = await search({ words: number === null ? wordsIn(typed) : [number] })
  const others = byWords.rows.filter(({ id }) => byAddress.rows.every((contact) => contact.id !== id))
  return { rows: [...byAddress.rows, ...others].slice(0, SHOWN_OF_EACH_KIND), reached: byWords.reached }
}

/** Returns the values of a contact's properties, except its name. */
const listValues = ({ properties }: ContactRow): string[] =>
  Object.values(properties).filter((value) => value !== findName(properties))

async function contactsFor(asked: TeamSearch): Promise<Section> {
  const { team, request } = asked
  const { rows, reached } = await contactsFound(asked)
  return buildTable(
    rows,
    (contact) => ({
      Status: status(contact.status),
      Contact: namedContactCell(contact, team),
      Properties: text(listValues(contact).join(', ')),
      Added: time(contact.created_at, request.now),
    }),
    {
      title: 'Contacts',
      main: 'Contact',
      grow: ['Contact', 'Properties'],
      ...lookedTo(reached, request.now),
      next: further(asked, { path: 'contacts', title: 'contacts' }, { rows, reached }),
      empty: 'No match so far. Older contacts haven’t been searched yet.',
    },
  )
}

/** Loads why messages failed, by their IDs. */
type LoadProblems = (
  asked: Pick<TeamSearch, 'team'>,
  deps: PageDeps,
  sent: SentBy['sent'],
) => Promise<ReadonlyMap<string, string>>

/** Channels whose problems a search shows. */
export type ProblemLoaders = Readonly<Partial<Record<ChannelName, LoadProblems>>>

async function messagesFor(asked: TeamSearch, loaders: ProblemLoaders): Promise<Section[]> {
  const { team, deps } = asked
  const number = numberIn(asked.typed)
  if (number === null) return []
  const found = await sentToNumbers(deps.database, team.id, [number], SHOWN_OF_EACH_KIND)
  return Promise.all(found.map((sent) => messagesTable(asked, sent, loaders)))
}

async function messagesTable(
  asked: TeamSearch,
  { channel, sent }: SentBy,
  loaders: ProblemLoaders,
): Promise<Section> {
  const { team, request, deps } = asked
  const { title, path, noun } = channel
  const templates = sent.flatMap(({ template_id: word }) => (word ? [{ team_id: team.id, word }] : []))
  const names = await namesOfThings(deps.database, templates)
  const templateCell = (id: string | null): Cell => {
    const template = names.get(thingKey(team.id, id ?? ''))
    return text(template?.name ?? 'deleted', { href: template && thingPath(team, template) })
  }
  const problems = (await loaders[channel.name]?.(asked, deps, sent)) ?? new Map<string, string>()
  return buildTable(
    sent,
    (row) => ({
      Status: listedState(row, request.now),
      To: text(row.recipient, { href: teamPath(team, path, row.id) }),
      Template: templates.length > 0 && templateCell(row.template_id),
      Problem: problems.size > 0 && { text: problems.get(row.id) ?? '' },
      Accepted: time(row.created_at, request.now),
    }),
    {
      ...{ title, main: 'To', grow: ['To', problems.size > 0 ? 'Problem' : 'Template'] },
      next: further(asked, { path, title: `${noun}s`, least: 1 }, { rows: sent, reached: null }),
      empty: '',
    },
  )
}

/** Finds broadcasts, templates and other objects by part of their name, or by ID. */
async function thingsFor({
  team,
  typed,
  request: { around },
  deps: { database },
}: TeamSearch): Promise<Section> {
  const seen = { id: team.id, ...(around ? { sees: around.sees } : {}) }
  const things = isUuid(typed)
    ? [...(await namesOfThings(database, [{ team_id: team.id, word: typed }])).values()]
    : await thingsNamed(database, team.id, wordsIn(typed), SHOWN_OF_EACH_KIND)
  return buildTable(
    things,
    (thing) => {
      const href = thingPath(seen, thing)
      return { Name: text(thing.name, href === undefined ? {} : { href }), Kind: text(describeKind(thing)) }
    },
    { title: 'By name or ID', main: 'Name', empty: '' },
  )
}

export const hasRows = (section: Section): boolean => section.kind === 'table' && section.rows.length > 0

/**
 * Searches a team, results first. Kinds without results are left out if their search was complete, as are emails in a
 * search for a phone number.
 */
export async function foundIn(asked: TeamSearch, loaders: ProblemLoaders): Promise<Section[]> {
  const all = compact<Section>([
    await contactsFor(asked),
    !isPhone(asked.typed) && (await emailsFor(asked)),
    await messagesFor(asked, loaders),
    await thingsFor(asked),
  ])
  return [...all.filter(hasRows), ...all.filter((section) => !hasRows(section) && section.note)]
}
