/** Lists topics with their subscribers. Creates, renames and deletes them. */

import { countSubscribers } from '../../../db/audience/contacts/topic-counts.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { createTopic, removeTopic, renameTopic } from '../../../db/audience/contacts/topics.ts'
import { RequestError } from '../../../db/errors.ts'
import { newestBroadcasts } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { number, plural, text, time } from '../components/cell.ts'
import { keptOr } from '../components/lines.ts'
import type { Section } from '../components/section.ts'
import { action, buildFacts, buildForm, buildTable, button, compact, field, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortable } from '../server/sort.ts'
import { broadcastStateCell, startTime } from './broadcasts.ts'

const list = get('viewer', '/teams/:team/topics', async (request, { database }) => {
  const { team, now } = request
  const topics = await topicsOfTeam(database, team.id)
  const ids = topics.map(({ id }) => id)
  const subscribers = await countSubscribers(database, team.id, ids)
  const edits = team.role !== 'viewer'
  return show({
    title: 'Topics',
    lead: 'Contacts can subscribe to topics, and unsubscribe from each one separately.',
    sections: compact([
      sortable(
        request,
        buildTable(
          topics,
          ({ id, name, created_at }) => ({
            Name: text(name, edits ? { href: teamPath(team, 'topics', id) } : {}),
            Subscribers: number(subscribers.get(id) ?? 0, {
              href: `${teamPath(team, 'contacts')}?topic=${id}`,
            }),
            // Shows the last characters, because IDs of the same minute have the same start.
            ID: text(`…${id.slice(-8)}`, { code: true, tip: id, copy: true, copied: id }),
            Created: time(created_at, now),
          }),
          {
            empty: edits
              ? 'No topics yet. Add one, such as a newsletter, then subscribe contacts to it.'
              : 'No topics yet. An editor of the team can add one.',
          },
        ),
      ),
      edits &&
        buildForm(
          teamPath(team, 'topics'),
          'Add topic',
          [field('name', 'Name', { required: true, placeholder: 'Newsletter' })],
          { title: 'Add a topic', folded: true },
        ),
    ]),
  })
})

const create = action('editor', '/teams/:team/topics', async (by, { team, form }) => {
  const name = (form.get('name') ?? '').trim()
  await createTopic(by, team.id, { name })
  return redirect(teamPath(team, 'topics'), `The topic ${name} was created.`)
})

/** Maximum number of broadcasts that are searched for those to a topic. */
const BROADCASTS_SEARCHED = 100
const BROADCASTS_SHOWN = 20

/** Lists the newest broadcasts to a topic, with a link to all broadcasts if there are more. */
async function broadcastsTo(
  id: string,
  { team, now }: TeamRequest,
  { database }: PageDeps,
): Promise<Section> {
  const newest = await newestBroadcasts(database, team.id, BROADCASTS_SEARCHED)
  const found = newest.filter(({ topic_ids }) => topic_ids.includes(id))
  const isCut = found.length > BROADCASTS_SHOWN || newest.length === BROADCASTS_SEARCHED
  return buildTable(
    found.slice(0, BROADCASTS_SHOWN),
    (broadcast) => ({
      State: broadcastStateCell(broadcast),
      Name: text(broadcast.name, { href: teamPath(team, 'broadcasts', broadcast.id) }),
      Start: time(startTime(broadcast), now, 'not started'),
    }),
    {
      title: 'Broadcasts',
      main: 'Name',
      note: isCut
        ? `At most ${BROADCASTS_SHOWN}, from the newest ${BROADCASTS_SEARCHED} broadcasts of the team.`
        : undefined,
      next: isCut ? [{ href: teamPath(team, 'broadcasts'), label: 'All broadcasts' }] : undefined,
      empty: 'No broadcast uses this topic yet.',
    },
  )
}

const page = get('editor', '/teams/:team/topics/:id', async (request, deps) => {
  const { team, params, now } = request
  const { database } = deps
  const topic = (await topicsOfTeam(database, team.id)).find(({ id }) => id === params.id)
  if (!topic) return redirect(teamPath(team, 'topics'), { tone: 'bad', text: "This topic doesn't exist." })
  const count = (await countSubscribers(database, team.id, [topic.id])).get(topic.id) ?? 0
  const people = plural(count, 'contact')
  return show({
    title: topic.name,
    lead: count === 1 ? '1 contact is subscribed.' : `${people} are subscribed.`,
    back: { href: teamPath(team, 'topics'), label: 'Topics' },
    actions: {
      links: [{ href: `${teamPath(team, 'contacts')}?topic=${topic.id}`, label: 'Subscribers' }],
      forms: [button(teamPath(team, 'topics', topic.id, 'delete'), 'Delete topic', { tone: 'danger' })],
    },
    sections: [
      buildForm(
        teamPath(team, 'topics', topic.id, 'rename'),
        'Save name',
        [field('name', 'Name', { value: topic.name, required: true })],
        { title: 'Rename topic', folded: 'quiet' },
      ),
      await broadcastsTo(topic.id, request, deps),
    ],
    aside: [
      buildFacts({
        Subscribers: number(count, {
          number: false,
          href: `${teamPath(team, 'contacts')}?topic=${topic.id}`,
        }),
        Created: time(topic.created_at, now),
        ID: text(topic.id, { code: true, copy: true }),
      }),
    ],
  })
})

const rename = action('editor', '/teams/:team/topics/:id/rename', async (by, { team, params, form }) => {
  const id = params.id
  const before = (await topicsOfTeam(by.tx, team.id)).find((topic) => topic.id === id)
  const wanted = { id, name: keptOr(form.get('name') ?? '', before?.name) }
  await renameTopic(by, team.id, wanted)
  return redirect(teamPath(team, 'topics'), `The topic was renamed to ${wanted.name}.`)
})

const remove = action(
  'editor',
  '/teams/:team/topics/:id/delete',
  async (by, { team, params }) => {
    await removeTopic(by, team.id, params.id)
    return redirect(teamPath(team, 'topics'), 'The topic was deleted.')
  },
  async ({ team, params }, { database }) => {
    const topic = (await topicsOfTeam(database, team.id)).find(({ id }) => id === params.id)
    if (!topic) throw new RequestError('not_found', "This topic doesn't exist.")
    const count = (await countSubscribers(database, team.id, [topic.id])).get(topic.id) ?? 0
    return {
      question: `Delete the topic ${topic.name}?`,
      answer: 'Delete topic',
      warning: `${plural(count, 'contact')} will no longer be subscribed to it. The contacts are kept.`,
      tone: 'danger',
    }
  },
)

export const topicsPages = [list, create, page, rename, remove]
