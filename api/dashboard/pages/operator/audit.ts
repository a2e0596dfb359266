/** The audit log of the dashboard and the CLI. Operators see all entries, owners those of their team. */

import { type AuditRow, auditEntries, searchAuditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import { namesOfTeams, teamsAfter } from '../../../../db/accounts/teams/directory.sql.ts'
import { type NamedThing, namesOfThings, thingKey } from '../../../../db/accounts/teams/search-index.sql.ts'
import { QUEUES } from '../../../../db/delivery/queues.ts'
import { invalidField } from '../../../../db/errors.ts'
import { fill } from '../../../../db/fill.ts'
import { scheduledStarts } from '../../../../db/messages/broadcasts/scheduled-starts.sql.ts'
import { searchParts } from '../../../../db/postgres/search-parts.ts'
import { parseAddress } from '../../../../db/validation/address.ts'
import { isUuid } from '../../../../db/validation/strings.ts'
import {
  ACTION_LABELS,
  actorName,
  CLI,
  entryLabel,
  findAction,
  findActor,
  shownActor,
} from '../../components/action-labels.ts'
import { type Cell, text, time } from '../../components/cell.ts'
import type { Link, View } from '../../components/section.ts'
import { parseZone } from '../../components/zone.ts'
import { compact, fromReplica, get } from '../../server/builders.ts'
import { defineCsv } from '../../server/csv.ts'
import type { PageDeps } from '../../server/deps.ts'
import { DAY_RANGE, defineFilter, search } from '../../server/filter.ts'
import { buildList, pageById, type RowReader, readBy } from '../../server/list.ts'
import { type PageRequest, show, teamPath } from '../../server/page.ts'
import { TEXTS } from '../../texts.ts'
import { thingPath } from '../search-results.ts'

/** Returns the broadcast in an entry about a start. */
const toStart = ({ id, team_id, action, detail }: AuditRow) =>
  action === 'broadcast.start' && team_id !== null && isUuid(detail)
    ? [{ id, team_id, broadcast_id: detail }]
    : []

const OF_TEAM = {
  actor: search('User', { placeholder: 'Part of the address' }),
  action: search('Action', { placeholder: 'Any action', offers: ACTION_LABELS.map((value) => ({ value })) }),
  ...DAY_RANGE,
}
const teamFilter = defineFilter(OF_TEAM)
const globalFilter = defineFilter({ ...OF_TEAM, team: search('Team', { placeholder: 'Team or its ID' }) })

/** Maximum number of teams that part of a name can match. */
const MAX_TEAMS = 50

/** Finds teams by ID or part of their name. @throws RequestError bad_request for too many matches. */
async function teamsMeant(words: string, { database }: PageDeps): Promise<string[]> {
  if (isUuid(words)) return [words.toLowerCase()]
  const teams = await teamsAfter(database, { name: words, limit: MAX_TEAMS + 1 })
  if (teams.length <= MAX_TEAMS) return teams.map(({ id }) => id)
  throw invalidField('team', fill(TEXTS.tooManyTeams, { most: MAX_TEAMS }))
}

/** Returns the key for looking up an object. For an address it is the identity. */
const toLookupKey = (text: string): string => parseAddress(text)?.identity ?? text

/** Returns the operator's page for an entry without a team, if there is one. */
function operatorPath({ action, subject }: AuditRow): string | undefined {
  if (action.startsWith('queue.') && QUEUES.some((queue) => queue === subject))
    return `/operator/queues/${subject}`
  return action.startsWith('sender.resume') ? '/operator/senders' : undefined
}

/** How many entries the parts of a search for one label of an action read. */
const LABEL_PARTS = { first: 500, longest: 2_000 }

/** Leaves out entries with another label of the same action. */
const withLabel =
  (read: RowReader<AuditRow>, label: string, { database }: PageDeps): RowReader<AuditRow> =>
  (place) =>
    searchParts({ ...place, ...LABEL_PARTS }, async ({ before, limit, length }) => {
      const { rows, reached } = await readBy(read, { before, limit: length })
      const starts = await scheduledStarts(database, rows.flatMap(toStart))
      const matches = rows.filter((entry) => entryLabel(entry, starts.get(entry.id)) === label)
      const last = rows.length < length ? reached : (rows.at(-1)?.id ?? null)
      return { rows: matches.slice(0, limit), reached: last }
    })

/** Builds the cell with the action. Its tooltip also has the code that the CLI uses. */
function actionCell(entry: AuditRow, starts: ReadonlyMap<string, boolean>): Cell {
  const { action } = entry
  const words = entryLabel(entry, starts.get(entry.id))
  return words === action ? text(action, { code: true }) : text(words, { tip: `${words} (${action})` })
}

function momentCell(at: string, now: Date): Cell {
  const { text: words, iso } = time(at, now)
  return { text: words, iso }
}

/** Builds the cell with the object of an entry, linked if it has a page. @param team its name for operators, or ''. */
function subjectCell(entry: AuditRow, names: ReadonlyMap<string, NamedThing>, team: string): Cell {
  const { team_id, subject, detail } = entry
  const bySubject = names.get(thingKey(team_id ?? '', toLookupKey(subject)))
  const byDetail = names.get(thingKey(team_id ?? '', detail))
  const named = bySubject ?? byDetail
  const href = team_id && named ? thingPath({ id: team_id }, named) : operatorPath(entry)
  const words = bySubject?.name ?? subject
  // Leaves out the ID of an object whose name is shown.
  const rest = byDetail ? (isUuid(subject) ? byDetail.name : '') : detail
  return text(words, { href, detail: compact([rest !== words && rest, team]).join(' · ') || undefined })
}

const describeTeam = ({ team_id: id }: AuditRow, names: ReadonlyMap<string, string>): string =>
  id === null ? '' : (names.get(id) ?? `deleted team ${id}`)

/** Creates the reader of matching entries. @param only the ID of a team, or null for all teams. */
async function createReader(
  { query, cookies }: PageRequest,
  deps: PageDeps,
  only: string | null,
): Promise<RowReader<AuditRow>> {
  const { database } = deps
  const { team: meant, ...asked } = {
    team: undefined,
    ...(only === null ? globalFilter : teamFilter).read(query, parseZone(cookies('zone'))),
  }
  const teams = only !== null ? [only] : meant === undefined ? undefined : await teamsMeant(meant, deps)
  const { action, label } = asked.action === undefined ? {} : findAction(asked.action)
  const { actor: part, ...others } = { ...asked, action, teams }
  const actor = part === undefined ? undefined : findActor(part)
  const isWhole = actor === undefined || (actor === CLI && part !== CLI) || parseAddress(actor) !== null
  const read: RowReader<AuditRow> = (place) =>
    isWhole
      ? auditEntries(database, { ...others, actor, ...place })
      : searchAuditEntries(database, { ...others, part: actor, ...place })
  return label === undefined ? read : withLabel(read, label, deps)
}

/** Builds the page. @param only the ID of a team, or null for all teams. */
async function auditView(
  request: PageRequest,
  deps: PageDeps,
  { only, links }: { only: string | null; links?: readonly Link[] },
): Promise<View> {
  const { query, now } = request
  const { database } = deps
  const filter = only === null ? globalFilter : teamFilter
  const page = await pageById(request, await createReader(request, deps, only))
  const ids = only === null ? page.rows.flatMap(({ team_id }) => team_id ?? []) : []
  const teamNames = await namesOfTeams(database, [...new Set(ids)])
  const things = page.rows.flatMap(({ team_id, subject, detail }) =>
    team_id === null ? [] : [toLookupKey(subject), detail].map((word) => ({ team_id, word })),
  )
  const names = await namesOfThings(database, things)
  const starts = await scheduledStarts(database, page.rows.flatMap(toStart))
  return {
    title: 'Audit log',
    actions: links && { links },
    lead: 'All actions of users, newest first. Entries never change.',
    sections: [
      ...filter.shown(request),
      buildList(
        page,
        (entry) => ({
          When: momentCell(entry.created_at, now),
          User: text(shownActor(entry.actor)),
          Action: actionCell(entry, starts),
          About: subjectCell(entry, names, only === null ? describeTeam(entry, teamNames) : ''),
        }),
        {
          ...{ main: 'Action', grow: ['About'] },
          filtered: filter.set(query).size > 0,
          nothing: 'No entry matches.',
          none: 'No entries yet.',
          many: 'entries',
        },
      ),
    ],
  }
}

const audit = get(fromReplica('operator'), '/operator/audit', async (request, deps) =>
  show(await auditView(request, deps, { only: null })),
)

const ofTeam = get('owner', '/teams/:team/audit', async (request, deps) => {
  const { team, query } = request
  const set = teamFilter.set(query)
  const file = `${teamPath(team, 'audit.csv')}${set.size > 0 ? `?${set}` : ''}`
  return show(
    await auditView(request, deps, {
      only: team.id,
      links: [{ href: file, label: 'Export as CSV', menu: true }],
    }),
  )
})

const csv = defineCsv<AuditRow>(
  '/teams/:team/audit.csv',
  {
    ...{ name: 'audit', action: 'audit.export', access: 'owner', filter: teamFilter },
    header: ['time', 'user', 'action', 'code', 'object', 'detail'],
  },
  async (request, deps) => ({
    read: await createReader(request, deps, request.team.id),
    keyOf: ({ id }) => id,
    line: ({ created_at, actor, action, subject, detail }) => [
      created_at,
      actorName(actor),
      entryLabel({ action, detail }, undefined),
      action,
      subject,
      detail,
    ],
  }),
)

export const auditPages = [audit, ofTeam, csv]
