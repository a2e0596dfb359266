/** Lists the contacts of a team with a filter, exports them as CSV, and adds new ones. */

import { isDeepStrictEqual } from 'node:util'
import { readAccountRow, readContactColumns } from '../../../db/accounts/teams/teams.sql.ts'
import { chooseContactColumns, MAX_COLUMNS } from '../../../db/audience/contacts/columns.ts'
import { CONTACT_STATUSES, type ContactRow } from '../../../db/audience/contacts/contacts.sql.ts'
import { createContact } from '../../../db/audience/contacts/edit.ts'
import type { ContactSearch } from '../../../db/audience/contacts/search.sql.ts'
import { searchContacts } from '../../../db/audience/contacts/search.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { EXPORT_COLUMNS } from '../../../db/audience/import/csv.ts'
import { importById } from '../../../db/audience/import/imports.sql.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { parseJson } from '../../../db/validation/strings.ts'
import { type Cell, number, status, text, time } from '../components/cell.ts'
import { formatLine, parseLine, splitLines } from '../components/lines.ts'
import { compareProperties, findName, isInName } from '../components/names.ts'
import { readContact } from '../components/properties.ts'
import type { Field, Section } from '../components/section.ts'
import { action, buildForm, compact, field, fromReplica, get, hidden } from '../server/builders.ts'
import { defineCsv } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, defineFilter, defineId, search } from '../server/filter.ts'
import { buildList, fromList, pageById, type RowReader } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { isAddressPart, wordsIn } from '../server/search.ts'

type TopicRows = Awaited<ReturnType<typeof topicsOfTeam>>

export const importLink = (team: { id: string }) => ({
  href: teamPath(team, 'contacts', 'import'),
  label: 'Import from CSV',
})

/** Builds the cell with a contact: the name, and the address below it. */
export function namedContactCell({ email, properties }: ContactRow, team: { id: string }): Cell {
  const name = findName(properties)
  return text(name ?? email, { href: teamPath(team, 'contacts', email), detail: name ? email : undefined })
}

const filter = defineFilter({
  q: search('Address or properties', { short: 'Search' }),
  topic: defineId('Topic'),
  import: defineId('Import'),
  status: chips(CONTACT_STATUSES),
})

/** Parses a search. It matches part of an address if any contact has it, otherwise addresses and properties. */
async function soughtBy(tx: Tx, teamId: string, typed: string | undefined): Promise<ContactSearch> {
  if (typed === undefined) return {}
  const part = { email: typed }
  if (isAddressPart(typed) && (await searchContacts(tx, teamId, part, { limit: 1 })).rows.length > 0)
    return part
  return { words: wordsIn(typed) }
}

const MAX_PROPERTY_COLUMNS = 2
/** With more property columns, topics have no column, because the contact needs the space. */
const MAX_COLUMNS_BESIDE_TOPICS = 2
const OWN_COLUMNS = ['Contact', 'Status', 'Topics', 'Added']

