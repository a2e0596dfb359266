/** The audit log of the dashboard and the CLI. Operators see all entries, owners those of their team. */

import { NIL } from 'uuid'
import { type AuditRow, auditEntries, searchAuditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import { auditRead } from '../../../../db/accounts/audit/audit-read.ts'
import { membersOfTeam } from '../../../../db/accounts/members/people.sql.ts'
import { namesOfTeams, teamsAfter } from '../../../../db/accounts/teams/directory.sql.ts'
import { type NamedThing, namesOfThings, thingKey } from '../../../../db/accounts/teams/search-index.sql.ts'
import { QUEUES } from '../../../../db/delivery/queues.ts'
import { providersOfReports } from '../../../../db/delivery/reports/reports.sql.ts'
import { invalidField } from '../../../../db/errors.ts'
import { fill } from '../../../../db/fill.ts'
import { scheduledStarts } from '../../../../db/messages/broadcasts/scheduled-starts.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
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
} from '../../components/action-labels.ts'
import { type Cell, text, time } from '../../components/cell.ts'
import type { Link, View } from '../../components/section.ts'
import { parseZone } from '../../components/zone.ts'
import { fromReplica, get } from '../../server/builders.ts'
import { batchesBy, csvFile, defineCsv, whileOpen } from '../../server/csv.ts'
import type { PageDeps } from '../../server/deps.ts'
import { DAY_RANGE, defineFilter, search } from '../../server/filter.ts'
import { buildList, pageById, type RowReader, readBy } from '../../server/list.ts'
import { type PageRequest, show, teamPath } from '../../server/page.ts'
import { TEXTS } from '../../texts.ts'
import { thingPath } from '../search-results.ts'
import { providerName, reportPath } from './report-reasons.ts'

/** Returns the broadcast in an entry about a start. */
const toStart = ({ id, team_id, action, detail }: AuditRow) =>
  action === 'broadcast.start' && team_id !== null && isUuid(detail)
    ? [{ id, team_id, broadcast_id: detail }]
    : []

const OF_TEAM = {
  actor: search('By', { placeholder: 'Email or key' }),
  action: search('Action', { type: 'select' }),
  ...DAY_RANGE,
}
const teamFilter = defineFilter(OF_TEAM)
const globalFilter = defineFilter({ ...OF_TEAM, team: search('Team', { placeholder: 'Team or its ID' }) })

/** Returns the choices of the filter: all actions with the one in the URL, and the users of a team. */
async function loadChoices({ query }: PageRequest, { database }: PageDeps, only: string | null) {
  const chosen = query.get('action')?.trim()
  const actions = chosen === undefined || chosen === '' ? ACTION_LABELS : new Set([...ACTION_LABELS, chosen])
  const users = only === null ? [] : (await membersOfTeam(database, only)).map(({ email }) => email)
  const toChoices = (words: Iterable<string>) => new Map([...words].map((word) => [word, word]))
  return { action: toChoices(actions), actor: toChoices([...users, actorName(CLI)]) }
}

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

/** Returns the operator's page for an entry without a team, if there is one, except a report. */
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

/** The names of objects in entries, and the provider of each report. */
type Names = { things: ReadonlyMap<string, NamedThing>; reports: ReadonlyMap<string, string> }

async function loadNames(tx: Tx, rows: readonly AuditRow[]): Promise<Names> {
  const things = rows.flatMap(({ team_id, subject, detail }) =>
    team_id === null ? [] : [toLookupKey(subject), detail].map((word) => ({ team_id, word })),
  )
  const reports = rows.flatMap(({ action, subject }) =>
    action.startsWith('report.') && isUuid(subject) ? subject : [],
  )
  return { things: await namesOfThings(tx, things), reports: await providersOfReports(tx, reports) }
}

/** Builds the cell with the object of an entry, linked if it has a page. */
function subjectCell(entry: AuditRow, { things: names, reports }: Names): Cell {
  const { team_id, subject, detail } = entry
  const provider = reports.get(subject)
  if (provider !== undefined)
    return text(`Report from ${providerName(provider)}`, { href: reportPath(subject), tip: subject })
  const bySubject = names.get(thingKey(team_id ?? '', toLookupKey(subject)))
  const byDetail = names.get(thingKey(team_id ?? '', detail))
  const named = bySubject ?? byDetail
  const href = team_id && named ? thingPath({ id: team_id }, named) : operatorPath(entry)
  const words = bySubject?.name ?? subject
  // Leaves out the ID of an object whose name is shown.
  const rest = byDetail ? (isUuid(subject) ? byDetail.name : '') : detail
  return text(words, { href, detail: rest !== words && rest ? rest : undefined })
}

