/** Submitting a form unchanged changes nothing, whatever is stored. Tests every form with stored values. */

import { sql } from 'slonik'
import { EVERY_TYPE } from '../../../api/dashboard/pages/webhooks/parts.ts'
import { readContactColumns } from '../../../db/accounts/teams/teams.sql.ts'
import { addEndpoint, showEndpoint } from '../../../db/messages/webhooks/endpoints.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { livedIn } from '../../support/lived-in.ts'
import { startService } from '../../support/service.ts'
import t from '../../support/tap.ts'

const service = await startService(t, { publicUrl: 'http://localhost' })
const { database, call, deps } = service
const lived = await livedIn(service)
const { team } = lived
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const at = (...rest: string[]) => `/teams/${team.id}/${rest.join('/')}`

/** Texts that browsers, commas, colons and quotes could break. */
const ODD = [
  ' blanks ',
  'Paris, TX',
  'utm:source',
  'two\nlines',
  'cr\r\nlf',
  '"quoted"',
  '"',
  "it's <b>",
  '  ',
]

const { create, topic_id, contacts } = await broadcastingOf(service, team)
const [other] = [(await broadcastingOf(service, team)).topic_id]
const odd = (prefix: string) =>
  Object.fromEntries(ODD.map((text, index) => [`${prefix}${index}${text}`, text]))
await contacts(['odd'], { ...odd('p'), ' name ': 'x' })
const draft = await create({
  name: ' Spring\nnews ',
  subject: ' Hello {{name}} ',
  topic_ids: [other, topic_id],
  where: [
    { property: ' city\n', op: 'in', value: [...ODD, ''] },
    ...ODD.slice(0, 7).map((value) => ({ property: 'city', op: 'ne', value })),
    { property: 'city', op: 'eq', value: '' },
    { property: 'a:b', op: 'exists' },
  ],
  variables: { ...odd('v'), ...odd(':'), '': 'empty', e: '' },
  tags: [...ODD, ''],
  rate_per_minute: 60,
  send_at: new Date(Date.now() + 86_400_123).toISOString(),
})
await database.query(sql.unsafe`update topics set name = ' Spaced  news ' where id = ${other}`)
const endpoint = await database.transaction((tx) =>
  addEndpoint({ tx, now: deps.clock(), actor: 'ana', secrets: deps.secrets, allowed: [] }, team.id, {
    url: 'https://hooks.example.com/x?a=b%20c',
    name: ' Order system ',
    types: ['email.bounced', 'contact.suppressed', 'email.delivered'],
    domain: 'example.com',
  }),
)
await database.query(sql.unsafe`
  update template_versions set html = replace(html, E'\n', E'\r\n') || E'\r\n\n ', body_text = E'\n one\r\ntwo\rthree '
  where team_id = ${team.id}`)
await database.query(sql.unsafe`
  update templates set name = ' Invoice  reminder ' where id = ${lived.template}`)
await database.query(sql.unsafe`
  update template_drafts set html = replace(html, E'\n', E'\r\n'), body_text = E'\n one\r\ntwo' where team_id = ${team.id}`)
await database.query(sql.unsafe`
  update subscriptions set storage_gb = 2.5, send_rate_per_second = 0.25 where team_id = ${team.id}`)

/** Returns a team's rows of a table as text. */
const rowsOf = (table: string): Promise<readonly unknown[]> =>
  database.anyFirst(sql.unsafe`
    select to_jsonb(t)::text from ${sql.identifier([table])} t where to_jsonb(t) ->> 'team_id' = ${team.id} order by 1`)

const contact = (email: string) => at('contacts', encodeURIComponent(email))
const FORMS = [
  { page: contact('odd@example.org'), path: contact('odd@example.org'), table: 'contacts' },
  { page: contact(lived.recipient), path: contact(lived.recipient), table: 'contacts' },
  ...['message', 'audience', 'when'].map((step) => ({
    page: at('broadcasts', draft, `edit?step=${step}`),
    path: at('broadcasts', draft, 'edit'),
    table: 'broadcasts',
  })),
  { page: at('topics', other), path: at('topics', other, 'rename'), table: 'topics' },
  { page: at('webhooks', endpoint.id), path: at('webhooks', endpoint.id, 'set'), table: 'webhook_endpoints' },
  {
    page: at('webhooks', lived.webhook),
    path: at('webhooks', lived.webhook, 'set'),
    table: 'webhook_endpoints',
  },
  {
    page: at('templates', lived.template),
    path: at('templates', lived.template, 'draft'),
    table: 'template_drafts',
  },
  {
    page: at('templates', lived.template),
    path: at('templates', lived.template, 'rename'),
    table: 'templates',
  },
  { page: `/operator/teams/${team.id}`, path: `/operator/teams/${team.id}/plan`, table: 'subscriptions' },
]