/** Returns the most frequent properties of these contacts. Among equally frequent ones, names come first. */
function commonProperties(contacts: readonly ContactRow[]): string[] {
  const counts = new Map<string, number>()
  for (const { properties } of contacts)
    for (const name of Object.keys(properties)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .sort(([one, own], [other, others]) => others - own || compareProperties(one, other))
    .slice(0, MAX_PROPERTY_COLUMNS)
    .map(([name]) => name)
}

/** The most characters in columns that are never cut, in one and in all. Others share the width with the contact. */
const SHORT_COLUMN = { one: 16, all: 30 }

const readProperty = ({ properties }: ContactRow, name: string): string | null =>
  Object.hasOwn(properties, name) ? (properties[name] ?? null) : null

/** Estimates the width of a value in Latin letters. Letters of other scripts can be twice as wide. */
const widthOf = (value: string): number =>
  [...value].reduce((sum, letter) => sum + (letter > '\u024f' ? 2 : 1), 0)

/** Returns the property columns whose values are all short, such as phone numbers, the shortest first. */
function shortColumns(contacts: readonly ContactRow[], names: readonly string[]): Set<string> {
  const widths = names.map((name) => ({
    name,
    width: Math.max(widthOf(name), ...contacts.map((contact) => widthOf(readProperty(contact, name) ?? ''))),
  }))
  let left = SHORT_COLUMN.all
  const short = new Set<string>()
  for (const { name, width } of widths.sort((one, other) => one.width - other.width)) {
    left -= width
    if (width <= SHORT_COLUMN.one && left >= 0) short.add(name)
  }
  return short
}

const toColumnName = (name: string): string => (OWN_COLUMNS.includes(name) ? `${name} (property)` : name)

export const topicChoices = (topics: TopicRows, chosen: readonly string[]): Field[] =>
  topics.length === 0
    ? []
    : [
        field('topic_ids', 'Topics', {
          type: 'checks',
          options: topics.map(({ id, name }) => ({ value: id, label: name, selected: chosen.includes(id) })),
        }),
      ]

const createForm = ({ team }: TeamRequest, topics: TopicRows): Section =>
  buildForm(teamPath(team, 'contacts'), 'Add contact', {
    title: 'Add a contact',
    folded: true,
    fields: [
      field('email', 'Email address', { type: 'email', required: true }),
      field('properties', 'Properties', {
        type: 'textarea',
        code: true,
        hint: 'One per line, such as name: Ana',
      }),
      ...topicChoices(topics, []),
    ],
  })

/** Maximum number of lines, including empty ones. */
const MAX_COLUMN_LINES = 100

const BY_ITSELF = 'By default, the most frequent properties of the listed contacts are shown.'
const CHOSEN = 'Leave this empty to show the most frequent properties.'

/** @param isChosen true if the team has chosen the columns shown. */
const columnsForm = ({ team }: TeamRequest, shown: readonly string[], isChosen: boolean): Section =>
  buildForm(teamPath(team, 'contacts', 'columns'), 'Save columns', {
    title: 'Columns',
    folded: 'menu',
    fields: [
      field('columns', 'Properties shown as columns', {
        type: 'textarea',
        code: true,
        rows: MAX_COLUMNS,
        value: shown.map(formatLine).join('\n'),
        hint: `One per line, up to ${MAX_COLUMNS}, for the entire team. ${isChosen || shown.length === 0 ? CHOSEN : BY_ITSELF} With more than ${MAX_COLUMNS_BESIDE_TOPICS}, the list has no column for topics. Names are in the column Contact.`,
      }),
      hidden('shown', JSON.stringify(shown), true),
    ],
  })

async function createReader(
  { team, query }: TeamRequest,
  { database }: PageDeps,
  how = {},
): Promise<RowReader<ContactRow>> {
  const { q, ...others } = filter.read(query)
  const search = { ...others, ...(await soughtBy(database, team.id, q)) }
  return (place) => searchContacts(database, team.id, search, place, how)
}

const mapNames = (topics: TopicRows) => new Map(topics.map(({ id, name }) => [id, name]))

/** Returns the file name of the import in the filter. */
async function importChosen({ team, query }: TeamRequest, { database }: PageDeps) {
  const { import: id } = filter.read(query)
  const found = id && (await importById(database, team.id, id))
  return id ? { import: new Map([[id, found ? found.file_name : 'no longer listed']]) } : {}
}

const list = get(fromReplica('viewer'), '/teams/:team/contacts', async (request, deps) => {
  const { team, query, now, path } = request
  const topics = await topicsOfTeam(deps.database, team.id)
  const names = mapNames(topics)
  const edits = team.role !== 'viewer'
  const page = await pageById(request, await createReader(request, deps))
  const stored = (await readAccountRow(deps.database, team.id))?.contacts_used ?? 0
  const chosen = await readContactColumns(deps.database, team.id)
  const asked = chosen ?? commonProperties(page.rows)
  const columns = asked.filter((name) => !isInName(page.rows, name))
  const short = shortColumns(page.rows, columns)
  return show({
    title: 'Contacts',
    state: { text: number(stored).text },
    actions: {
      links: compact([
        edits && importLink(team),
        { href: `${path}.csv?${filter.set(query)}`, label: 'Export as CSV', menu: true },
      ]),
    },
    sections: compact([
      ...filter.shown(request, { choices: { topic: names, ...(await importChosen(request, deps)) } }),
      buildList(
        page,
        (contact) => [
          [
            'Contact',
            {
              ...namedContactCell(contact, team),
              href: fromList(request, teamPath(team, 'contacts', contact.email)),
            },
          ],
          ['Status', status(contact.status)],
          ...columns.map((name) => {
            return [toColumnName(name), text(readProperty(contact, name))] as const
          }),
          [
            'Topics',
            asked.length <= MAX_COLUMNS_BESIDE_TOPICS &&
              text(contact.topic_ids.map((id) => names.get(id) ?? id).join(', ')),
          ],
          ['Added', time(contact.created_at, now)],
        ],
        {
          main: 'Contact',
          grow: ['Contact', ...columns.filter((name) => !short.has(name)).map(toColumnName), 'Topics'],
          filtered: filter.set(query).size > 0,
          nothing: 'No contact matches.',
          none: 'No contacts yet.',
          many: 'contacts',
          start: edits ? importLink(team) : undefined,
        },
      ),
      edits && createForm(request, topics),
      edits && columnsForm(request, asked, chosen !== null),
    ]),
  })
})

const create = action('editor', '/teams/:team/contacts', async (by, { team, form }) => {
  const wanted = readContact(form)
  const { email } = await createContact(by, team.id, wanted)
  return redirect(teamPath(team, 'contacts', email), `${email} was added.`)
})

const choose = action('editor', '/teams/:team/contacts/columns', async (by, { team, form }) => {
  const names = splitLines(form.get('columns') ?? '', 'columns', MAX_COLUMN_LINES).map(parseLine)
  const list = teamPath(team, 'contacts')
  // Submitting the default columns unchanged doesn't save them.
  if (isDeepStrictEqual(names, parseJson(form.get('shown') ?? '')))
    return redirect(list, 'No changes to save.')
  await chooseContactColumns(by, team.id, names)
  return redirect(list, 'The columns were saved.')
})

const csv = defineCsv<ContactRow>(
  '/teams/:team/contacts.csv',
  { name: 'contacts', action: 'contact.export', header: EXPORT_COLUMNS, filter },
  async (request, deps) => {
    const names = mapNames(await topicsOfTeam(deps.database, request.team.id))
    return {
      read: await createReader(request, deps, { patience: Infinity }),
      keyOf: ({ id }) => id,
      line: ({ id, email, status: word, topic_ids, properties, created_at, updated_at }) => {
        const topics = topic_ids.map((topic) => names.get(topic) ?? topic).join(', ')
        return [email, word, topics, created_at, updated_at, id, JSON.stringify(properties)]
      },
    }
  },
)

export const contactsPages = [list, csv, create, choose]
