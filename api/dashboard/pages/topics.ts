/** Lists topics with their contacts. Creates, renames and deletes them. */

import { readAccountRow } from '../../../db/accounts/teams/teams.sql.ts'
import { searchContacts } from '../../../db/audience/contacts/search.ts'
import { countSubscribers } from '../../../db/audience/contacts/topic-counts.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { createTopic, removeTopic, renameTopic } from '../../../db/audience/contacts/topics.ts'
import { newestBroadcasts } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { withStats } from '../../../db/messages/broadcasts/view.ts'
import { plural } from '../../../db/plural.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { number, status, text, time } from '../components/cell.ts'
import { keptOr } from '../components/lines.ts'
import { percent } from '../components/percent.ts'
import type { Actions } from '../components/section.ts'
import { requireFound } from '../server/already.ts'
import { action, buildFacts, buildForm, buildTable, button, compact, field, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortableTable } from '../server/sort.ts'
import { broadcastStateCell, byStart, openedCell, sentCell, startTime } from './broadcasts.ts'
import { importLink, namedContactCell } from './contacts.ts'

/** Maximum number of broadcasts that are searched for those to a topic. */
const BROADCASTS_SEARCHED = 100
const BROADCASTS_SHOWN = 20
const CONTACTS_SHOWN = 10

const NO_TOPIC = "This topic doesn't exist."

const subscribersPath = (team: { id: string }, id: string): string =>
  `${teamPath(team, 'contacts')}?topic=${id}`

const findTopic = async (tx: Tx, teamId: string, id: string) =>
  (await topicsOfTeam(tx, teamId)).find((topic) => topic.id === id)

/** Returns when the newest of these broadcasts to a topic started. */
const lastStart = (id: string, broadcasts: Awaited<ReturnType<typeof newestBroadcasts>>): string | null =>
  broadcasts.find(({ topic_ids, started_at }) => started_at !== null && topic_ids.includes(id))?.started_at ??
  null

const list = get('viewer', '/teams/:team/topics', async (request, { database }) => {
  const { team, now } = request
  const topics = await topicsOfTeam(database, team.id)
  const ids = topics.map(({ id }) => id)
  const subscribers = await countSubscribers(database, team.id, ids)
  const broadcasts = await newestBroadcasts(database, team.id, BROADCASTS_SEARCHED)
  const edits = team.role !== 'viewer'
  return show({
    title: 'Topics',
    lead: 'Contacts can subscribe to topics, and unsubscribe from each one separately.',
    sections: compact([
      sortableTable(
        request,
        topics,
        ({ id, name, created_at }) => ({
          Name: text(name, { href: teamPath(team, 'topics', id) }),
          Contacts: number(subscribers.get(id) ?? 0, { href: subscribersPath(team, id) }),
          'Last broadcast': time(lastStart(id, broadcasts), now),
          Created: time(created_at, now),
        }),
        {
          empty: edits
            ? 'No topics yet. Create one, such as a newsletter, then subscribe contacts to it.'
            : 'No topics yet. An editor of the team can create one.',
        },
      ),
      edits &&
        buildForm(teamPath(team, 'topics'), 'Create topic', {
          title: 'Create a topic',
          folded: true,
          fields: [field('name', 'Name', { required: true, placeholder: 'Newsletter' })],
        }),
    ]),
  })
})

const create = action('editor', '/teams/:team/topics', async (by, { team, form }) => {
  const name = (form.get('name') ?? '').trim()
  await createTopic(by, team.id, { name })
  return redirect(teamPath(team, 'topics'), `The topic ${name} was created.`)
})

/** Lists the newest broadcasts to a topic, with a link to all broadcasts if there are more. */
async function broadcastsTo(id: string, { team, now }: TeamRequest, { database }: PageDeps) {
  const newest = await newestBroadcasts(database, team.id, BROADCASTS_SEARCHED)
  const found = newest.filter(({ topic_ids }) => topic_ids.includes(id))
  const isCut = found.length > BROADCASTS_SHOWN || newest.length === BROADCASTS_SEARCHED
  return buildTable(
    byStart(await withStats(database, team.id, found.slice(0, BROADCASTS_SHOWN))),
    (broadcast) => ({
      Name: text(broadcast.name, { href: teamPath(team, 'broadcasts', broadcast.id) }),
      Status: broadcastStateCell(broadcast),
      Sent: sentCell(broadcast),
      Opened: openedCell(broadcast),
      Start: time(startTime(broadcast), now, 'not started'),
    }),
    {
      title: 'Broadcasts',
      wrap: ['Name'],
      note: isCut
        ? `At most ${BROADCASTS_SHOWN}, from the newest ${BROADCASTS_SEARCHED} broadcasts of the team.`
        : undefined,
      next: isCut ? [{ href: teamPath(team, 'broadcasts'), label: 'All broadcasts' }] : undefined,
      empty: 'No broadcast uses this topic yet.',
    },
  )
}