t.test('saving an unchanged form changes no row', async (t) => {
  for (const { page, path, table } of FORMS) {
    const person = page.startsWith('/operator') ? operator : owner
    const before = await rowsOf(table)
    t.ok(before.length > 0, `${table} has rows`)
    const answer = await person.press(page, path)
    t.equal(answer.status, 303, `${path}: ${answer.html.slice(0, 400)}`)
    t.strictSame(await rowsOf(table), before, path)
  }
})

t.test("default columns aren't saved, and column names keep their spaces", async (t) => {
  const columns = () => readContactColumns(database, team.id)
  const save = (changes = {}) => owner.press(at('contacts'), at('contacts', 'columns'), changes)
  t.equal((await save()).status, 303)
  t.equal(await columns(), null)
  await save({ columns: '" name "\r\ncity' })
  t.strictSame(await columns(), [' name ', 'city'])
  await save()
  t.strictSame(await columns(), [' name ', 'city'])
  await save({ columns: '' })
  t.equal(await columns(), null)
})

t.test('changing one field only changes that field', async (t) => {
  const page = at('broadcasts', draft)
  const key = team.key
  const shown = async () => (await call('GET', `/v1/broadcasts/${draft}`, { key })).body
  const before = await shown()
  const fields = formTo((await owner.get(`${page}/edit`)).html, `${page}/edit`)
  const [tags = ''] = fields.tags ?? []
  await owner.press(`${page}/edit`, `${page}/edit`, { tags: `${tags}\r\nnew, one` })
  const { updated_at, ...after } = await shown()
  t.strictSame({ ...after, updated_at: before.updated_at }, { ...before, tags: [...before.tags, 'new, one'] })
  t.not(updated_at, before.updated_at)
})

t.test('a draft keeps a deleted topic until another is chosen', async (t) => {
  const gone = (await broadcastingOf(service, team)).topic_id
  const id = await create({ exclude_topic_ids: [gone] })
  await database.query(sql.unsafe`delete from topics where id = ${gone}`)
  const page = at('broadcasts', id)
  t.equal((await owner.press(`${page}/edit`, `${page}/edit`, { name: 'Renamed' })).status, 303)
  const { body } = await call('GET', `/v1/broadcasts/${id}`, { key: team.key })
  t.match(body, { name: 'Renamed', exclude_topic_ids: [gone] })
})

