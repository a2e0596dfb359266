/** The forms, list, columns and CSV of contacts. */
import { createTopic } from '../../../db/audience/contacts/topics.ts'
import { leaveTopics } from '../../../db/audience/subscription/subscription.ts'
import { after, shows, signedIn } from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { formTo } from '../../support/forms.ts'
import { hold } from '../../support/held.ts'
import { lockWaits } from '../../support/rows.ts'
import { byCli, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { service, call, database, team, lastEntry } = await world(t)
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const at = (path: string): string => `/teams/${team.id}/${path}`

t.test('adds, finds, changes and deletes a contact', async (t) => {
  await editor.post(at('topics'), { name: 'News' })
  const [topic = ''] = /(?<=topics\/)[0-9a-f-]{36}/.exec((await editor.get(at('topics'))).html) ?? []
  const form = { email: 'Ana@example.org', properties: 'name: Ana\ncity: Graz', topic_ids: topic }
  const page = await after(editor, await editor.post(at('contacts'), form))
  shows(t, page, /Ana@example\.org was added.*Ana subscribed Ana@example\.org.*Graz.*News/)
  t.match(await lastEntry(), { action: 'contact.create', actor: editor.email })
  shows(t, await viewer.get(`${at('contacts')}?q=ana&status=subscribed&topic=${topic}`), 'Ana@example.org')
  shows(t, await viewer.get(at('topics')), /News 1 never /)
  const path = at('contacts/ana%40example.org')
  shows(t, await after(editor, await editor.post(path, { 'name.0': '"name"', 'value.0': 'Anna' })), /Anna/)
  shows(t, await editor.get(path), / No messages yet\. Messages to phone numbers also appear here/)
  t.match((await editor.get(path)).html, /<button class="danger">Delete contact</)
  shows(t, await after(editor, await editor.post(`${path}/unsubscribe`)), /Anna unsubscribed/)
  shows(t, await after(editor, await editor.post(`${path}/resubscribe`)), /Anna subscribed/)
  shows(t, await after(editor, await editor.post(`${path}/delete`)), 'The contact is deleted.')
  t.equal((await editor.get(path)).status, 404)
})

t.test('saving a contact unchanged changes nothing', async (t) => {
  const properties = {
    'utm:source': ' mail: spring ',
    lines: '\n one\r\ntwo\rthree\n\n',
    empty: '',
    'a name\nof two lines, with "quotes" <b>': '<script>&amp;',
    __proto: 'x',
  }
  const email = 'kept@example.org'
  const { body } = await service.call('POST', '/v1/contacts', { key: team.key, body: { email, properties } })
  const path = at(`contacts/${encodeURIComponent(email)}`)
  const read = async () => (await service.call('GET', `/v1/contacts/${email}`, { key: team.key })).body
  const form = formTo((await editor.get(path)).html, path)
  shows(t, await after(editor, await editor.post(path, form)), 'No changes to save.')
  t.strictSame(await read(), body)
  const [field = ''] = Object.entries(form).find(([, [value]]) => value === '"utm:source"') ?? []
  const more = {
    ...form,
    remove: '"empty"',
    [field.replace('name', 'value')]: 'web',
    'new_name.0': 'city',
    'new_value.0': ' Graz ',
  }
  await editor.post(path, more)
  const { empty: _, ...kept } = properties
  t.strictSame((await read()).properties, { ...kept, 'utm:source': 'web', city: ' Graz ' })
  t.equal((await editor.post(path, { ...form, 'new_name.0': 'lines' })).status, 400)
  t.equal((await editor.post(path, { ...form, 'new_value.0': 'x' })).status, 400)
  t.equal((await editor.post(path, { ...form, topic_ids: 'x' })).status, 400)
  await editor.post(`${path}/delete`)
})

t.test("saving a contact keeps others' changes made since", async (t) => {
  const key = team.key
  const [left, got] = await Promise.all(
    ['To leave', 'To get'].map((name) =>
      database.transaction((tx) => createTopic(byCli(tx), team.id, { name })),
    ),
  )
  const email = 'moved@example.org'
  const properties = { plan: 'free', city: 'Graz', old: 'x' }
  const topic_ids = [left?.id ?? '']
  await service.call('POST', '/v1/contacts', { key, body: { email, properties, topic_ids } })
  const path = at(`contacts/${encodeURIComponent(email)}`)
  const form = formTo((await editor.get(path)).html, path)
  await service.call('POST', '/v1/marketing/unsubscribe', { key, body: { email, topic_ids } })
  const body = { properties: { plan: 'pro', city: 'Graz', since: '2026' }, topic_ids: [got?.id] }
  await service.call('PATCH', `/v1/contacts/${email}`, { key, body })
  shows(t, await after(editor, await editor.post(path, form)), 'No changes to save.')
  const [field = ''] = Object.entries(form).find(([, [value]]) => value === '"city"') ?? []
  await editor.post(path, {
    ...form,
    [field.replace('name', 'value')]: 'Linz',
    'new_name.0': 'lang',
    'new_value.0': 'de',
  })
  const { body: now } = await service.call('GET', `/v1/contacts/${email}`, { key })
  t.strictSame(now.properties, { plan: 'pro', city: 'Linz', since: '2026', lang: 'de' })
  t.strictSame(now.subscribed_topic_ids, [got?.id], 'who has left a topic is not in it again')
  const fresh = formTo((await editor.get(path)).html, path)
  await editor.post(path, { ...fresh, topic_ids })
  const subscribed = (await service.call('GET', `/v1/contacts/${email}`, { key })).body.subscribed_topic_ids
  t.strictSame(subscribed, topic_ids)
  const back = formTo((await editor.get(path)).html, path)
  const by = { now: new Date(), actor: 'cli' }
  const commit = await hold(t, database, (tx) =>
    leaveTopics({ ...by, tx }, team.id, email, { topic_ids, by: 'api' }),
  )
  const pressed = editor.post(path, { ...back, 'new_name.0': 'late', 'new_value.0': 'yes' })
  await until('the press waits for who leaves', async () => (await lockWaits(service)) > 0)
  await commit()
  t.equal((await pressed).status, 303)
  t.match((await service.call('GET', `/v1/contacts/${email}`, { key })).body, {
    properties: { late: 'yes' },
    subscribed_topic_ids: EMPTY,
  })
  await editor.post(`${path}/delete`)
})

t.test("a rejected contact form keeps input and others' changes", async (t) => {
  const key = team.key
  const email = 'redrawn@example.org'
  const properties = { plan: 'free', city: 'Graz' }
  await service.call('POST', '/v1/contacts', { key, body: { email, properties } })
  const path = at(`contacts/${encodeURIComponent(email)}`)
  const form = formTo((await editor.get(path)).html, path)
  await service.call('PATCH', `/v1/contacts/${email}`, {
    key,
    body: { properties: { ...properties, age: '7' } },
  })
  const [field = ''] = Object.entries(form).find(([, [value]]) => value === '"plan"') ?? []
  const typed = { ...form, [field.replace('name', 'value')]: 'pro', 'new_name.0': 'x'.repeat(129) }
  const refused = await editor.post(path, typed)
  t.equal(refused.status, 400)
  await editor.post(path, { ...formTo(refused.html, path), 'new_name.0': '' })
  const { body } = await service.call('GET', `/v1/contacts/${email}`, { key })
  t.strictSame(body.properties, { plan: 'pro', city: 'Graz', age: '7' })
  await editor.post(`${path}/delete`)
})

t.test('the CSV has the matching contacts', async (t) => {
  await editor.post(at('topics'), { name: 'Sales, EU' })
  const topics = (await editor.get(at('topics'))).html
  const topic = /topics\/([0-9a-f-]{36})">Sales, EU/.exec(topics)?.[1] ?? ''
  await editor.post(at('contacts'), { email: 'cmd@example.org', properties: 'city: Graz', topic_ids: topic })
  await editor.post(at('contacts'), { email: 'other@example.org' })
  const file = await viewer.get(`${at('contacts.csv')}?q=cmd`)
  const disposition = file.headers.get('content-disposition')
  t.match(disposition, /^attachment; filename="contacts-\d{4}-\d\d-\d\d-\d{4}\.csv"$/)
  const lines = file.html.trim().split('\r\n')
  t.equal(lines.length, 2)
  t.match(lines[1], /^cmd@example\.org,subscribed,"Sales, EU",.*"\{""city"":""Graz""\}"$/)
  t.equal((await viewer.get(at('contacts.csv'))).html.trim().split('\r\n').length, 3)
})

t.test('shows errors at the form and keeps the input', async (t) => {
  const refused = await editor.post(at('contacts'), { email: 'no address', properties: 'name: Ana' })
  t.equal(refused.status, 400)
  shows(t, refused, 'must be an email address')
  t.match(refused.html, /value="no address"/)
  t.match(refused.html, /<details class="act" id="[^"]+" open>/)
  const full = await makeTeam(service, { plan: 'free', contact_limit: 0, domain: 'full.test' })
  const person = await signedIn(service, { team: full.id, role: 'editor' })
  t.equal((await person.post(`/teams/${full.id}/contacts`, { email: 'a@example.org' })).status, 402)
})

t.test('finds contacts by part of an address or property', async (t) => {
  const other = await makeTeam(service, { domain: 'found.test' })
  const reader = await signedIn(service, { team: other.id, role: 'viewer' })
  const list = (query = '') => reader.get(`/teams/${other.id}/contacts${query}`)
  const people = [
    { email: 'erika@found.test', properties: { name: 'Erika Mustermann', city: 'Graz', Status: 'gold' } },
    { email: 'ben@found.test', properties: { name: 'Ben', city: 'Linz', Status: 'iron' } },
    { email: 'graz@found.test', properties: { name: 'Office' } },
  ]
  for (const body of people) await call('POST', '/v1/contacts', { key: other.key, body })
  const all = await list()
  shows(t, all, /Contacts 3 Export as CSV/)
  shows(
    t,
    all,
    /Contact Status city Topics Added Office graz@found\.test subscribed – .* Ben ben@found\.test subscribed Linz .* Erika Mustermann erika@found\.test subscribed Graz/,
  )
  const found = async (query: string) => {
    const { html } = await list(query)
    return people.filter(({ email }) => html.includes(`/contacts/${encodeURIComponent(email)}`)).length
  }
  t.equal(await found('?q=found.test'), 3)
  t.equal(await found('?q=mustermann'), 1, 'no address has it: a word of the properties')
  t.equal(await found('?q=graz'), 1, 'some address has it')
  t.equal(await found('?q=Linz+ben'), 1, 'each of the words')
  t.equal(await found('?q=Linz+erika'), 0)
  t.equal(await found('?q=li'), 1, 'two letters')
  t.equal(await found('?q=mustermann&status=bounced'), 0)
  shows(t, await list('?q=nobody'), 'No contact matches.')
})

t.test('an editor chooses the columns of contacts for the team', async (t) => {
  const other = await makeTeam(service, { domain: 'columns.test' })
  const path = `/teams/${other.id}/contacts`
  const properties = { name: 'Ana', city: 'Graz', plan: 'gold' }
  await call('POST', '/v1/contacts', { key: other.key, body: { email: 'ana@columns.test', properties } })
  const reader = await signedIn(service, { team: other.id, role: 'viewer' })
  const chooser = await signedIn(service, { team: other.id, role: 'editor' })
  const choose = (columns: string) => chooser.post(`${path}/columns`, { columns })
  const OWN_CHOICE =
    /By default, the most frequent properties of the listed contacts are shown\. With more than 2/
  shows(t, await chooser.get(path), OWN_CHOICE)
  t.match(await choose('plan\r\n\r\nno longer there\r\nplan'), { status: 303 })
  shows(t, await reader.get(path), /Contact Status plan no longer there Topics Added .* gold –/)
  const { html } = await chooser.get(path)
  t.match(html, />\s*plan\nno longer there<\/textarea>/)
  t.notMatch(html, OWN_CHOICE, 'somebody has chosen them')
  t.notMatch((await reader.get(path)).html, 'Save columns')
  const many = await choose('a\nb\nc\nd\ne')
  shows(t, many, /columns must have at most 4 properties/i)
  t.match(
    many.html,
    /<details class="act" id="[^"]+" open>(?:(?!<\/details>)[\s\S])*>\na\nb\nc\nd\ne<\/textarea>/,
    'what was typed',
  )
  shows(t, await choose('x'.repeat(129)), /columns must have at most 128 characters each/i)
  await choose('name\ncity\nplan')
  shows(
    t,
    await reader.get(path),
    /Contact Status city plan Added Ana ana@columns\.test subscribed Graz gold/,
  )
  await choose('2024\nname\n7')
  shows(t, await reader.get(path), /Contact Status 2024 7 Added/)
  await choose('')
  shows(t, await reader.get(path), /Contact Status (city|plan) Topics Added/)
})

t.test('short properties are never cut in the list', async (t) => {
  const own = await makeTeam(service, { domain: 'columns.test' })
  const reader = await signedIn(service, { team: own.id, role: 'editor' })
  const list = `/teams/${own.id}/contacts`
  const properties = { phone: '+436641234500', plan: 'gold', city: 'x'.repeat(16), note: 'x'.repeat(17) }
  await call('POST', '/v1/contacts', { key: own.key, body: { email: 'a@example.org', properties } })
  await reader.post(`${list}/columns`, { columns: 'note\nphone\ncity\nplan', shown: '[]' })
  const { html } = await reader.get(list)
  const cells = [...html.matchAll(/<td class="([^"]*)"[^>]*><div[^>]*>([^<]*)</g)]
  const isCut = (value: string) => cells.find(([, , text]) => text === value)?.[1]?.includes('wide')
  t.strictSame(Object.values(properties).map(isCut), [false, false, true, true], 'the city has no space left')
})
