/** The global search by ID, address, number and text. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { DEMO_TEMPLATE } from '../../sandbox/whatsapp-magic.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { anEmail, makeTeam, sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { uuidAt } from '../../support/uuid-sql.ts'
import { aMessage, makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const { service, team, lastEntry } = await world(t)
const other = await makeTeam(service, { domain: 'example.net' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const stranger = await signedIn(service, { team: other.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })

const { body: email, headers } = await service.call('POST', '/v1/emails', {
  key: team.key,
  body: anEmail({ idempotency_key: 'order 17' }),
})
const template = await makeTemplate(service, team.id, DEMO_TEMPLATE)
const { body: messages, headers: asked } = await service.call('POST', '/v1/whatsapp/messages', {
  key: team.key,
  body: aMessage(template.id, {
    to: ['+15555550101', '+15555550102'],
    parameters: Object.fromEntries(template.slots.map((slot) => [slot, 'x'])),
    idempotency_key: 'wa-1',
  }),
})

t.test('any ID of an email leads to its page', async (t) => {
  for (const person of [viewer, operator])
    for (const id of [
      email.id,
      email.id.toUpperCase(),
      'order 17',
      headers.get('x-request-id') ?? '',
      `<${email.id}@example.com>`,
      `${email.id}@example.com`,
    ])
      t.match(
        await person.get(`/find?id=${encodeURIComponent(id)}`),
        { status: 303, location: `/teams/${team.id}/emails/${email.id}` },
        id,
      )
})

t.test('finds a contact by name, address and other properties', async (t) => {
  const body = { email: 'una@example.org', properties: { name: 'Una Sol', city: 'Graz' } }
  await service.call('POST', '/v1/contacts', { key: team.key, body })
  shows(t, await viewer.get('/find?q=una'), /Contacts .* Una Sol una@example\.org Graz /)
  shows(t, await viewer.get('/find'), /Contacts Name, part of an address/)
})

t.test('an ID leads to its WhatsApp message, and a shared key lists all', async (t) => {
  const [{ id }, { id: second }] = messages.data
  t.match(await viewer.get(`/find?id=${id}`), { status: 303, location: `/teams/${team.id}/whatsapp/${id}` })
  for (const shared of ['wa-1', asked.get('x-request-id')]) {
    const both = await viewer.get(`/find?id=${shared}`)
    shows(t, both, id)
    shows(t, both, second)
    const list = await viewer.get(`/teams/${team.id}/whatsapp?id=${shared}`)
    t.match(list.html, id)
    t.match(list.html, second)
  }
})

t.test("another team's message looks like one that doesn't exist", async (t) => {
  for (const [person, id] of [
    [stranger, email.id],
    [stranger, 'order 17'],
    [viewer, uuidv7()],
    [operator, 'no such id'],
  ] as const)
    shows(
      t,
      await person.get(`/find?id=${encodeURIComponent(id)}`),
      `No message that you can see has the ID ${id}.`,
    )
  t.equal((await viewer.get('/find')).status, 200)
  const search = await viewer.get('/find?q=missing')
  shows(t, search, 'Nothing in A team matches.')
  t.notMatch(search.html, 'No message that you can see', 'a search for a name')
})

t.test('finds by address, a part of it, number and text', async (t) => {
  const properties = { phone: '+15555550101' }
  const body = { email: 'someone@example.org', properties }
  await service.call('POST', '/v1/contacts', { key: team.key, body })
  const [{ id }] = messages.data
  for (const q of ['someone@example.org', 'meone@exam', '15555550101', '+1 (555) 555-0101']) {
    const found = await viewer.get(`/find?q=${encodeURIComponent(q)}`)
    t.match(found.html, `/teams/${team.id}/contacts/someone%40example.org`, q)
  }
  t.match((await viewer.get('/find?q=15555550101')).html, `/teams/${team.id}/whatsapp/${id}`)
  t.match((await viewer.get('/find?q=Hello')).html, `/teams/${team.id}/emails/${email.id}`)
  t.match((await viewer.get('/find?q=someone@example.org')).html, `/teams/${team.id}/emails/${email.id}`)
})

t.test('finds contacts and emails by part of name or address', async (t) => {
  const properties = { name: 'Zo\u00eb Example', city: 'Lisbon' }
  const body = { email: 'z.e@elsewhere.example', properties }
  t.equal((await service.call('POST', '/v1/contacts', { key: team.key, body })).status, 201)
  const to = ['"Example, Zoë" <accounts@invoices.example>']
  const invoice = await sendEmail(service, team, { to, subject: 'Invoice 4711' })
  const contact = `/teams/${team.id}/contacts/z.e%40elsewhere.example`
  const page = `/teams/${team.id}/emails/${invoice}`
  const find = async (q: string) => (await viewer.get(`/find?q=${encodeURIComponent(q)}`)).html
  for (const q of ['zoë', 'ZOË example']) {
    t.match(await find(q), contact, q)
    t.match(await find(q), page, q)
  }
  for (const q of ['lisbon', 'zoë lisbon', 'elsewhere.example']) t.match(await find(q), contact, q)
  for (const q of ['voices.exam', 'counts@invoices.ex', 'invoice zoë', '4711'])
    t.match(await find(q), page, q)
  for (const q of ['zoë 4712', 'zoë porto'])
    shows(t, await viewer.get(`/find?q=${encodeURIComponent(q)}`), 'Nothing')
  const listed = await viewer.get(`/teams/${team.id}/emails?q=${encodeURIComponent('zoë 4711')}`)
  t.match(listed.html, page)
  t.notMatch(listed.html, email.id)
})

t.test("a search stays in the user's teams, or is audited", async (t) => {
  shows(t, await stranger.get('/find?q=someone@example.org'), 'Nothing in A team matches')
  t.equal((await stranger.get(`/find?q=someone@example.org&team=${team.id}`)).status, 404)
  t.match((await operator.get(`/find?q=someone@example.org&team=${team.id}`)).html, email.id)
  t.match(await lastEntry(), { action: 'search', actor: operator.email, subject: 'someone@example.org' })
})

t.test('shows results of each kind, with a link to all', async (t) => {
  const own = await makeTeam(service, { domain: 'kinds.test' })
  const owner = await signedIn(service, { team: own.id, role: 'owner' })
  const at = `/teams/${own.id}`
  const { key } = own
  await service.call('POST', '/v1/contacts', { key, body: { email: 'kinds@example.org' } })
  const id = await sendEmail(service, { key }, { from: 'a@kinds.test', subject: 'All kinds' })
  await owner.post(`${at}/templates`, { name: 'Kinds of bread', html: '<p>Hi</p>', text: '' })
  await owner.post(`${at}/topics`, { name: 'kinds' })
  const { html } = await owner.get(`/find?q=KINDS&team=${own.id}`)
  for (const path of ['contacts/kinds%40example.org', `emails/${id}`, 'domains/kinds.test'])
    t.ok(html.includes(`href="/dashboard${at}/${path}"`), path)
  for (const list of ['contacts', 'emails'])
    t.ok(html.includes(`href="/dashboard${at}/${list}?q&#x3D;KINDS`), list)
  t.match(html, new RegExp(`href="/dashboard${at}/templates/[0-9a-f-]{36}"[^>]*>Kinds of`))
  t.match(html, new RegExp(`href="/dashboard${at}/topics/[0-9a-f-]{36}"`))
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const seen = (await reader.get(`/find?q=kinds&team=${own.id}`)).html
  t.notMatch(seen, new RegExp(`${at}/topics/`), 'a topic’s own page is its editors’')
  t.notMatch((await stranger.get('/find?q=kinds')).html, at)
})

t.test('finds a WhatsApp template by name or ID', async (t) => {
  const page = `/teams/${team.id}/whatsapp-templates/${template.id}`
  for (const q of ['ORDER_ready', template.id, template.id.toUpperCase()]) {
    t.match((await viewer.get(`/find?q=${q}`)).html, page, q)
    t.notMatch((await stranger.get(`/find?q=${q}`)).html, page, q)
  }
})

t.test('an incomplete search shows where to continue', async (t) => {
  // Searching even the first time range exceeds the time limit.
  const own = await makeTeam(service, { domain: 'long.test' })
  const owner = await signedIn(service, { team: own.id, role: 'owner' })
  await service.database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${own.id}, ${uuidAt(sql.fragment`now() - make_interval(secs => n)`)}, 'n' || n || '@long.test', 'n' || n || '@long.test', 'subscribed',
      jsonb_build_object('note', repeat('long ', 3000)), '{}', now() - make_interval(secs => n), now()
    from generate_series(1, 2500) n`)
  const { html } = await owner.get(`/find?q=nobody+here&team=${own.id}`)
  const [, contacts = ''] = /<h2>Contacts<\/h2>([\s\S]*?)<\/section>/.exec(html) ?? []
  t.match(contacts, /Searched back to <time datetime="[^"]+Z">/)
  const [, on = ''] = /href="\/dashboard([^"]*before[^"]*)"[^>]*>Search older contacts/.exec(contacts) ?? []
  t.ok(on.startsWith(`/teams/${own.id}/contacts?q`), on)
  t.notMatch(contacts, 'All matching contacts', 'without a match')
  shows(t, { html }, 'Nothing in A team matches so far.')
  await owner.post(`/teams/${own.id}/templates`, { name: 'Nobody here', html: '<p>Hi</p>', text: '' })
  const mixed = await owner.get(`/find?q=nobody+here&team=${own.id}`)
  shows(t, mixed, /Results in A team\. By name or ID .*Nobody here.* Contacts .*No match so far/)
  const list = await owner.get(`/teams/${own.id}/contacts?q=nobody+here`)
  t.match(list.html, /Searched back to <time datetime="[^"]+Z">/)
  shows(t, list, /No match so far\. .* Search further back/)
  t.equal((await owner.get(on.replaceAll('&#x3D;', '=').replaceAll('&amp;', '&'))).status, 200)
})

t.test('a result has the columns of its list', async (t) => {
  const own = await makeTeam(service, { domain: 'columns.test' })
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const { id, slots } = await makeTemplate(service, own.id, { ...DEMO_TEMPLATE, name: 'columns' })
  const parameters = Object.fromEntries(slots.map((slot) => [slot, 'x']))
  await sendWhatsapp(service, own, id, { to: ['+15555550188'], parameters })
  const subject = 'Call 15555550188'
  const sent = await sendEmail(service, { key: own.key }, { from: 'a@columns.test', subject })
  await service.database.query(sql.unsafe`
    with failed as (update whatsapp_messages set status = 'failed' where team_id = ${own.id}),
      bounced as (update email_states set status = 'bounced' where id = ${sent})
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    values (${own.id}, ${sent}, uuid_send(gen_random_uuid()), 'bounced', now(), '550 5.1.1 No such user')`)
  const find = (q: string) => reader.get(`/find?${new URLSearchParams({ q, team: own.id })}`)
  const digits = await find('15555550188')
  shows(t, digits, /Problem Accepted bounced .* Call 15555550188 The mailbox does not exist 550 5\.1\.1/)
  shows(t, digits, /To Template Problem Accepted failed \+15555550188 columns No reason given /)
  const number = await find('+15555550188')
  shows(t, number, 'failed +15555550188 columns No reason given')
  t.match(number.html, `href="/dashboard/teams/${own.id}/whatsapp-templates/${id}">columns`)
  t.notMatch(number.html, 'All matching messages', 'the only one is shown')
  t.notMatch(number.html, '<h2>Emails', 'an email has no number as its recipient')
})

t.test('counts an address in all visible teams, found by name', async (t) => {
  const operator = await signedIn(service, { operator: true })
  const to = 'far.away@example.org'
  await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ to: [to] }) })
  const empty = await makeTeam(service)
  const both = await signedIn(service, { team: empty.id, role: 'viewer', operator: true })
  shows(t, await operator.get(`/find?q=${to}`), /1 in A team\. .*By team/)
  shows(t, await both.get(`/find?q=${to}&team=${empty.id}`), /0 here, 1 in A team\. .*In other teams/)
  shows(t, await operator.get('/find?q=a%20tea'), /Teams Team A team/)
  const stranger = await signedIn(service, { team: empty.id, role: 'owner' })
  const seen = await stranger.get(`/find?q=${to}`)
  t.notMatch(seen.html, team.id)
})

const SEARCHES = ['at.find', 'note 88431', '+1 555 555 0177', 'pat.finder@found.example']

/** Creates a team with a contact, an email and a WhatsApp message that the searches find. */
async function findable(domain: string) {
  const own = await makeTeam(service, { domain })
  const body = { email: 'pat.finder@found.example', properties: { phone: '+15555550177' } }
  await service.call('POST', '/v1/contacts', { key: own.key, body })
  const to = ['Pat <pat.finder@found.example>']
  await sendEmail(service, own, { from: `a@${domain}`, to, subject: 'Delivery note 88431' })
  const { id, slots } = await makeTemplate(service, own.id, { ...DEMO_TEMPLATE, name: 'note' })
  const parameters = Object.fromEntries(slots.map((slot) => [slot, 'x']))
  await sendWhatsapp(service, own, id, { to: ['+15555550177'], parameters })
  return own
}