t.test('rejects a stale save of a broadcast, keeping the input', async (t) => {
  const id = await create({ name: 'Two editors' })
  const page = at('broadcasts', id)
  const form = async () => formTo((await owner.get(`${page}/edit`)).html, `${page}/edit`)
  const [mine, theirs] = [await form(), await form()]
  t.equal((await owner.post(`${page}/edit`, { ...mine, name: 'Mine' })).status, 303)
  const second = await owner.post(`${page}/edit`, { ...theirs, name: 'Theirs' })
  t.equal(second.status, 400)
  shows(t, second, /Someone else saved this draft while you were editing\. Your version is below\./)
  t.match(second.html, 'value="Theirs"')
  const again = formTo(second.html, `${page}/edit`)
  t.equal((await owner.post(`${page}/edit`, again)).status, 303, 'who has seen it may save')
  t.match((await call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body, { name: 'Theirs' })
})

t.test('only starts a broadcast as shown, otherwise shows the change', async (t) => {
  const place = await broadcastingOf(service, team)
  await place.contacts(['one'])
  const id = await place.create({ name: 'Bound' })
  const page = at('broadcasts', id)
  const stateOf = async () => (await call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body.state
  const send = async () => ({ ...formTo((await owner.get(page)).html, `${page}/send`), confirmed: 'yes' })
  const presses = async (fields: Record<string, string | string[]>, words: RegExp) => {
    const answer = await owner.post(`${page}/send`, fields)
    t.equal(answer.status, 409)
    shows(t, answer, words)
    t.equal(await stateOf(), 'draft')
    return { ...formTo(answer.html, `${page}/send`), confirmed: 'yes' }
  }
  const seen = await send()
  await call('PATCH', `/v1/broadcasts/${id}`, { key: team.key, body: { subject: 'Other' } })
  const second = await presses(seen, /Someone else changed this broadcast\. Review it, then try again\./)
  await place.contacts(['two'])
  const third = await presses(
    second,
    /The audience has changed\. It now has 2 contacts, not 1\. Review it, then try again\./,
  )
  await call('DELETE', '/v1/contacts/two@example.org', { key: team.key })
  const fourth = await presses(third, /The audience has changed\. It now has 1 contact, not 2\./)
  await presses({ confirmed: 'yes' }, /Someone else changed this broadcast\./)
  const { audience: _, ...without } = fourth as Record<string, string | string[]>
  for (const odd of [without, { ...without, audience: 'abc' }])
    t.equal((await owner.post(`${page}/send`, odd)).status, 400, 'the audience binds, whatever is left out')
  t.equal((await owner.post(`${page}/send`, fourth)).status, 303)
  t.equal(await stateOf(), 'sending')
  await call('POST', `/v1/broadcasts/${id}/cancel`, { key: team.key })
  const again = formTo((await owner.get(`${page}/again`)).html, `${page}/again`)
  await place.contacts(['three'])
  const refused = await owner.post(`${page}/again`, { ...again, confirmed: 'yes' })
  t.equal(refused.status, 409)
  shows(t, refused, /The audience has changed\. It now has 2 contacts, not 1\./)
})

t.test("concurrent confirmations rotate a webhook's secret only once", async (t) => {
  const page = at('webhooks', lived.webhook)
  const sealed = (column: 'secret' | 'previous_secret') =>
    database.oneFirst(sql.unsafe`
      select encode(${sql.identifier([column])}, 'hex') from webhook_endpoints where id = ${lived.webhook}`)
  const known = await sealed('secret')
  const form = { ...formTo((await owner.get(page)).html, `${page}/rotate`), confirmed: 'yes' }
  const presses = await Promise.all([1, 2].map(() => owner.post(`${page}/rotate`, form)))
  t.strictSame(presses.map(({ status }) => status).sort(), [303, 409])
  t.equal(await sealed('previous_secret'), known, 'the one that servers know also signs')
  const refused = presses.find(({ status }) => status === 409)
  if (refused)
    shows(t, refused, /Someone else has rotated this webhook's secret since this page was opened\./)
  t.equal((await owner.press(page, `${page}/rotate`)).status, 303)
})

t.test("a stale webhook form doesn't undo another owner's changes", async (t) => {
  const page = at('webhooks', endpoint.id)
  // The most that a form can show.
  t.equal((await owner.press(page, `${page}/set`, { types: [...EVERY_TYPE] })).status, 303)
  const form = formTo((await owner.get(page)).html, `${page}/set`)
  const narrowed = { types: 'email.bounced', domain: 'example.com' }
  t.equal(
    (await owner.press(page, `${page}/set`, { ...narrowed, url: 'https://other.example.com/x' })).status,
    303,
  )
  t.equal((await owner.post(`${page}/set`, { ...form, name: 'Renamed' })).status, 303)
  t.match((await owner.get(page)).html, /<h1[^>]*>Renamed/)
  t.match(await database.transaction((tx) => showEndpoint(tx, team.id, endpoint.id)), {
    url: 'https://other.example.com/x',
    name: 'Renamed',
    types: ['email.bounced'],
    domain: 'example.com',
  })
  const types = Array.from({ length: EVERY_TYPE.length + 1 }, () => '*')
  const shown = JSON.stringify({ url: '', name: '', types, domain: null })
  await owner.post(`${page}/set`, { ...form, shown, types, domain: '' })
  t.match(await database.transaction((tx) => showEndpoint(tx, team.id, endpoint.id)), {
    types: ['*'],
    domain: null,
  })
})