async function newestSubscribers(id: string, { team, now }: TeamRequest, { database }: PageDeps) {
  const { rows } = await searchContacts(database, team.id, { topic: id }, { limit: CONTACTS_SHOWN })
  return buildTable(
    rows,
    (contact) => ({
      Contact: namedContactCell(contact, team),
      Status: status(contact.status),
      Added: time(contact.created_at, now),
    }),
    {
      title: 'Contacts',
      next:
        rows.length === 0 ? [] : [{ href: subscribersPath(team, id), label: 'All contacts with this topic' }],
      empty: 'No contact has this topic yet.',
      start: team.role === 'viewer' ? undefined : importLink(team),
    },
  )
}

function describeSubscribers(count: number, all: number): string {
  const share = count === 0 || all === 0 ? '' : `, ${percent(Math.min(1, count / all))} of all`
  return `${plural(count, 'contact')} with this topic${share}.`
}

/** Builds the actions of editors. The form that renames the topic is a section. */
const actions = (id: string, count: number, { team }: TeamRequest): Actions => ({
  links: [
    {
      href: `${teamPath(team, 'broadcasts', 'new')}?${new URLSearchParams({ topic: id })}`,
      label: 'Create a broadcast',
      main: count > 0,
    },
  ],
  forms: [button(teamPath(team, 'topics', id, 'delete'), 'Delete topic', { tone: 'danger' })],
})

const page = get('viewer', '/teams/:team/topics/:id', async (request, deps) => {
  const { team, params, now } = request
  const { database } = deps
  const topic = await findTopic(database, team.id, params.id)
  if (!topic) return redirect(teamPath(team, 'topics'), { tone: 'bad', text: NO_TOPIC })
  const { id, name } = topic
  const count = (await countSubscribers(database, team.id, [id])).get(id) ?? 0
  const all = (await readAccountRow(database, team.id))?.contacts_used ?? 0
  const edits = team.role !== 'viewer'
  return show({
    title: name,
    lead: describeSubscribers(count, all),
    back: { href: teamPath(team, 'topics'), label: 'Topics' },
    actions: edits ? actions(id, count, request) : undefined,
    sections: compact([
      // A team that was suspended in the meantime still shows the rejected form, to copy its text.
      (edits || team.suspended) &&
        buildForm(teamPath(team, 'topics', id, 'rename'), 'Save name', {
          title: 'Rename topic',
          folded: 'quiet',
          fields: [field('name', 'Name', { value: name, required: true })],
        }),
      await broadcastsTo(id, request, deps),
      await newestSubscribers(id, request, deps),
      buildFacts({ Created: time(topic.created_at, now), ID: text(id, { code: true, copy: true }) }),
    ]),
  })
})

const rename = action('editor', '/teams/:team/topics/:id/rename', async (by, { team, params, form }) => {
  const id = params.id
  const before = await findTopic(by.tx, team.id, id)
  const wanted = { id, name: keptOr(form.get('name') ?? '', before?.name) }
  await renameTopic(by, team.id, wanted)
  return redirect(teamPath(team, 'topics'), `The topic was renamed to ${wanted.name}.`)
})

const remove = action('editor', '/teams/:team/topics/:id/delete', async (by, { team, params }) => {
  await removeTopic(by, team.id, params.id)
  return redirect(teamPath(team, 'topics'), 'The topic was deleted.')
}).confirm(async ({ team, params }, { database }) => {
  const topic = requireFound(await findTopic(database, team.id, params.id), NO_TOPIC)
  const count = (await countSubscribers(database, team.id, [topic.id])).get(topic.id) ?? 0
  return {
    question: `Delete the topic ${topic.name}?`,
    answer: 'Delete topic',
    warning: `${plural(count, 'contact')} will no longer be subscribed to it. The contacts are kept.`,
    tone: 'danger',
  }
})

export const topicsPages = [list, create, page, rename, remove]
