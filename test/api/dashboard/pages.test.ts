/** Pages of contacts, topics, domains, keys and members. templates.test.ts has the templates. */
import { sql } from 'slonik'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { SCOPES } from '../../../db/accounts/credentials/credentials.sql.ts'
import { createTopic } from '../../../db/audience/contacts/topics.ts'
import { leaveTopics } from '../../../db/audience/subscription/subscription.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { after, type Seen, shows, signedIn, textOf, visitor } from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { formTo } from '../../support/forms.ts'
import { hold } from '../../support/held.ts'
import { lockWaits } from '../../support/rows.ts'
import { anEmail, byCli, makeTeam, startService, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const dns = new Map<string, string[]>()
/** The number of lookups, and the lead of the clock in milliseconds. */
const dnsState = { asked: 0, ahead: 0 }
/** Names whose name server doesn't respond. */
const silent = new Set<string>()
const { service, call, database, team } = await world(t, {
  clock: () => new Date(Date.now() + dnsState.ahead),
  dashboard: {
    lookupTxt: (name) => {
      dnsState.asked += 1
      return silent.has(name) ? new Promise(() => {}) : Promise.resolve(dns.get(name) ?? [])
    },
    zoneOf: async () => 'example.net',
    returnDomain: 'bounces.example.com',
  },
})
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const at = (path: string): string => `/teams/${team.id}/${path}`
const lastDeed = async () => (await auditEntries(database, { team: team.id, limit: 1 }))[0]

t.test('adds, finds, changes and deletes a contact', async (t) => {
  await editor.post(at('topics'), { name: 'News' })
  const [topic = ''] = /(?<=topics\/)[0-9a-f-]{36}/.exec((await editor.get(at('topics'))).html) ?? []
  const form = { email: 'Ana@example.org', properties: 'name: Ana\ncity: Graz', topic_ids: topic }
  const page = await after(editor, await editor.post(at('contacts'), form))
  shows(t, page, /Ana@example\.org was added.*Ana subscribed Ana@example\.org.*Graz.*News/)
  t.match(await lastDeed(), { action: 'contact.create', actor: editor.email })
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
  t.strictSame(
    (await service.call('GET', `/v1/contacts/${email}`, { key })).body.subscribed_topic_ids,
    topic_ids,
  )
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
  t.match(
    file.headers.get('content-disposition'),
    /^attachment; filename="contacts-\d{4}-\d\d-\d\d-\d{4}\.csv"$/,
  )
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

t.test('a rejected form shows the error at its field', async (t) => {
  const refused = {
    topics: { name: '' },
    keys: { name: '', scopes: 'contacts:read' },
    people: { email: 'no address', role: 'editor' },
    domains: { name: 'no domain' },
    'whatsapp-templates': { definition: '{' },
    webhooks: { name: '', url: 'https://hooks.example.com' },
  }
  for (const [list, form] of Object.entries(refused)) {
    const opened =
      /<details class="act" id="[^"]+" open>(?:(?!<\/details>)[\s\S])*autofocus[\s\S]*?class="fault"/
    t.notMatch((await owner.get(at(list))).html, /<details class="act" id="[^"]+" open>/, list)
    const { status, html } = await owner.post(at(list), form)
    t.equal(status, 400, list)
    t.match(html, opened, list)
  }
})

t.test('errors are alerts, and other notices have the role status', async (t) => {
  const refused = await owner.post(at('topics'), { name: '' })
  t.match(refused.html, '<div class="notice bad" role="alert">')
  const made = await owner.post(at('topics'), { name: 'Announced' })
  const { html } = await owner.get(made.location ?? '')
  t.match(html, /<div class="notice good" role="status">\s*<p>The topic Announced was created/)
  t.notMatch(html, 'role="alert"')
})

t.test('describes each role, and the effect of a removal', async (t) => {
  const roles = [
    /Viewer Sees .*can’t change anything/,
    /Editor Also changes .*broadcasts/,
    /Owner Also manages keys/,
  ]
  for (const role of roles) shows(t, await owner.get(at('people')), role)
  const { html } = await owner.get(at('people'))
  const person = /teams\/[^"]+\/people\/[0-9a-f-]{36}/.exec(html)?.[0] ?? ''
  await owner.post(at('people'), { email: 'second@example.com', role: 'owner' })
  const page = await owner.get(`/${person}`)
  t.match(page.html, /<button class="danger">Remove from the team</)
  shows(t, page, 'Change the role')
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
  shows(t, all, /Contacts 3 ⋯/)
  shows(
    t,
    all,
    /Status Address name city Topics Added .* graz@found\.test Office – .* Ben Linz .* Erika Mustermann Graz/,
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
  shows(t, await reader.get(path), /Status Address plan no longer there Topics Added .* gold –/)
  const { html } = await chooser.get(path)
  t.match(html, />\s*plan\nno longer there<\/textarea>/)
  t.notMatch(html, OWN_CHOICE, 'somebody has chosen them')
  t.notMatch((await reader.get(path)).html, 'Save columns')
  const many = await choose('a\nb\nc\nd\ne')
  shows(t, many, /columns must be at most 4/i)
  t.match(
    many.html,
    /<details class="act" id="[^"]+" open>(?:(?!<\/details>)[\s\S])*>\na\nb\nc\nd\ne<\/textarea>/,
    'what was typed',
  )
  shows(t, await choose('x'.repeat(129)), /columns must have at most 128 characters each/i)
  await choose('name\ncity\nplan')
  shows(t, await reader.get(path), /Status Address name city plan Added .* Ana Graz gold/)
  await choose('2024\nname\n7')
  shows(t, await reader.get(path), /Status Address 2024 name 7 Added/)
  await choose('')
  shows(t, await reader.get(path), /Status Address (name|city|plan) (name|city|plan) Topics Added/)
})

t.test('renames and deletes a topic', async (t) => {
  await editor.post(at('topics'), { name: 'Offers' })
  const page =
    /teams\/[^"]+\/topics\/[0-9a-f-]{36}(?=">Offers)/.exec((await editor.get(at('topics'))).html)?.[0] ?? ''
  shows(t, await after(editor, await editor.post(`/${page}/rename`, { name: 'Deals' })), 'Deals')
  t.equal((await editor.post(`/${page}/rename`, { name: 'News' })).status, 400, 'a name once')
  shows(t, await after(editor, await editor.post(`/${page}/delete`)), 'The topic was deleted.')
})

t.test('a domain without a return path refers to the operator', async (t) => {
  const other = await startService(t)
  const { id } = await makeTeam(other, { domain: 'lost-bounces.test' })
  const page = await (await signedIn(other, { team: id, role: 'owner' })).get(
    `/teams/${id}/domains/lost-bounces.test`,
  )
  shows(t, page, /Bounces not counted They return to .*own mail server, .*\. Ask your operator\./)
  t.notMatch(page.html, 'RETURN_PATH_DOMAIN')
})

t.test('settings explain a choice first, and refer to the operator', async (t) => {
  const page = await owner.get(at('settings'))
  shows(t, page, /Stop transactional email for Broadcasts never go .* Hard bounces: /)
  shows(t, page, /Sent to no one Notices are off\. Ask your operator to turn them on\./)
  shows(t, page, / Plan Pro /)
  shows(t, await viewer.get(`/teams/${team.id}`), / Plan Pro\. Resets /)
  t.notMatch(page.html, 'DASHBOARD_FROM')
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get(`/operator/teams/${team.id}`), / Plan Pro, from /)
})

t.test('adds a domain, compares its records and verifies it', async (t) => {
  const added = await after(owner, await owner.post(at('domains'), { name: 'Mail.Example.net' }))
  shows(t, added, /mail\.example\.net was added.*DKIM.*missing/)
  const record = /v=DKIM1; k=rsa; p=[\w+/]+={0,2}/.exec(textOf(added.html))?.[0] ?? ''
  const name = /[\w-]+\._domainkey\.mail\.example\.net/.exec(added.html)?.[0] ?? ''
  t.match(added.html, `title="${name}"`, 'the whole name in the tip')
  shows(
    t,
    added,
    new RegExp(
      `Hosts are shown without example\\.net.* TXT · needed host ${name.replace('.example.net', '')} Copy host`,
    ),
  )
  shows(t, added, /CNAME · recommended host bounces\.mail Copy host value bounces\.example\.com Copy value/)
  dns.set(name, [record.slice(0, 200)])
  const differs = await viewer.get(at('domains/mail.example.net?again=yes'))
  shows(t, differs, `different TXT · needed · cut short: 200 of ${record.length} characters`)
  t.ok(
    differs.html.includes(`<mark>${record.slice(200).replaceAll('=', '&#x3D;')}</mark>`),
    'the missing part is marked',
  )
  t.ok(
    differs.html.includes(`data-copy-text="${record.replaceAll('=', '&#x3D;')}"`),
    'and the whole value copied',
  )
  dns.set(name, ['v=DKIM1; p=somethingelse'])
  const dmarc = 'v=DMARC1; p=reject'
  dns.set('_dmarc.mail.example.net', [dmarc])
  const compared = await viewer.get(at('domains/mail.example.net?again=yes'))
  shows(t, compared, /mail\.example\.net DKIM differs Not verified/)
  shows(t, await viewer.get(at('domains')), /mail\.example\.net DKIM differs can’t send not yet/)
  shows(
    t,
    compared,
    /DKIM: signs your email different TXT · needed · a different key host .* value v=DKIM1; k=rsa; .* in DNS v=DKIM1; p=somethingelse /,
  )
  shows(t, compared, /DMARC: .* found · TXT .* value v=DMARC1; p=reject/)
  t.notMatch(textOf(compared.html), /p=none/, 'what is there is not suggested')
  shows(t, compared, /Bounces return to bounces\.example\.com/)
  const lacks = await after(owner, await owner.post(at('domains/mail.example.net/verify')))
  shows(t, lacks, new RegExp(`${name} has another value in DNS`))
  dns.set(name, [record])
  const verified = await after(owner, await owner.post(at('domains/mail.example.net/verify')))
  shows(
    t,
    verified,
    /is verified\. You can send from this domain\..*mail\.example\.net verified Ready: you can send from this domain/,
  )
  shows(t, await viewer.get(at('domains')), /mail\.example\.net verified /)
  const page = at('domains/mail.example.net')
  for (const [texts, words, remedy] of [
    [['v=DKIM1; p=somethingelse'], 'DKIM differs', 'has another value\\. Replace it'],
    [[], 'DKIM missing', 'is missing\\. Add it'],
  ] as const) {
    dns.set(name, [...texts])
    const one = await viewer.get(`${page}?again=yes`)
    const list = await viewer.get(at('domains'))
    shows(t, list, new RegExp(`mail\\.example\\.net ${words} `))
    t.match(list.html, `<span class="tag bad">${words}</span>`)
    t.match(one.html, `<span class="tag bad">${words}</span>`)
    t.notMatch((await owner.get(page)).html, '/rekey"', 'a new key would need another record')
    shows(
      t,
      one,
      new RegExp(`mail\\.example\\.net ${words} You can send from this domain, but ${name} ${remedy}`),
    )
  }
  silent.add(name)
  dnsState.ahead += 61_000
  shows(t, await viewer.get(at('domains')), /mail\.example\.net verified /)
  await database.query(sql.unsafe`
    update domains set missing_since = now() where team_id = ${team.id} and name = 'mail.example.net'`)
  shows(t, await viewer.get(at('domains')), /mail\.example\.net DKIM not found /)
  silent.delete(name)
  shows(t, await after(owner, await owner.post(at('domains/mail.example.net/delete'))), 'was removed')
})

/** Publishes the first DKIM record on the page of a domain. */
async function publish(page: string): Promise<void> {
  const { html } = await owner.get(page)
  const [name = ''] = /[\w-]+\._domainkey\.[\w.-]+/.exec(html) ?? []
  dns.set(name, [/v=DKIM1; k=rsa; p=[\w+/]+={0,2}/.exec(textOf(html))?.[0] ?? ''])
}

t.test('a domain stays verified while the record of its new key is missing', async (t) => {
  await owner.post(at('domains'), { name: 'new.key.test' })
  const page = at('domains/new.key.test')
  await publish(page)
  await owner.post(`${page}/verify`)
  await owner.press(page, `${page}/rekey`)
  shows(
    t,
    await owner.get(page),
    /new\.key\.test verified You can send from this domain\. For the new key, .* is missing\. Add it .* the old key signs\./,
  )
})

t.test('looks DNS records up again after a minute, or on request', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'asked-once.test' })).location ?? ''
  const asked = async (path: string) => {
    const before = dnsState.asked
    const seen = await viewer.get(path)
    return { seen, count: dnsState.asked - before }
  }
  t.not((await asked(page)).count, 0)
  dnsState.ahead += 30_000
  const { seen, count } = await asked(page)
  t.equal(count, 0)
  shows(t, seen, /Check again .* Last checked .* 3\d seconds ago/)
  const again = await asked(`${page}?again=yes`)
  t.not(again.count, 0)
  shows(t, again.seen, /Last checked .* just now/)
  dnsState.ahead += 61_000
  t.not((await asked(page)).count, 0)
})

