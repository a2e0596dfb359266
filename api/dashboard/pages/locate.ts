/**
 * The global search. An ID of a message leads to the message, in any of the user's teams. Addresses, phone
 * numbers and other text are searched in the team of the page, and counted in the user's other teams. A
 * search by an operator in a team that they aren't a member of is in its audit log.
 */

import { auditRead } from '../../../db/accounts/audit/audit-read.ts'
import { namesOfTeams, teamsAfter } from '../../../db/accounts/teams/directory.sql.ts'
import { teamById } from '../../../db/accounts/teams/teams.sql.ts'
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { type MessagePlace, messagesWithId } from '../../../db/delivery/locate.sql.ts'
import { headed, text } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { requireFound } from '../server/already.ts'
import { buildFacts, buildTable, compact, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { idParam, queryParam } from '../server/list.ts'
import { type OwnRequest, redirect, show, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { elsewhere } from './locate-elsewhere.ts'
import { foundIn, hasRows, type ProblemLoaders, SHOWN_OF_EACH_KIND } from './locate-in-team.ts'

const MAX_FOUND = 50

const findChannel = ({ channel }: MessagePlace): Channel | undefined =>
  CHANNELS.find(({ name }) => name === channel)

const pathTo = (place: MessagePlace): string =>
  teamPath({ id: place.team_id }, findChannel(place)?.path ?? '', place.id)

/** Lists messages with the same ID. An idempotency key of a request can have a message for each number. */
async function choice(found: readonly MessagePlace[], { database }: PageDeps): Promise<Section> {
  const teams = await namesOfTeams(database, [...new Set(found.map(({ team_id }) => team_id))])
  return buildTable(
    found,
    (place) => ({
      Message: text(place.id, { code: true, href: pathTo(place) }),
      Kind: text(headed(findChannel(place)?.noun ?? place.channel)),
      Team: text(teams.get(place.team_id) ?? place.team_id),
    }),
    { title: 'Messages with this ID', grow: ['Message', 'Team'], empty: '' },
  )
}

/** Returns the team of the page, to search in. @throws RequestError not_found if the user can't see it. */
async function findTeam({ query, person, now, around }: OwnRequest, { database }: PageDeps) {
  const id = idParam(query, 'team') ?? around?.id
  if (id === undefined) return null
  const team = requireFound(id === around?.id ? await teamById(database, id) : null, TEXTS.noTeam)
  const read = { action: 'search', subject: queryParam(query, 'q') ?? '' }
  await auditRead({ tx: database, now, actor: person.email }, { id, member: around?.member === true }, read)
  return team
}

/** Lists teams with a matching name that the user can see. */
async function teamsFor(typed: string, { person }: OwnRequest, { database }: PageDeps): Promise<Section> {
  const word = typed.toLowerCase()
  const found = person.operator
    ? await teamsAfter(database, { name: typed, limit: SHOWN_OF_EACH_KIND })
    : person.memberships
        .filter(({ name }) => name.toLowerCase().includes(word))
        .map(({ team_id, name }) => ({ id: team_id, name }))
  return buildTable(found, (team) => ({ Team: text(team.name, { href: teamPath(team) }) }), {
    title: 'Teams',
    empty: '',
  })
}

function writeLead(where: string, isFound: boolean, others: string, nothing: string): string {
  if (isFound) return `Results${where}${others ? `, and ${others}` : ''}.`
  if (others) return where === '' ? `${others}.` : `0 here, ${others}.`
  return nothing
}

const WAYS =
  'Search by name, address or part of it, phone number, subject or ID. You can also search for an idempotency key, a request ID, a provider ID or a Message-ID.'

const FIELD = 'Type into the field at the top of the page.'

const SEARCHED = buildFacts({
  Contacts: text('Name, part of an address, phone number, or another property'),
  Emails: text('Recipient, subject, ID, or your idempotency key'),
  'Messages to phone numbers': text('Phone number, ID, or your idempotency key'),
  'Templates, broadcasts, topics': text('Part of the name, or ID'),
  'Other IDs': text('Request ID, ID of the provider, or Message-ID'),
})

/** @param loaders of the problems of messages, by channel. */
export const locatePages = (loaders: ProblemLoaders) => [
  get('person', '/find', async (request, deps) => {
    const { query, person } = request
    const typed = queryParam(query, 'q') ?? queryParam(query, 'id')
    if (typed === undefined) return show({ title: 'Search', lead: FIELD, sections: [SEARCHED] })
    const teams = person.operator ? null : person.memberships.map(({ team_id }) => team_id)
    const named = await messagesWithId(deps.database, typed, { teams, limit: MAX_FOUND })
    const [first, ...others] = named
    if (first && others.length === 0) return redirect(pathTo(first))
    const team = query.has('id') ? null : await findTeam(request, deps)
    const found = compact([
      named.length > 0 && (await choice(named, deps)),
      team && (await foundIn({ team, typed, request, deps }, loaders)),
    ])
    const beyond = query.has('id') ? null : await elsewhere({ typed, here: team?.id ?? null, request, deps })
    const teamsFound = query.has('id') ? null : await teamsFor(typed, request, deps)
    const teamTable = teamsFound && hasRows(teamsFound) ? teamsFound : null
    const sections = compact<Section>([...found, teamTable, beyond?.section])
    const where = team ? ` in ${team.name}` : ''
    const nothing = query.has('id')
      ? `No message that you can see has the ID ${typed}.`
      : `Nothing${where} matches${found.length > 0 ? ' so far' : ''}.`
    return show({
      title: `Search: ${typed}`,
      lead: writeLead(where, compact([...found, teamTable]).some(hasRows), beyond?.words ?? '', nothing),
      sections: sections.length > 0 ? sections : [{ kind: 'text', paragraphs: [WAYS] }],
    })
  }),
]
