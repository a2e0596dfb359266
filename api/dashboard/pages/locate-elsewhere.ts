/**
 * Counts search results in other teams. It shows only counts. The results themselves are in the search of
 * that team, which is recorded in its audit log. A member's search covers their teams, one by one, within a
 * time limit. An operator's covers all teams. It uses indexes, and searches emails within a time limit.
 */
import { namesOfTeams } from '../../../db/accounts/teams/directory.sql.ts'
import { teamById } from '../../../db/accounts/teams/teams.sql.ts'
import { teamsOfContactsWith, teamsWithContact } from '../../../db/audience/contacts/search.sql.ts'
import { searchEmails } from '../../../db/messages/emails/search.ts'
import type { ListedEmail } from '../../../db/messages/emails/view.ts'
import { sentToNumbers, teamsSentTo } from '../../../db/messages/to-numbers.sql.ts'
import { plural } from '../../../db/plural.ts'
import type { Searched } from '../../../db/postgres/search-parts.ts'
import { parseAddress } from '../../../db/validation/address.ts'
import { type Cell, number, text } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { buildTable } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { lookedTo } from '../server/list.ts'
import type { OwnRequest } from '../server/page.ts'
import { isAddressPart, isPhone, numberIn, parseSearch, wordsIn } from '../server/search.ts'
import { contactsFound, emailsFound, SHOWN_OF_EACH_KIND } from './locate-in-team.ts'

/** Maximum number of teams in a member's search, and its time limit. */
const MAX_OTHER_TEAMS = 20
const OTHERS_MS = 500
/** Maximum count per kind in an operator's search. */
const MAX_COUNTED = 50

/** The number of results of a kind in a team. `more` is true if there can be more. */
type Count = { team_id: string; kind: string; count: number; more: boolean }
type TeamCounts = { counts: Count[]; note: Pick<Section, 'note' | 'noteAt'> }

type Search = { typed: string; here: string | null; request: OwnRequest; deps: PageDeps }

/** Counts results by team. `ids` has the team of each result. */
const countTeams = (kind: string, ids: readonly string[]): Count[] =>
  [...Map.groupBy(ids, (id) => id)].map(([team_id, all]) => ({
    team_id,
    kind,
    count: all.length,
    more: ids.length >= MAX_COUNTED,
  }))

async function contactsOfAll(typed: string, { database }: PageDeps): Promise<Count[]> {
  const identity = parseAddress(typed)?.identity
  const own = identity === undefined ? [] : await teamsWithContact(database, identity)
  if (own.length > 0) return countTeams('Contacts', own).map((count) => ({ ...count, more: false }))
  if (numberIn(typed) !== null || !isAddressPart(typed)) return []
  return countTeams('Contacts', await teamsOfContactsWith(database, typed, MAX_COUNTED))
}

async function messagesOfAll(typed: string, { database }: PageDeps): Promise<Count[]> {
  const to = numberIn(typed)
  const found = to === null ? [] : await teamsSentTo(database, to, SHOWN_OF_EACH_KIND)
  return found.map(({ channel: { title }, team_id, count }) => {
    return { team_id, kind: title, count, more: count >= SHOWN_OF_EACH_KIND }
  })
}

const NO_EMAILS: Searched<ListedEmail> = { rows: [], reached: null }

/** Counts in all teams, for an operator. A complete address uses an index. Other searches have a time limit. */
async function countAll({ typed, request: { now }, deps }: Search): Promise<TeamCounts> {
  const parsed = parseSearch(typed)
  if ('id' in parsed) return { counts: [], note: {} }
  const search = (wanted: Exclude<typeof parsed, { id: string }>) =>
    searchEmails(
      { ...deps, tx: deps.database },
      { ...wanted, since: new Date(0), now },
      { limit: MAX_COUNTED },
    )
  const exact = 'recipient' in parsed ? await search(parsed) : null
  const { rows, reached } = exact?.rows.length
    ? exact
    : isPhone(typed)
      ? NO_EMAILS
      : await search({ text: wordsIn(typed).join(' ') })
  const ids = rows.map(({ team_id }) => team_id)
  return {
    counts: [
      ...(await contactsOfAll(typed, deps)),
      ...countTeams('Emails', ids),
      ...(await messagesOfAll(typed, deps)),
    ],
    note: lookedTo(reached, now),
  }
}

