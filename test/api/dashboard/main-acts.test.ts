/** Main actions of pages of messages, contacts and templates. Viewers have none. */
import { sql } from 'slonik'
import { createTopic } from '../../../db/audience/contacts/topics.ts'
import { mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { anEmail, byCli, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate } from '../../support/whatsapp.ts'

const { service, call, database, team } = await world(t)
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const at = (path: string): string => `/teams/${team.id}/${path}`

const contact = (email: string, properties = {}) =>
  call('POST', '/v1/contacts', { key: team.key, body: { email, properties } })

t.test('each page has one main action', async (t) => {
  await contact('ana@example.org')
  await contact('gone@example.org')
  await database.query(sql.unsafe`
    update contacts set suppression = 'bounced' where team_id = ${team.id} and email = 'gone@example.org'`)
  await makeTemplate(service, team.id)
  const { location } = await editor.post(at('templates'), { name: 'Acts', html: '<p>Hi</p>', text: '' })
  const template = location ?? ''
  const acts = async (path: string, ...all: string[]) => {
    t.strictSame(mainActs(await editor.get(path)), all, path)
    t.strictSame(mainActs(await owner.get(path)), all, `${path}, for an owner`)
    t.strictSame(mainActs(await viewer.get(path)), [], `${path}, for a viewer`)
  }
  await acts(at('emails'), 'Send a test email')
  await acts(at('contacts'), 'Add a contact')
  await acts(at('contacts/ana%40example.org'))
  await acts(at('contacts/gone%40example.org'))
  await acts(at('contacts/nobody%40example.org'), 'Add to contacts')
  const topic = await database.transaction((tx) => createTopic(byCli(tx), team.id, { name: 'Empty' }))
  await acts(at(`topics/${topic.id}`))
  const { html: empty } = await editor.get(at(`topics/${topic.id}`))
  t.match(empty, /class="button" href="[^"]*contacts\/import">/, 'the next step is to add some')
  await contact('reader@example.org')
  await database.query(sql.unsafe`
    update contacts set topic_ids = array[${topic.id}::uuid] where team_id = ${team.id} and email = 'reader@example.org'`)
  await acts(at(`topics/${topic.id}`), 'Create a broadcast')
  await database.query(sql.unsafe`delete from topics where id = ${topic.id}`)
  await acts(at('templates'), 'Create a template')
  await acts(at('whatsapp-templates'))
  await acts(template, 'Send a test')
  await editor.press(template, `${template}/draft`, { html: '<p>Ho</p>' })
  await acts(template, 'Review changes')
  const { html } = await editor.get(template)
  const places = [
    '<h2>Preview</h2>',
    '<iframe',
    '<h2>Editor</h2>',
    '<h2>The last 30 days</h2>',
    '<h2>Versions</h2>',
  ]
  const found = places.map((place) => html.indexOf(place))
  t.notOk(found.includes(-1), 'each is on the page')
  const inOrder = found.toSorted((one, other) => one - other)
  t.strictSame(found, inOrder, 'the preview comes first, on a phone, too')
  const templates = await editor.get(at('templates'))
  shows(t, templates, /Create a template It is published immediately, and you can send it by its ID/)
})

t.test("an address that isn't a contact has a page", async (t) => {
  const send = (body: Record<string, unknown>) =>
    call('POST', '/v1/emails', { key: team.key, body: anEmail(body) })
  const { body } = await send({ to: ['Una <una@stranger.test>'], subject: 'First' })
  await send({ to: ['una@stranger.test', 'ana@example.org'], subject: 'Second' })
  const path = at('contacts/una%40stranger.test')
  const email = await viewer.get(at(`emails/${body.id}`))
  t.match(email.html, `<a href="/dashboard${path}">`)
  shows(t, email, /To Una <una@stranger\.test> not a contact/)
  const page = await viewer.get(path)
  t.equal(page.status, 404)
  shows(t, page, /una@stranger\.test not a contact This address isn’t a contact.* Second .*First/)
  t.notMatch(page.html, 'Add to contacts')
  const added = await editor.press(path, at('contacts'))
  t.match(added, { status: 303, location: path })
  shows(t, await editor.get(path), /una@stranger\.test was added\..*subscribed.*Second .*First/)
  t.notMatch(textOf((await viewer.get(at(`emails/${body.id}`))).html), 'not a contact')
  const odd = await viewer.get(at('contacts/nonsense'))
  t.equal(odd.status, 404)
  t.notMatch(odd.html, '<table')
})

t.test('an email that waits or has arrived has no main action', async (t) => {
  const { body } = await call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  const path = at(`emails/${body.id}`)
  t.strictSame(mainActs(await editor.get(path)), [], 'while it waits')
  shows(t, await editor.get(path), 'Try now')
  await database.query(sql.unsafe`
    update email_states set status = 'delivered', provider_message_id = 'x' where id = ${body.id}`)
  const page = await editor.get(path)
  t.strictSame(mainActs(page), [])
  t.match(page.html, /<summary class="button quiet">Send to a corrected address/)
})

t.test('properties are sorted by name, ignoring case', async (t) => {
  await contact('order@example.org', { Umlaut: 'a', nr: 'b', Ähre: 'c', Notiz: 'd', 'Kunde seit': 'e' })
  const page = await viewer.get(at('contacts/order%40example.org'))
  shows(t, page, /Properties Ähre c Kunde seit e Notiz d nr b Umlaut a/)
})

t.test("a contact's page has its name, two buttons, a menu", async (t) => {
  await contact('named@example.org', { vip: 'yes', 'Last name': 'Mustermann', first_name: 'Erika' })
  const path = at('contacts/named%40example.org')
  const page = await viewer.get(path)
  shows(t, page, /Erika Mustermann subscribed named@example\.org .* first_name .* Last name .* vip/)
  const labelsIn = (html: string) => [...html.matchAll(/<button[^>]*>([^<]+)/g)].map(([, label]) => label)
  const { html } = await owner.get(path)
  const [, row = ''] = /<div class="row" id="buttons">([\s\S]*?)<details/.exec(html) ?? []
  t.strictSame(labelsIn(row), ['Unsubscribe'])
  const [, menu = ''] = /<details class="menu more"[^>]*>([\s\S]*?)<\/details>/.exec(html) ?? []
  t.strictSame(labelsIn(menu), ['Export personal data', 'Delete contact', 'Erase personal data'])
  t.match(html, 'name="remove" value="&quot;vip&quot;"')
  t.match(html, /<h2>Properties<\/h2>[\s\S]*<button class="quiet">Save changes</, 'in their card')
  t.match(html, /<h2>Messages<\/h2>/)
})

t.test('a single entry of a menu is a quiet button', async (t) => {
  const path = at('contacts')
  const { html } = await viewer.get(path)
  t.match(html, /<a class="button quiet" href="[^"]*contacts\.csv[^"]*">Export as CSV</)
  t.notMatch(html, 'id="more"')
  t.match((await editor.get(path)).html, 'id="more"')
})

t.test('an import explains its choices, its rate and remaining time', async (t) => {
  const file = ['email,city', ...Array.from({ length: 40 }, (_, nth) => `p${nth}@pace.test,Graz`)].join('\n')
  const path = (await editor.upload(at('contacts/import'), 'pace.csv', file)).location ?? ''
  shows(
    t,
    await editor.get(path),
    /Their status and topics are kept\. Keep properties that aren’t in the file Delete properties that/,
  )
  for (const page of [path, `${path}/check`])
    shows(t, await editor.get(page), /No contact gets a topic\. .* Create a topic/)
  const topic = await database.transaction((tx) => createTopic(byCli(tx), team.id, { name: 'Pace' }))
  shows(t, await editor.get(`${path}/check`), /No contact gets a topic\. .* Choose topics/)
  const columns = await editor.get(path)
  shows(t, columns, /File Columns Check Import .*No contact gets a topic/)
  t.match((await editor.get(`${path}/check`)).html, `<a href="/dashboard${path}">Columns</a>`, 'a step back')
  shows(t, columns, /Subscribe everyone to Pace Broadcasts only reach contacts with a topic/)
  await editor.press(path, path, { topic_ids: topic.id })
  for (const page of [path, `${path}/check`])
    t.notMatch(textOf((await editor.get(page)).html), 'No contact gets a topic')
  await editor.post(`${path}/start`)
  const id = path.split('/').at(-1) ?? ''
  await database.query(sql.unsafe`
    update contact_imports set records = 40, created = 10 where team_id = ${team.id} and id = ${id}`)
  await database.query(sql.unsafe`update background_jobs set total = 40 where id = ${id}`)
  t.notMatch(textOf((await editor.get(path)).html), /a minute/, 'too early to tell')
  await database.query(sql.unsafe`
    update background_jobs set begun_at = now() - interval '2 minutes' where id = ${id}`)
  const page = await editor.get(path)
  shows(t, page, /Being imported 10 of 40 .*About 5 records a minute, done in about [56] minutes/)
})