const [near, far, foreign] = [
  await findable('near.test'),
  await findable('far.test'),
  await findable('foreign.test'),
]
/** True for each team that has a link to the same search. */
const linksTo = (html: string, teams: readonly { id: string }[]): boolean[] =>
  teams.map(({ id }) => html.includes(`/find?team&#x3D;${id}`))

t.test('a member of two teams only gets results in these', async (t) => {
  const email = 'member-of-two@example.com'
  for (const { id } of [near, far]) await signedIn(service, { email, team: id, role: 'viewer' })
  const member = await signedIn(service, { email })
  for (const q of SEARCHES) {
    const { html } = await member.get(`/find?${new URLSearchParams({ team: near.id, q })}`)
    t.match(html, new RegExp(`/teams/${near.id}/(contacts|emails|whatsapp)/`), q)
    t.strictSame(linksTo(html, [near, far, foreign]), [false, true, false], q)
    t.notMatch(html, foreign.id, q)
    const [, others = ''] = /<h2>In other teams<\/h2>([\s\S]*?)<\/section>/.exec(html) ?? []
    const kinds = [...others.matchAll(/<th[^>]*>([^<]+)/g)].map(([, kind]) => kind)
    const wanted = q.startsWith('+')
      ? ['Contacts', 'WhatsApp']
      : q.includes('note')
        ? ['Emails']
        : ['Contacts', 'Emails']
    t.strictSame(kinds, ['Team', ...wanted], q)
  }
})

t.test('an operator gets results in every team', async (t) => {
  for (const q of SEARCHES) {
    const { html } = await operator.get(`/find?${new URLSearchParams({ q })}`)
    t.strictSame(linksTo(html, [near, far, foreign]), [true, true, true], q)
    const inside = await operator.get(`/find?${new URLSearchParams({ q, team: near.id })}`)
    t.strictSame(linksTo(inside.html, [near, far, foreign]), [false, true, true], q)
  }
})
