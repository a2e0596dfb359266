/**
 * The search for everything: by any id, in whichever of the person's teams, straight to the message; by an address, a
 * phone number, or words of names, addresses, properties, subjects and what things are called, in the team of the page
 * that it was asked on.
 * Promises: nobody finds what their teams do not hold; an operator's search in a team of others is noted. What has no
 * index is looked for newest first for a moment only: the answer says how far, and offers to go on.
 */

import { auditRead } from '../../../db/accounts/audit/audit-read.ts'
import { namesOfTeams, teamsAfter } from '../../../db/accounts/teams/directory.sql.ts'
import { namesOfThings, thingsNamed } from '../../../db/accounts/teams/search-index.sql.ts'
import { type TeamRow, teamById } from '../../../db/accounts/teams/teams.sql.ts'
import { contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import type { ContactSearch } from '../../../db/audience/contacts/search.sql.ts'
import { type SearchedContacts, searchContacts } from '../../../db/audience/contacts/search.ts'
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { type MessagePlace, messagesWithId } from '../../../db/delivery/locate.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { type Searched, searchEmails } from '../../../db/messages/emails/search.ts'
import { sentToNumbers } from '../../../db/messages/to-numbers.sql.ts'
import { parseAddress } from '../../../db/validation/address.ts'
import { timeOfId } from '../../../db/validation/ids.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { headed, number, status, text, time } from '../components/cell.ts'
import type { PageLink, Section } from '../components/section.ts'
import { compact, get, tableOf } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { idParam, queryParam } from '../server/list.ts'
import { type OwnRequest, redirect, show, teamPath } from '../server/page.ts'
import { isAddressPart, numberIn, type ParsedSearch, parseSearch, wordsIn } from '../server/search.ts'
import { TEXTS } from '../texts.ts'
import { recipientsCell } from './email-place.ts'
import { kindOf, thingPath } from './search-results.ts'

const MAX_FOUND = 50
/** How many of each kind a search shows. */
const SHOWN_OF_EACH_KIND = 10

type Asked = { team: TeamRow; typed: string; request: OwnRequest; deps: PageDeps }

const channelOf = ({ channel }: MessagePlace): Channel | undefined =>
  CHANNELS.find(({ name }) => name === channel)

const pathTo = (place: MessagePlace): string =>
  teamPath({ id: place.team_id }, channelOf(place)?.path ?? '', place.id)

/** The messages that one id names: a request's key names as many as it had numbers. */
async function choice(found: readonly MessagePlace[], { database }: PageDeps): Promise<Section> {
  const teams = await namesOfTeams(database, [...new Set(found.map(({ team_id }) => team_id))])
  return tableOf(
    found,
    (place) => ({
      Message: text(place.id, { code: true, href: pathTo(place) }),
      Kind: text(headed(channelOf(place)?.noun ?? place.channel)),
      Team: text(teams.get(place.team_id) ?? place.team_id),
    }),
    { title: 'Messages with this ID', empty: '' },
  )
}

/**
 * The team to search in: the one that the page stands in. @throws RequestError not_found for one that is not theirs.
 */
async function teamOf(
  { query, person, now, around }: OwnRequest,
  { database }: PageDeps,
): Promise<TeamRow | null> {
  const id = idParam(query, 'team') ?? around?.id
  if (id === undefined) return null
  const team = id === around?.id ? await teamById(database, id) : null
  if (!team) throw new RequestError('not_found', TEXTS.noTeam)
  const read = { action: 'search', subject: queryParam(query, 'q') ?? '' }
  await auditRead({ tx: database, now, actor: person.email }, { id, member: around?.member === true }, read)
  return team
}

/** Up to where a search has come that was broken off; nothing where it has come to the end. */
const lookedTo = (reached: string | null, now: Date): Pick<Section, 'note' | 'noteAt'> =>
  reached === null
    ? {}
    : {
        note: 'Looked through what was accepted or added since',
        noteAt: time(new Date(timeOfId(reached)).toISOString(), now),
      }

/** The links to a list that finds the same, and on from where a search was broken off. */
function further(
  { team, typed }: Asked,
  { path, title }: { path: string; title: string },
  reached: string | null = null,
): PageLink[] {
  const pageFrom = (before: string | null) =>
    `${teamPath(team, path)}?${new URLSearchParams({ q: typed, ...(before === null ? {} : { before }) })}`
  return compact([
    { href: pageFrom(null), label: `Show all ${title}` },
    reached !== null && {
      href: pageFrom(reached),
      label: `Look further back: ${title}`,
      rel: 'next' as const,
    },
  ])
}

/** A whole address is found by an index; what only looks like one may be a part of another, or words. */
async function emailsFound({ team, typed, request: { now }, deps }: Asked): Promise<Searched> {
  const search = (parsed: ParsedSearch) =>
    searchEmails(
      { ...deps, tx: deps.database },
      { team_id: team.id, ...parsed, since: new Date(team.created_at), now },
      { limit: SHOWN_OF_EACH_KIND },
    )
  const parsed = parseSearch(typed)
  const found = await search(parsed)
  return 'recipient' in parsed && found.emails.length === 0 ? search({ text: typed }) : found
}

async function emailsFor(asked: Asked): Promise<Section> {
  const { team, request } = asked
  const { emails, reached } = await emailsFound(asked)
  return tableOf(
    emails,
    (email) => ({
      Status: status(email.status),
      Recipient: recipientsCell(email),
      Subject: text(email.subject || '(no subject)', { href: teamPath(team, 'emails', email.id) }),
      Accepted: time(email.created_at, request.now),
    }),
    {
      title: 'Emails',
      ...lookedTo(reached, request.now),
      next: further(asked, { path: 'emails', title: 'emails' }, reached),
      empty: 'No email so far.',
    },
  )
}

/** The contact with this very address; else those with a part of it, found by an index; else those with such words. */
async function contactsFound({ team, typed, deps: { database } }: Asked): Promise<SearchedContacts> {
  const identity = parseAddress(typed)?.identity
  const own = identity === undefined ? null : await contactByIdentity(database, team.id, identity)
  if (own) return { contacts: [own], reached: null }
  const search = (wanted: ContactSearch) =>
    searchContacts(database, team.id, wanted, { limit: SHOWN_OF_EACH_KIND })
  const number = numberIn(typed)
  const isPart = number === null && isAddressPart(typed)
  const byAddress = isPart ? await search({ email: typed }) : { contacts: [], reached: null }
  if (byAddress.contacts.length === SHOWN_OF_EACH_KIND) return byAddress
  const byWords = await search({ words: number === null ? wordsIn(typed) : [number] })
  const others = byWords.contacts.filter(({ id }) => byAddress.contacts.every((contact) => contact.id !== id))
  return {
    contacts: [...byAddress.contacts, ...others].slice(0, SHOWN_OF_EACH_KIND),
    reached: byWords.reached,
  }
}

async function contactsFor(asked: Asked): Promise<Section> {
  const { team, request } = asked
  const { contacts, reached } = await contactsFound(asked)
  return tableOf(
    contacts,
    (contact) => ({
      Status: status(contact.status),
      Address: text(contact.email, { href: teamPath(team, 'contacts', contact.email) }),
      Properties: text(Object.values(contact.properties).join(', ')),
      Added: time(contact.created_at, request.now),
    }),
    {
      title: 'Contacts',
      ...lookedTo(reached, request.now),
      next: further(asked, { path: 'contacts', title: 'contacts' }, reached),
      empty: 'No contact so far.',
    },
  )
}

async function messagesFor(asked: Asked): Promise<Section[]> {
  const { team, request, deps } = asked
  const number = numberIn(asked.typed)
  if (number === null) return []
  const found = await sentToNumbers(deps.database, team.id, [number], SHOWN_OF_EACH_KIND)
  return found.map(
    ({ channel: { title, path }, sent }): Section =>
      tableOf(
        sent,
        (row) => ({
          Status: status(row.status),
          Number: text(row.recipient, { href: teamPath(team, path, row.id) }),
          Accepted: time(row.created_at, request.now),
        }),
        { title, next: further(asked, { path, title }), empty: '' },
      ),
  )
}

/** Broadcasts, templates and the like with such words in their names, or with this ID. */
async function thingsFor({ team, typed, request: { around }, deps: { database } }: Asked): Promise<Section> {
  const seen = { id: team.id, ...(around ? { sees: around.sees } : {}) }
  const things = isUuid(typed)
    ? [...(await namesOfThings(database, [{ team_id: team.id, word: typed }])).values()]
    : await thingsNamed(database, team.id, wordsIn(typed), SHOWN_OF_EACH_KIND)
  return tableOf(
    things,
    (thing) => {
      const href = thingPath(seen, thing)
      return { Kind: text(kindOf(thing)), Name: text(thing.name, href === undefined ? {} : { href }) }
    },
    { title: 'By name or ID', empty: '' },
  )
}

/** What a team holds of it, kind by kind; kinds that were looked through to their end without a find are left out. */
async function foundIn(asked: Asked): Promise<Section[]> {
  const all = [
    await contactsFor(asked),
    await emailsFor(asked),
    ...(await messagesFor(asked)),
    await thingsFor(asked),
  ]
  return all.filter((section) => section.kind === 'table' && (section.rows.length > 0 || section.note))
}

/** How many teams a member's search looks into beyond the one that it is made in. */
const MAX_OTHER_TEAMS = 20

/** Lists teams with such a name, among those that the person may see. */
async function teamsFor(typed: string, { person }: OwnRequest, { database }: PageDeps): Promise<Section> {
  const word = typed.toLowerCase()
  const found = person.operator
    ? await teamsAfter(database, { name: typed, limit: SHOWN_OF_EACH_KIND })
    : person.memberships
        .filter(({ name }) => name.toLowerCase().includes(word))
        .map(({ team_id, name }) => ({ id: team_id, name }))
  return tableOf(found, (team) => ({ Team: text(team.name, { href: teamPath(team) }) }), {
    title: 'Teams',
    empty: '',
  })
}

/** Counts the newest emails to an address in each team that the person may see, by the index on recipients. */
async function emailsByTeam(
  typed: string,
  here: string | null,
  { person, now }: OwnRequest,
  deps: PageDeps,
): Promise<Map<string, number>> {
  const search = (team_id?: string) =>
    searchEmails(
      { ...deps, tx: deps.database },
      { recipient: typed, team_id, since: new Date(0), now },
      { limit: MAX_FOUND },
    )
  const others = person.memberships.filter(({ team_id }) => team_id !== here).slice(0, MAX_OTHER_TEAMS)
  const pages = person.operator
    ? [await search()]
    : await Promise.all(others.map(({ team_id }) => search(team_id)))
  const ids = pages.flatMap(({ emails }) => emails.map(({ team_id }) => team_id))
  const counts = [...Map.groupBy(ids, (id) => id)].map(([id, all]): [string, number] => [id, all.length])
  return new Map(counts.filter(([id]) => id !== here))
}

type Elsewhere = { words: string; section: Section }

/** Finds an address in other teams. Shows counts alone: what a team holds is read, and noted, in its own search. */
async function elsewhere(
  typed: string,
  here: string | null,
  request: OwnRequest,
  deps: PageDeps,
): Promise<Elsewhere | null> {
  if (!('recipient' in parseSearch(typed))) return null
  const counts = await emailsByTeam(typed, here, request, deps)
  if (counts.size === 0) return null
  const names = await namesOfTeams(deps.database, [...counts.keys()])
  const found = [...counts].map(([id, count]) => ({ id, count, name: names.get(id) ?? id }))
  const section = tableOf(
    found,
    ({ id, count, name }) => ({
      Team: text(name, { href: `/find?${new URLSearchParams({ team: id, q: typed })}` }),
      Emails: number(count),
    }),
    { title: here === null ? 'Emails to this address' : 'In other teams', empty: '' },
  )
  return { words: found.map(({ count, name }) => `${count} in ${name}`).join(', '), section }
}

/** The first words of the results. */
function leadOf(where: string, found: number, others: Elsewhere | null, nothing: string): string {
  if (found > 0) return `Results${where}${others ? `, and ${others.words}` : ''}.`
  if (others) return where === '' ? `${others.words}.` : `0 here, ${others.words}.`
  return where === '' ? nothing : `Nothing${where} matches. ${nothing}`
}

const WAYS =
  'A name, an address or a part of one, a phone number, words of a subject, what a template or a broadcast is called, or any ID: ours, yours, a request’s, a provider’s or a Message-ID.'

const locate = get('person', '/find', async (request, deps) => {
  const { query, person } = request
  const typed = queryParam(query, 'q') ?? queryParam(query, 'id')
  if (typed === undefined) return show({ title: 'Search', lead: WAYS, sections: [] })
  const teams = person.operator ? null : person.memberships.map(({ team_id }) => team_id)
  const named = await messagesWithId(deps.database, typed, { teams, limit: MAX_FOUND })
  const [first, ...others] = named
  if (first && others.length === 0) return redirect(pathTo(first))
  const team = query.has('id') ? null : await teamOf(request, deps)
  const found = compact([
    named.length > 0 && (await choice(named, deps)),
    team && (await foundIn({ team, typed, request, deps })),
  ])
  const beyond = query.has('id') ? null : await elsewhere(typed, team?.id ?? null, request, deps)
  const teamsFound = query.has('id') ? null : await teamsFor(typed, request, deps)
  const teamTable = teamsFound?.kind === 'table' && teamsFound.rows.length > 0 ? teamsFound : null
  const sections = compact<Section>([...found, teamTable, beyond?.section])
  const nothing = `No message that you can see has the ID ${typed}.`
  const where = team ? ` in ${team.name}` : ''
  return show({
    title: `Search: ${typed}`,
    lead: leadOf(where, found.length + (teamTable ? 1 : 0), beyond, nothing),
    sections: sections.length > 0 ? sections : [{ kind: 'text', paragraphs: [WAYS] }],
  })
})

export const locatePages = [locate]