async function countIn(
  team_id: string,
  { typed, request, deps }: Search,
  patience: number,
): Promise<Count[]> {
  const team = await teamById(deps.database, team_id)
  if (!team) return []
  const asked = { team, typed, request, deps, patience }
  const { rows: contacts } = await contactsFound(asked)
  const { rows: emails } = isPhone(typed) ? NO_EMAILS : await emailsFound(asked)
  const to = numberIn(typed)
  const sent = await sentToNumbers(deps.database, team_id, to === null ? [] : [to], SHOWN_OF_EACH_KIND)
  const found: [string, number][] = [
    ['Contacts', contacts.length],
    ['Emails', emails.length],
    ...sent.map(({ channel, sent: all }): [string, number] => [channel.title, all.length]),
  ]
  return found
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => ({ team_id, kind, count, more: count >= SHOWN_OF_EACH_KIND }))
}

/** Counts in a member's other teams, until the time limit. */
async function countOwn(search: Search): Promise<TeamCounts> {
  const { memberships } = search.request.person
  const ids = memberships.map(({ team_id }) => team_id).filter((id) => id !== search.here)
  const end = performance.now() + OTHERS_MS
  const counts: Count[] = []
  let looked = 0
  for (const id of ids.slice(0, MAX_OTHER_TEAMS)) {
    const left = end - performance.now()
    if (left <= 0) break
    counts.push(...(await countIn(id, search, left / (ids.length - looked))))
    looked += 1
  }
  const rest = ids.length - looked
  return { counts, note: rest > 0 ? { note: `${plural(rest, 'more team')} not searched.` } : {} }
}

const countCell = (count: Count | undefined): Cell =>
  count ? number(count.count, count.more ? { text: `${count.count}+` } : {}) : text('')

/** `words` lists the counts by team. It is '' if nothing was found. */
type OtherTeams = { words: string; section: Section }

/** Searches other teams, or all teams if the page belongs to none. Returns null without results. */
export async function elsewhere(search: Search): Promise<OtherTeams | null> {
  const { typed, here, request, deps } = search
  const { counts, note } = await (request.person.operator ? countAll(search) : countOwn(search))
  const found = counts.filter(({ team_id }) => team_id !== here)
  if (found.length === 0 && !note.note) return null
  if (found.length === 0) {
    const words = `${here === null ? 'Nothing found.' : 'Nothing found in other teams.'} ${note.note}`
    return { words: '', section: { kind: 'text', paragraphs: [], ...note, note: words } }
  }
  const names = await namesOfTeams(deps.database, [...new Set(found.map(({ team_id }) => team_id))])
  const kinds = [...new Set(found.map(({ kind }) => kind))]
  const rows = [...Map.groupBy(found, ({ team_id }) => team_id)].map(([id, own]) => ({
    id,
    own,
    name: names.get(id) ?? id,
  }))
  const section = buildTable(
    rows,
    ({ id, name, own }) => [
      ['Team', text(name, { href: `/find?${new URLSearchParams({ team: id, q: typed })}` })],
      ...kinds.map((kind): [string, Cell] => [kind, countCell(own.find((count) => count.kind === kind))]),
    ],
    { title: here === null ? 'By team' : 'In other teams', empty: '', ...note },
  )
  const words = rows.map(({ name, own }) => {
    const all = own.reduce((sum, { count }) => sum + count, 0)
    return `${all}${own.some(({ more }) => more) ? '+' : ''} in ${name}`
  })
  return { words: words.join(', '), section }
}
