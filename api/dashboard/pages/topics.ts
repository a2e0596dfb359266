/** What contacts can be subscribed to: topics with their subscribers, made, renamed and deleted. */

import { subscribersOf } from '../../../db/audience/contacts/topic-counts.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { createTopic, removeTopic, renameTopic } from '../../../db/audience/contacts/topics.ts'
import { number, plural, text, time } from '../drawn/cell.ts'
import { keptOr } from '../drawn/lines.ts'
import { inPerson } from '../served/act.ts'
import { act, get, post, some } from '../served/made.ts'
import { redirect, show, teamPath } from '../served/page.ts'

const list = get('viewer', '/teams/:team/topics', async ({ team, now }, { database }) => {
  const topics = await topicsOfTeam(database, team.id)
  const subscribers = await subscribersOf(
    database,
    team.id,
    topics.map(({ id }) => id),
  )
  const edits = team.role !== 'viewer'
  return show({
    title: 'Topics',
    lead: 'What your contacts can be subscribed to, and unsubscribe from one by one.',
    sections: some([
      {
        kind: 'table',
        columns: [
          { label: 'Name' },
          { label: 'Subscribers', number: true },
          { label: 'ID' },
          { label: 'Created' },
        ],
        rows: topics.map(({ id, name, created_at }) => ({
          cells: [
            text(name, edits ? { href: teamPath(team, 'topics', id) } : {}),
            number(subscribers.get(id) ?? 0, {
              href: `${teamPath(team, 'contacts')}?topic=${id}`,
            }),
            text(id, { code: true, copy: true }),
            time(created_at, now),
          ],
        })),
        empty: 'No topics yet: add one below, then subscribe contacts to it.',
      },
      edits && {
        kind: 'form',
        action: teamPath(team, 'topics'),
        method: 'post',
        submit: 'Add a topic',
        fields: [{ name: 'name', label: 'Name of a new topic', type: 'text', required: true }],
      },
    ]),
  })
})

const create = act('editor', '/teams/:team/topics', async (by, { team, form }) => {
  const name = (form.get('name') ?? '').trim()
  await createTopic(by, team.id, { name })
  return redirect(teamPath(team, 'topics'), `The topic ${name} is made.`)
})

const page = get('editor', '/teams/:team/topics/:id', async ({ team, params }, { database }) => {
  const topic = (await topicsOfTeam(database, team.id)).find(({ id }) => id === params.id)
  if (!topic) return redirect(teamPath(team, 'topics'), { tone: 'bad', text: 'There is no such topic.' })
  const count = (await subscribersOf(database, team.id, [topic.id])).get(topic.id) ?? 0
  const people = plural(count, 'contact')
  return show({
    title: topic.name,
    lead: `${people} subscribed.`,
    back: { href: teamPath(team, 'topics'), label: 'Topics' },
    sections: [
      {
        kind: 'form',
        action: teamPath(team, 'topics', topic.id, 'rename'),
        method: 'post',
        submit: 'Rename',
        fields: [{ name: 'name', label: 'Name', type: 'text', value: topic.name, required: true }],
      },
      {
        kind: 'actions',
        forms: [
          {
            action: teamPath(team, 'topics', topic.id, 'delete'),
            method: 'post',
            fields: [],
            submit: 'Delete',
            tone: 'danger',
            confirm: `Delete this topic, and take it off ${people}?`,
          },
        ],
      },
    ],
  })
})

const rename = post('editor', '/teams/:team/topics/:id/rename', async (request, deps) => {
  const { team, params, form } = request
  const id = params.id ?? ''
  const before = (await topicsOfTeam(deps.database, team.id)).find((topic) => topic.id === id)
  const wanted = { id, name: keptOr(form.get('name') ?? '', before?.name) }
  await inPerson(request, deps, (by) => renameTopic(by, team.id, wanted))
  return redirect(teamPath(team, 'topics'), `The topic is called ${wanted.name} now.`)
})

const remove = act('editor', '/teams/:team/topics/:id/delete', async (by, { team, params }) => {
  const id = params.id ?? ''
  await removeTopic(by, team.id, id)
  return redirect(teamPath(team, 'topics'), 'The topic is deleted.')
})

export const topicsPages = [list, create, page, rename, remove]
