/** The names, contacts and broadcasts of topics. */
import { sql } from 'slonik'
import { aBroadcast } from '../../support/broadcasts.ts'
import { after, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, database, team } = await world(t)
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const at = (path: string): string => `/teams/${team.id}/${path}`

t.test('renames and deletes a topic', async (t) => {
  for (const name of ['News', 'Offers']) await editor.post(at('topics'), { name })
  const page =
    /teams\/[^"]+\/topics\/[0-9a-f-]{36}(?=">Offers)/.exec((await editor.get(at('topics'))).html)?.[0] ?? ''
  shows(t, await after(editor, await editor.post(`/${page}/rename`, { name: 'Deals' })), 'Deals')
  t.equal((await editor.post(`/${page}/rename`, { name: 'News' })).status, 400, 'a name once')
  shows(t, await after(editor, await editor.post(`/${page}/delete`)), 'The topic was deleted.')
})

t.test('a topic lists its broadcasts', async (t) => {
  const { id, topic } = await aBroadcast(service, team)
  const { topic: other } = await aBroadcast(service, team)
  const link = `href="/dashboard${at(`broadcasts/${id}`)}"`
  const { html } = await editor.get(at(`topics/${topic}`))
  t.ok(html.includes(link))
  t.match(html, /<td class="main wrap self">/, 'long names wrap')
  t.notOk((await editor.get(at(`topics/${other}`))).html.includes(link))
})

t.test('a topic shows its contacts, and starts a broadcast to them', async (t) => {
  const own = await makeTeam(service, { domain: 'topic.test' })
  const writer = await signedIn(service, { team: own.id, role: 'editor' })
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const { id, topic, moved } = await aBroadcast(service, own)
  await moved({ opened: 3, delivered: 1 })
  const add = (email: string, body = {}) =>
    call('POST', '/v1/contacts', { key: own.key, body: { email, ...body } })
  await add('subscribed@example.org', { topic_ids: [topic], properties: { name: 'Ana Lind' } })
  await add('other@example.org')
  const path = `/teams/${own.id}/topics/${topic}`
  const page = await reader.get(path)
  shows(
    t,
    page,
    /1 contact with this topic, .* of all\. .*News sending 4 of 2 75\.0 % .* Ana Lind subscribed@example\.org subscribed /,
  )
  t.notMatch(textOf(page.html), /other@example\.org|Rename topic|Create a broadcast/)
  const begun = `/teams/${own.id}/broadcasts/new`
  t.match((await writer.get(path)).html, `href="/dashboard${begun}?topic&#x3D;${topic}"`)
  await writer.post(`/teams/${own.id}/templates`, {
    name: 'Spring',
    html: '<p>{{unsubscribe_url}}</p>',
    text: '',
  })
  const { html } = await writer.get(`${begun}?topic=${topic}`)
  const [, template_id = ''] = /<option value="([0-9a-f-]{36})"/.exec(html) ?? []
  const form = { ...formTo(html, begun), name: 'To it', template_id, from: 'a@topic.test', subject: 'Hi' }
  const sent = await writer.post(begun, form)
  const { body } = await call('GET', `/v1/broadcasts/${sent.location?.split('/').at(-1)}`, { key: own.key })
  t.match(body, { name: 'To it', topic_ids: [topic] })
  t.not(body.id, id)
})

t.test('a topic with many broadcasts lists the newest, and links to all', async (t) => {
  const own = await makeTeam(service, { domain: 'weekly.test' })
  const writer = await signedIn(service, { team: own.id, role: 'editor' })
  const { topic } = await aBroadcast(service, own)
  const ids = [(await aBroadcast(service, own)).id]
  while (ids.length < 20) ids.push((await aBroadcast(service, own)).id)
  await database.query(sql.unsafe`
    update broadcasts set topic_ids = ${sql.array([topic], 'uuid')} where team_id = ${own.id}`)
  const page = await writer.get(`/teams/${own.id}/topics/${topic}`)
  const listed = [...page.html.matchAll(/broadcasts\/([0-9a-f-]{36})"/g)].map(([, id]) => id)
  t.strictSame(listed, ids.toReversed())
  shows(t, page, /At most 20, .* All broadcasts/)
})