t.test('a key is only rotated while its record is published', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'unpublished.test' })).location ?? ''
  const isOffered = async () => (await owner.get(`${page}?again=yes`)).html.includes('/rekey"')
  t.notOk(await isOffered(), 'not verified')
  await publish(page)
  await owner.post(`${page}/verify`)
  t.ok(await isOffered())
  await owner.press(page, `${page}/rekey`)
  t.notOk(await isOffered(), 'the next key has to be verified first')
})

t.test('a topic lists its broadcasts', async (t) => {
  const { id, topic } = await aBroadcast(service, team)
  const { topic: other } = await aBroadcast(service, team)
  const link = `href="/dashboard${at(`broadcasts/${id}`)}"`
  t.ok((await editor.get(at(`topics/${topic}`))).html.includes(link))
  t.notOk((await editor.get(at(`topics/${other}`))).html.includes(link))
})

t.test('a topic shows its subscribers, and starts a broadcast to them', async (t) => {
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
    /1 contact is subscribed, .* of all\. .*News 4 of 2 75\.0 % .*subscribed Ana Lind subscribed@example\.org/,
  )
  t.notMatch(textOf(page.html), /other@example\.org|Rename topic|New broadcast/)
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

t.test('a test team needs no DNS records', async (t) => {
  const test = await makeTeam(service, { domain: 'sandbox.test', test: true })
  const member = await signedIn(service, { team: test.id, role: 'viewer' })
  shows(t, await member.get(`/teams/${test.id}/domains`), /sandbox\.test verified /)
  const page = await member.get(`/teams/${test.id}/domains/sandbox.test`)
  shows(t, page, /sandbox\.test verified You can send from this domain\. A test team needs no DNS records\./)
})

t.test('concurrent confirmations rotate a DKIM key only once', async (t) => {
  const page = (await owner.post(at('domains'), { name: 'rotated.test' })).location ?? ''
  await publish(page)
  await owner.post(`${page}/verify`)
  const form = { ...formTo((await owner.get(page)).html, `${page}/rekey`), confirmed: 'yes' }
  const presses = await Promise.all([1, 2].map(() => owner.post(`${page}/rekey`, form)))
  t.strictSame(presses.map(({ status }) => status).sort(), [303, 409])
  const refused = presses.find(({ status }) => status === 409)
  if (refused)
    shows(
      t,
      refused,
      /Someone else has rotated the key since this page was opened\. Review it, then try again\./,
    )
  t.notMatch((await owner.get(page)).html, '/rekey"')
})

const keyIn = ({ html }: Pick<Seen, 'html'>): string => /hg_[0-9A-Za-z]{49}/.exec(html)?.[0] ?? ''

const keyPage = async (name: string) =>
  new RegExp(`"/dashboard([^"]*/keys/[0-9a-f-]{36})">${name}\\s*<`).exec(
    (await owner.get(at('keys'))).html,
  )?.[1] ?? ''

t.test('a rotated key still works for 24 hours', async (t) => {
  const form = { name: 'rotated', scopes: [...SCOPES] }
  const made = await after(owner, await owner.post(at('keys'), form))
  const old = keyIn(made)
  const path = await keyPage('rotated')
  const sent = await owner.press(path, `${path}/rotate`)
  t.not(sent.location, path)
  const page = await after(owner, sent)
  const key = keyIn(page)
  t.not(key, old)
  shows(t, page, /Scopes everything .* Expires never/)
  for (const each of [key, old]) t.equal((await call('GET', '/v1/contacts', { key: each })).status, 200)
  shows(t, await owner.get(path), /← API keys rotated Example requests .* Expires .* in 23 hours/)
  t.match(await lastDeed(), { action: 'key.rotate', subject: 'rotated' })
  t.equal((await owner.post(`${path}/rotate`, { expires: '2020-01-01' })).status, 400)
})

t.test('shows a key once, and revokes it', async (t) => {
  const form = { name: 'shop', scopes: ['contacts:read', 'contacts:write'] }
  const page = await after(owner, await owner.post(at('keys'), form))
  const key = keyIn(page)
  t.equal((await call('GET', '/v1/contacts', { key })).status, 200)
  t.notMatch((await owner.get(at('keys'))).html, key)
  await until('its use is noted', async () => /within the last hour/.test((await owner.get(at('keys'))).html))
  const path = await keyPage('shop')
  shows(t, await owner.get(path), /Last used within the last hour Scopes contacts:read, contacts:write/)
  shows(t, await after(owner, await owner.post(`${path}/revoke`)), 'The key shop was revoked.')
  t.notMatch((await owner.get(path)).html, /\/(revoke|rotate)"/)
  t.match(await lastDeed(), { action: 'key.revoke', subject: key.slice(0, 10), detail: 'shop' })
  t.equal((await call('GET', '/v1/contacts', { key })).status, 401)
  t.equal((await owner.post(at('keys'), { name: 'none' })).status, 400)
})

t.test('invites a member, changes their role and removes them', async (t) => {
  const page = await after(
    owner,
    await owner.post(at('people'), { email: 'new@example.com', role: 'viewer' }),
  )
  const link = /\/login\/[\w-]{43}/.exec(page.html)?.[0] ?? ''
  const fresh = visitor(service)
  t.equal((await fresh.post(link, { csrf: '' })).status, 303)
  t.equal((await fresh.get(at('contacts'))).status, 200)
  const person =
    /teams\/[^"]+\/people\/[0-9a-f-]{36}(?=">new@)/.exec((await owner.get(at('people'))).html)?.[0] ?? ''
  t.equal((await fresh.post(at('topics'), { name: 'Not yet' })).status, 403)
  await owner.post(`/${person}/role`, { role: 'editor' })
  const next = await after(owner, await owner.post(`/${person}/link`))
  await fresh.post(/\/login\/[\w-]{43}/.exec(next.html)?.[0] ?? '')
  t.equal((await fresh.post(at('topics'), { name: 'Now' })).status, 303, 'from the next sign-in on')
  await owner.post(`/${person}/remove`)
  t.equal((await fresh.get(at('contacts'))).status, 303)
})

t.test("the last owner can't be removed or demoted", async (t) => {
  const alone = await makeTeam(service, { domain: 'alone.test' })
  const boss = await signedIn(service, { team: alone.id, role: 'owner' })
  const html = (await boss.get(`/teams/${alone.id}/people`)).html
  const self = /teams\/[^"]+\/people\/[0-9a-f-]{36}/.exec(html)?.[0] ?? ''
  shows(t, { html }, `${boss.email} you owner`)
  const page = await boss.get(`/${self}`)
  shows(
    t,
    page,
    /This is you, the only owner\. .* Role Owner Can do all that editors can\. Also manages .* audit log\. Last active /,
  )
  t.notMatch(page.html, /Change the role|Remove from the team|Session tokens/)
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get(`/${self}`), 'This is the only owner.')
  t.equal((await boss.post(`/${self}/remove`)).status, 400)
  t.equal((await boss.post(`/${self}/role`, { role: 'viewer' })).status, 400)
})

t.test("the integration page uses the team's domain and template", async (t) => {
  await editor.post(at('templates'), { name: 'Welcome', html: '<p>Hi</p>', text: '' })
  shows(t, await viewer.get(at('integration')), /hello@example\.com.*template_id/)
})

t.test('links to the documentation have valid anchors', async (t) => {
  const docs = await (await fetch(`${service.base}/docs`)).text()
  for (const page of ['integration', 'webhooks']) {
    const [, href, heading] =
      /href="(\/docs(?:#([\w-]+))?)"/.exec((await viewer.get(at(page))).html.split('<main')[1] ?? '') ?? []
    t.ok(href, page)
    if (heading !== undefined) t.ok(docs.includes(`id="${heading}"`), heading)
  }
})

t.test('irreversible actions need confirmation', async (t) => {
  await owner.post(at('domains'), { name: 'asked.test' })
  await publish(at('domains/asked.test'))
  await owner.post(at('domains/asked.test/verify'))
  await owner.post(at('keys'), { name: 'asked', scopes: ['contacts:read'] })
  await owner.post(at('people'), { email: 'asked@example.com', role: 'viewer' })
  await call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  const person = /people\/[0-9a-f-]{36}(?=">asked@)/.exec((await owner.get(at('people'))).html)?.[0] ?? ''
  for (const [path, actions] of [
    ['domains/asked.test', ['rekey', 'delete']],
    [(await keyPage('asked')).replace(at(''), ''), ['revoke']],
    [person, ['role', 'remove']],
    ['emails/all', ['requeue', 'delete']],
  ] as const) {
    const { html } = await owner.get(at(path))
    for (const action of actions) {
      const [, to = ''] = new RegExp(`action="/dashboard([^"]*/${action})[?"]`).exec(html) ?? []
      const changes = action === 'role' ? { role: 'editor' } : {}
      const asked = await owner.ask(to, { ...formTo(html, to), ...changes })
      t.equal(asked.status, 200)
      t.match(asked.html, /<h1[^>]*>[^?]*\?/, `${path} ${action}`)
    }
  }
  const action = at('domains/asked.test/delete')
  const asked = await owner.ask(action, { kept: ['a\nb', '<c>'] })
  t.equal(asked.status, 200)
  shows(t, asked, /Remove asked\.test\? .* Remove domain Go back/)
  t.equal((await owner.get(at('domains/asked.test'))).status, 200, 'it is still there')
  const form = new RegExp(`<form[^>]*${action}"[\\s\\S]*?</form>`).exec(asked.html)?.[0] ?? ''
  const fields = [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value])
  t.match(fields, [['csrf'], ['kept', 'a\nb'], ['kept', '&lt;c&gt;'], ['confirmed', 'yes']])
  t.match(asked.html, `href="/dashboard${at('domains/asked.test')}"`)
  t.equal((await owner.post(action)).status, 303)
  t.equal((await owner.get(at('domains/asked.test'))).status, 404)
})

t.test('an error uses the label of its field', async (t) => {
  const refused = await owner.post(at('webhooks'), { url: 'nowhere', types: '*' })
  const said = textOf(refused.html).match(/\burl (?:must|is)\b/gi)
  t.strictSame([...new Set(said)].length, 1)
  t.ok((said?.length ?? 0) >= 2 && said?.every((words) => words.startsWith('URL ')), String(said))
})
