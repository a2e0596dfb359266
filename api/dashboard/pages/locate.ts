/**
 * The search for everything: by any id, in whichever of the person's teams, straight to the message; by an address, a
 * part of a contact's, a phone number or words of a subject, in the team of the page that it was asked on.
 * Promises: nobody finds what their teams do not hold; an operator's search in a team of others is noted.
 */

import { noteLook } from '../../../db/accounts/audit/look.ts'
import { type TeamRow, teamById } from '../../../db/accounts/teams/teams.sql.ts'
import { contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import { contactsWithValue } from '../../../db/audience/contacts/search.sql.ts'
import { searchContacts } from '../../../db/audience/contacts/search.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { type MessagePlace, messagesWithId } from '../../../db/delivery/locate.sql.ts'
import { Refusal } from '../../../db/errors.ts'
import { searchEmails } from '../../../db/messages/emails/search.ts'
import { sentToNumbers } from '../../../db/messages/to-numbers.sql.ts'
import { parseAddress } from '../../../db/text/address.ts'
import { status, text, time } from '../drawn/cell.ts'
import type { Section } from '../drawn/section.ts'
import type { PageDeps } from '../served/deps.ts'
import { given, idGiven } from '../served/list.ts'
import { get, some, tableOf } from '../served/made.ts'
import { type OwnRequest, type PersonRequest, redirect, show, teamPath } from '../served/page.ts'
import { numberIn, soughtIn } from '../served/search.ts'
import { recipientsCell } from './email-place.ts'

const MOST = 50
/** How many of each kind a search shows. */
const FIRST = 10
/** The index on parts of addresses knows no shorter ones. */
const SHORTEST = 3

const pathTo = ({ team_id, channel, id }: MessagePlace): string =>
  teamPath({ id: team_id }, CHANNELS.find(({ name }) => name === channel)?.path ?? '', id)

/** The messages that one id names: a request's key names as many as it had numbers. */
const choice = (found: readonly MessagePlace[]): Section =>
  tableOf(
    found,
    (place) => ({
      Channel: status(place.channel),
      Message: text(place.id, { code: true, href: pathTo(place) }),
      Team: text(place.team_id, { code: true }),
    }),
    {
      title: 'Messages with this ID',
      empty: '',
    },
  )

/** The team to search in: the one that the page stands in. @throws Refusal not_found for one that is not theirs. */
async function teamOf(
  { query, person, now, around }: OwnRequest,
  { database }: PageDeps,
): Promise<TeamRow | null> {
  const id = idGiven(query, 'team') ?? around?.id
  if (id === undefined) return null
  const team = id === around?.id ? await teamById(database, id) : null
  if (!team) throw new Refusal('not_found', 'there is no such team, or it is not yours to see')
  const look = { action: 'search', subject: given(query, 'q') ?? '' }
  await noteLook({ tx: database, now, actor: person.email }, { id, member: around?.member === true }, look)
  return team
}

async function emailsFor(
  team: TeamRow,
  typed: string,
  request: PersonRequest,
  deps: PageDeps,
): Promise<Section> {
  const filter = { team_id: team.id, ...soughtIn(typed), since: new Date(team.created_at), now: request.now }
  const { emails } = await searchEmails({ ...deps, tx: deps.database }, filter, { limit: FIRST })
  return tableOf(
    emails,
    (email) => ({
      Status: status(email.status),
      Recipient: recipientsCell(email.to_emails),
      Subject: text(email.subject || '(no subject)', { href: teamPath(team, 'emails', email.id) }),
      Accepted: time(email.created_at, request.now),
    }),
    {
      title: 'Emails',
      next: [
        { href: `${teamPath(team, 'emails')}?${new URLSearchParams({ q: typed })}`, label: 'All in Emails' },
      ],
      empty: '',
    },
  )
}

/** A whole address is one contact's, found by its key: as a part of others it would take a hundred times as long. */
async function contactsNamed(team: TeamRow, typed: string, { database }: PageDeps) {
  const number = numberIn(typed)
  if (number) return contactsWithValue(database, team.id, number, FIRST)
  const identity = parseAddress(typed)?.identity
  const own = identity === undefined ? null : await contactByIdentity(database, team.id, identity)
  if (own) return [own]
  return (await searchContacts(database, team.id, { email: typed }, { limit: FIRST })).contacts
}

async function contactsFor(
  team: TeamRow,
  typed: string,
  request: PersonRequest,
  deps: PageDeps,
): Promise<Section> {
  const contacts = await contactsNamed(team, typed, deps)
  return tableOf(
    contacts,
    (contact) => ({
      Status: status(contact.status),
      Address: text(contact.email, { href: teamPath(team, 'contacts', contact.email) }),
      Added: time(contact.created_at, request.now),
    }),
    {
      title: 'Contacts',
      empty: '',
    },
  )
}

async function messagesFor(
  team: TeamRow,
  typed: string,
  request: PersonRequest,
  deps: PageDeps,
): Promise<Section[]> {
  const number = numberIn(typed)
  if (number === null) return []
  const found = await sentToNumbers(deps.database, team.id, [number], FIRST)
  return found.map(
    ({ channel: { title, path }, sent }): Section =>
      tableOf(
        sent,
        (row) => ({
          Status: status(row.status),
          Number: text(row.recipient, { href: teamPath(team, path, row.id) }),
          Accepted: time(row.created_at, request.now),
        }),
        {
          title,
          empty: '',
        },
      ),
  )
}

/** What a team holds of it, kind by kind; kinds without anything are left out. */
async function foundIn(
  team: TeamRow,
  typed: string,
  request: PersonRequest,
  deps: PageDeps,
): Promise<Section[]> {
  const isPart = [...typed].length >= SHORTEST && !/\s/.test(typed)
  const all = some([
    (isPart || numberIn(typed) !== null) && (await contactsFor(team, typed, request, deps)),
    await emailsFor(team, typed, request, deps),
    ...(await messagesFor(team, typed, request, deps)),
  ])
  return all.filter((section) => section.kind === 'table' && section.rows.length > 0)
}

const WAYS =
  'An address, a part of a contact’s address, a phone number, words of a subject, or any ID: ours, yours, a request’s, a provider’s or a Message-ID.'

const locate = get('person', '/find', async (request, deps) => {
  const { query, person } = request
  const typed = given(query, 'q') ?? given(query, 'id')
  if (typed === undefined) return show({ title: 'Search', lead: WAYS, sections: [] })
  const teams = person.operator ? null : person.memberships.map(({ team_id }) => team_id)
  const named = await messagesWithId(deps.database, typed, { teams, limit: MOST })
  const [first, ...others] = named
  if (first && others.length === 0) return redirect(pathTo(first))
  const team = query.has('id') ? null : await teamOf(request, deps)
  const found = some([named.length > 0 && choice(named), team && (await foundIn(team, typed, request, deps))])
  const where = team ? ` in ${team.name}` : ''
  const nothing = `No message that you may see has the id ${typed}.`
  return show({
    title: `Search: ${typed}`,
    lead:
      found.length > 0 ? `What there is${where}.` : team ? `Nothing${where} matches. ${nothing}` : nothing,
    sections: found.length > 0 ? found : [{ kind: 'text', paragraphs: [WAYS] }],
  })
})

export const locatePages = [locate]
