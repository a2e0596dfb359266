/** A team's contacts: the list with its filter, as CSV, and a new one. */

import { CONTACT_STATUSES } from '../../../db/audience/contacts/contacts.sql.ts'
import { createContact } from '../../../db/audience/contacts/edit.ts'
import type { ContactSearch } from '../../../db/audience/contacts/search.sql.ts'
import { searchContacts } from '../../../db/audience/contacts/search.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { EXPORT_COLUMNS } from '../../../db/audience/import/csv.ts'
import { status, text, time } from '../drawn/cell.ts'
import { contactOf } from '../drawn/properties.ts'
import type { Field, Section } from '../drawn/section.ts'
import { noteLook } from '../served/act.ts'
import { csvFile, rowsBy } from '../served/csv.ts'
import type { PageDeps } from '../served/deps.ts'
import { anyOf, filled, fromList, given, idGiven, PAGE_SIZE, pageOf, wordGiven } from '../served/list.ts'
import { act, formOf, get, lagging, some, tableOf } from '../served/made.ts'
import { redirect, show, type TeamRequest, teamPath } from '../served/page.ts'

type Topics = Awaited<ReturnType<typeof topicsOfTeam>>

const importLink = (team: { id: string }) => ({
  href: teamPath(team, 'contacts', 'import'),
  label: 'Import from CSV',
})

function filterForm({ team, query }: TeamRequest, topics: Topics): Section {
  const fields: Field[] = [
    { name: 'email', label: 'Part of the address', type: 'search' },
    { name: 'status', label: 'Status', type: 'select', options: anyOf(CONTACT_STATUSES) },
    {
      name: 'topic',
      label: 'Topic',
      type: 'select',
      options: [...anyOf([]), ...topics.map(({ id, name }) => ({ value: id, label: name }))],
    },
  ]
  const here = teamPath(team, 'contacts')
  const search = new URLSearchParams(
    [...query].filter(([name, value]) => ['email', 'status', 'topic'].includes(name) && value.trim() !== ''),
  )
  return {
    kind: 'filter',
    action: here,
    method: 'get',
    fields: filled(fields, query),
    submit: 'Find',
    reset: search.size > 0 ? { href: here, label: 'Clear' } : null,
    more: some([{ href: `${here}.csv?${search}`, label: 'CSV' }, team.role !== 'viewer' && importLink(team)]),
  }
}

/** Which topics a form offers, and which of them a contact has. */
export const topicChoices = (topics: Topics, chosen: readonly string[]): Field[] =>
  topics.length === 0
    ? []
    : [
        {
          name: 'topic_ids',
          label: 'Topics',
          type: 'checks',
          options: topics.map(({ id, name }) => ({ value: id, label: name, selected: chosen.includes(id) })),
        },
      ]

const createForm = ({ team }: TeamRequest, topics: Topics): Section =>
  formOf(
    teamPath(team, 'contacts'),
    'Add a contact',
    [
      { name: 'email', label: 'Email address', type: 'email', required: true },
      {
        name: 'properties',
        label: 'Properties',
        type: 'textarea',
        code: true,
        hint: 'One a line, such as name: Ana',
      },
      ...topicChoices(topics, []),
    ],
    { folded: true },
  )

/** The filter that the address holds. @throws Refusal bad_request. */
function searchOf(query: URLSearchParams): ContactSearch {
  return {
    email: given(query, 'email'),
    status: wordGiven(query, 'status', CONTACT_STATUSES),
    topic: idGiven(query, 'topic'),
  }
}

const list = get(lagging('viewer'), '/teams/:team/contacts', async (request, { database }) => {
  const { team, query, now } = request
  const topics = await topicsOfTeam(database, team.id)
  const search = searchOf(query)
  const page = { before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
  const { contacts, reached } = await searchContacts(database, team.id, search, page)
  const { rows, next } = pageOf(request, contacts, ({ id }) => id, reached)
  const further = reached === null ? undefined : next.at(-1)
  const isEmpty = team.role !== 'viewer' && !Object.values(search).some(Boolean)
  const names = new Map(topics.map(({ id, name }) => [id, name]))
  return show({
    title: 'Contacts',
    sections: some([
      filterForm(request, topics),
      tableOf(
        rows,
        (contact) => ({
          Status: status(contact.status),
          Address: text(contact.email, {
            href: fromList(request, teamPath(team, 'contacts', contact.email)),
          }),
          Topics: text(contact.topic_ids.map((id) => names.get(id) ?? id).join(', ')),
          Added: time(contact.created_at, now),
        }),
        {
          next,
          ...(further ? { start: further } : isEmpty ? { start: importLink(team) } : {}),
          empty: further
            ? 'Nothing matches so far: there are many contacts, and older ones were not looked at yet.'
            : Object.values(search).some(Boolean)
              ? 'No contact matches.'
              : 'No contacts yet.',
        },
      ),
      team.role !== 'viewer' && createForm(request, topics),
    ]),
  })
})

const create = act('editor', '/teams/:team/contacts', async (by, { team, form }) => {
  const wanted = contactOf(form)
  const { email } = await createContact(by, team.id, wanted)
  return redirect(teamPath(team, 'contacts', email), `${email} is a contact now.`)
})

async function* csvRows({ team, query }: TeamRequest, { database }: PageDeps) {
  const names = new Map((await topicsOfTeam(database, team.id)).map(({ id, name }) => [id, name]))
  const search = searchOf(query)
  const read = async (before: string | undefined, limit: number) => ({
    rows: (await searchContacts(database, team.id, search, { before, limit }, { patience: Infinity }))
      .contacts,
  })
  for await (const contact of rowsBy(read, ({ id }) => id)) {
    const { id, email, status: word, topic_ids, properties, created_at, updated_at } = contact
    const topics = topic_ids.map((topic) => names.get(topic) ?? topic).join(', ')
    yield [email, word, topics, created_at, updated_at, id, JSON.stringify(properties)]
  }
}

const csv = get(lagging('viewer'), '/teams/:team/contacts.csv', async (request, deps) => {
  const file = await csvFile('contacts', EXPORT_COLUMNS, csvRows(request, deps))
  await noteLook(request, deps, { action: 'contact.export', subject: request.query.toString() })
  return file
})

export const contactsPages = [list, csv, create]