const describeTeam = ({ team_id: id }: AuditRow, names: ReadonlyMap<string, string>): string =>
  id === null ? '' : (names.get(id) ?? `deleted team ${id}`)

const teamCell = (entry: AuditRow, names: ReadonlyMap<string, string>): Cell =>
  text(describeTeam(entry, names), {
    href: names.has(entry.team_id ?? '') ? `/operator/teams/${entry.team_id}` : undefined,
  })

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
  const names = await loadNames(database, page.rows)
  const starts = await scheduledStarts(database, page.rows.flatMap(toStart))
  return {
    title: 'Audit log',
    actions: links && { links },
    lead: 'Changes by users, API keys, recipients and the command line, and reads by operators, newest first. Entries never change.',
    sections: [
      ...filter.shown(request, { choices: await loadChoices(request, deps, only) }),
      buildList(
        page,
        (entry) => ({
          When: momentCell(entry.created_at, now),
          Action: actionCell(entry, starts),
          By: text(actorName(entry.actor)),
          About: subjectCell(entry, names),
          Team: only === null && teamCell(entry, teamNames),
        }),
        {
          main: 'Action',
          wrap: ['Action', 'By', 'About', 'Team'],
          filtered: filter.set(query).size > 0,
          nothing: 'No entry matches.',
          none: 'No entries yet.',
          many: 'entries',
        },
      ),
    ],
  }
}

/** Returns the link to the CSV file with the same filter. */
function exportLink(path: string, set: URLSearchParams): Link {
  return { href: `${path}${set.size > 0 ? `?${set}` : ''}`, label: 'Export as CSV', menu: true }
}

const audit = get(fromReplica('operator'), '/operator/audit', async (request, deps) => {
  const links = [exportLink('/operator/audit.csv', globalFilter.set(request.query))]
  return show(await auditView(request, deps, { only: null, links }))
})

const ofTeam = get('owner', '/teams/:team/audit', async (request, deps) => {
  const { team, query } = request
  const links = [exportLink(teamPath(team, 'audit.csv'), teamFilter.set(query))]
  return show(await auditView(request, deps, { only: team.id, links }))
})

const HEADER = ['time', 'user', 'action', 'code', 'object', 'detail']

const toLine = ({ created_at, actor, action, subject, detail }: AuditRow) => [
  ...[
    created_at,
    actor === CLI ? actorName(CLI) : actor,
    entryLabel({ action, detail }, undefined),
    action,
    subject,
    detail,
  ],
]

const csv = defineCsv<AuditRow>(
  '/teams/:team/audit.csv',
  { ...{ name: 'audit', action: 'audit.export', access: 'owner', filter: teamFilter }, header: HEADER },
  async (request, deps) => ({
    read: await createReader(request, deps, request.team.id),
    keyOf: ({ id }) => id,
    line: toLine,
  }),
)

/** The CSV file of all teams. Each export is recorded. */
const globalCsv = get(fromReplica('operator'), '/operator/audit.csv', async (request, deps) => {
  const { query, person, now } = request
  globalFilter.only(query)
  const read = await createReader(request, deps, null)
  async function* lines() {
    for await (const rows of batchesBy(
      whileOpen(read, { person, team: { id: NIL } }, deps),
      ({ id }) => id,
    )) {
      const names = await namesOfTeams(deps.database, [
        ...new Set(rows.flatMap(({ team_id }) => team_id ?? [])),
      ])
      for (const entry of rows) yield [...toLine(entry), describeTeam(entry, names), entry.team_id]
    }
  }
  const file = await csvFile(request, 'audit', [...HEADER, 'team', 'team_id'], lines())
  const entry = { action: 'audit.export', subject: globalFilter.set(query).toString() }
  await auditRead({ tx: deps.primary, now, actor: person.email }, { id: null, member: false }, entry)
  return file
})

export const auditPages = [audit, ofTeam, csv, globalCsv]
