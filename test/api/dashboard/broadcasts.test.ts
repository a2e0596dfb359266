/** Broadcasts on the dashboard: draft, preview, test, start, stats, recipients, pause and cancel. */

import { sql } from 'slonik'
import { utc } from '../../../api/dashboard/components/cell.ts'
import { asTextTiles } from '../../../api/dashboard/pages/broadcast-ahead.ts'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { deleteEmails } from '../../../db/messages/emails/delete.sql.ts'
import { keepStats } from '../../../db/stats/daily/broadcasts.sql.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import {
  formsTo,
  mainActs,
  after as pageAfter,
  type Seen,
  shows,
  signedIn,
  textOf,
} from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, call, cli, database, team } = await world(t, { publicUrl: 'http://localhost' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const at = (path = ''): string => `/teams/${team.id}/${path}`

const after = (sent: Seen): Promise<Seen> => pageAfter(editor, sent)

const topicOf = async (name: string) => {
  await editor.post(at('topics'), { name })
  const topics = await topicsOfTeam(database, team.id)
  return topics.find((topic) => topic.name === name)?.id ?? ''
}
const contact = (email: string, topic: string, properties = {}) =>
  call('POST', '/v1/contacts', { key: team.key, body: { email, topic_ids: [topic], properties } })

async function templateOf(html: string): Promise<string> {
  const sent = await editor.post(at('templates'), { name: html, html, text: '' })
  return sent.location?.split('/').at(-1) ?? ''
}

/** Edits fields of a draft, step by step. */
async function write(path: string, fields: Record<string, string | string[]>): Promise<void> {
  for (const step of ['message', 'audience', 'when'])
    await after(
      await editor.press(`${path}/edit?step=${step}`, `${path}/edit`, { next: 'save', ...fields, step }),
    )
}

/** Creates a draft with the form. @returns its path. */
async function draft(fields: Record<string, string | string[]>): Promise<string> {
  const from = 'Acme <hello@example.com>'
  const all = { name: 'Spring', from, subject: 'Hi {{name}}', ...fields }
  const sent = await editor.post(at('broadcasts/new'), all)
  if (sent.status !== 303) throw new Error(`${sent.status} ${textOf(sent.html)}`)
  const path = sent.location ?? ''
  await write(path, all)
  return path
}

t.test('shows all errors of a step, and focuses the first', async (t) => {
  const good = {
    name: 'Spring',
    template_id: await templateOf('<p>x</p>'),
    from: 'a@example.com',
    subject: 'x',
  }
  const topic = await topicOf('Faults')
  const path = (await editor.post(at('broadcasts/new'), good)).location
  const step = (name: string, next: string, fields: object) =>
    editor.post(`${path}/edit`, { ...good, step: name, next, ...fields })
  const fault = ({ html }: Seen, name: string): string =>
    textOf(new RegExp(`<span class="fault" id="[^"]*\\b${name}-fault">[^<]*`).exec(html)?.[0] ?? '')
  const message = await step('message', 'audience', { from: 'Acme <no', subject: '{{' })
  t.equal(message.status, 400)
  t.match(fault(message, 'from'), /^From must be/)
  t.match(fault(message, 'subject'), /^Subject is not a valid template/)
  t.match(message.html, /name="from"[^>]* value="Acme &lt;no" required autofocus aria-invalid="true"/)
  t.equal(message.html.match(/ autofocus/g)?.length, 1)
  const odd = { template_id: '', from: 'Acme <no', reply_to: 'nobody' }
  const several = textOf((await step('message', 'audience', odd)).html)
  t.match(several, / Template is required\. .*Reply to must be an email address\. /, 'on top')
  t.notMatch(several, /template_id|reply_to/i, 'fields are called what their labels say')
  const audience = await step('audience', 'when', { 'property.0': 'city', 'op.0': 'in' })
  t.match(fault(audience, 'topic_ids'), /at least 1 topic/)
  t.match(audience.html, new RegExp(`name="topic_ids" value="${topic}" aria-invalid="true" autofocus`))
  t.match(audience.html, /<fieldset aria-describedby="[^"]*topic_ids-fault">/)
  t.match(audience.html, 'name="property.0" type="text" value="city"', 'what was typed is kept')
  // An empty row isn't a condition and doesn't renumber the others.
  const odder = await step('audience', 'when', { topic_ids: topic, 'property.1': 'city', 'op.1': 'in' })
  t.match(fault(audience, 'value\\.0'), /^Value must be an array of 1 to 100 strings/)
  t.match(fault(odder, 'value\\.1'), /^Value 2 must be an array of 1 to 100 strings/)
  t.match(odder.html, /name="value\.1"[^>]* autofocus[^>]* aria-invalid="true"/)
  t.match(textOf(audience.html), /at least 1 topic\. Value must be/, 'on top')
  t.match(textOf(odder.html), / Value 2 must be/, 'on top')
  t.notMatch(textOf(audience.html + odder.html), /where\[|value\.\d/i)
  const wide = { topic_ids: topic, 'property.1': 'x'.repeat(129), 'value.1': 'x' }
  t.match(
    fault(await step('audience', 'when', wide), 'property\\.1'),
    /^And property 2 must be a string of 1 to/,
  )
  const lines = { topic_ids: topic, 'property.1': 'city', 'op.1': 'in', 'value.1': '\n'.repeat(1_000) }
  t.match(fault(await step('audience', 'when', lines), 'value\\.1'), 'Value 2 must have at most 1000 lines.')
  const when = await step('when', 'save', { topic_ids: topic, rate_per_minute: 'many' })
  t.match(fault(when, 'rate_per_minute'), /^Maximum emails per minute must be a whole number/)
  t.match(when.html, /value="many"[^>]* autofocus aria-invalid="true"/)
})

t.test('creates a draft in three saved steps without a script', async (t) => {
  const topic = await topicOf('Steps')
  const other = await topicOf('Steps, others')
  const template_id = await templateOf('<p>Dear {{Name}} {{unsubscribe_url}}</p>')
  for (const [email, spent] of [
    ['a', '5048,32'],
    ['b', '800'],
    ['c', '6000'],
    ['d', '550,27'],
  ] as const)
    await contact(`${email}@steps.test`, topic, { Name: email.toUpperCase(), spent })
  const begun = at('broadcasts/new')
  const said = { name: 'Three', template_id, from: 'hello@example.com', subject: 'Hi', tags: 'one\ntwo' }
  const first = await editor.get(begun)
  shows(t, first, /Message Audience When Review .*Continue/)
  const sent = await editor.post(begun, { ...formTo(first.html, begun), ...said, next: 'audience' })
  const path = sent.location?.split('?')[0] ?? ''
  const step = async (seen: Seen, next: string, fields: Record<string, string | string[]>) =>
    editor.post(path, { ...formTo(seen.html, path), next, ...fields })
  const audience = await after(sent)
  shows(t, audience, /The draft Three is saved\..* Audience .*Contacts – Choose a topic\./)
  t.match(audience.html, /<datalist id="[^"]+"><option value="[^<]*<option value="spent">/)
  // It is in the list from now on.
  shows(t, await editor.get(at('broadcasts')), /draft Three –/)
  const left = await editor.get(path.replace('/edit', ''))
  shows(t, left, /Before it can start No topic is selected, so no one would receive it.* Contacts 0 /)
  t.strictSame(mainActs(left), ['Choose the audience'])
  const done = [...left.html.matchAll(/<li class="good"><a href="[^"]*">(\w+)/g)].map(([, step]) => step)
  t.strictSame(done, ['Message', 'When'], 'the audience is missing')
  t.notMatch((await viewer.get(path.replace('/edit', ''))).html, 'class="stepper"')
  const id = path.split('/').at(-2)
  t.match((await call('POST', `/v1/broadcasts/${id}/send`, { key: team.key })).body, {
    error: { message: /No topic is selected, so no one would receive it./ },
  })
  const more = { topic_ids: topic, 'property.0': 'spent', 'op.0': 'gt', 'value.0': '5000' }
  const counted = await step(audience, 'audience', more)
  shows(t, counted, /Contacts 3 .*“spent” compared as text 2 of 4 values aren’t numbers/)
  shows(
    t,
    await step(counted, 'audience', { 'op.0': 'in', 'value.0': '' }),
    /Not counted\. Value must be an array of 1 to 100 strings/,
  )
  shows(t, await step(counted, 'audience', { 'op.0': 'exists', exclude_topic_ids: other }), 'Contacts 4')
  const saidOf = async () => (await call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body
  t.match(await saidOf(), { name: 'Three', topic_ids: EMPTY, where: EMPTY }, 'counting stores nothing')
  const back = await after(await step(audience, 'message', {}))
  t.match(back.html, /<h2>Message[\s\S]*name="subject" type="text" value="Hi"/)
  const when = await after(await step(counted, 'when', {}))
  t.match(when.html, '<h2>When</h2>')
  const drafted = await after(await step(when, 'save', { rate_per_minute: '60' }))
  shows(t, drafted, /Contacts 3 .*“spent” compared as text 2 of 4/)
  t.match(await saidOf(), { rate_per_minute: 60 })
  const body = await saidOf()
  const where = [{ property: 'spent', op: 'gt', value: '5000' }]
  t.match(body, { name: 'Three', subject: 'Hi', tags: ['one', 'two'], topic_ids: [topic], where })
  // Previews each contact of the audience.
  const next = ({ html }: Seen) => /href="\/dashboard([^"]+)#preview">Next contact/.exec(html)?.[1] ?? ''
  shows(t, drafted, /Preview for A/)
  const second = await editor.get(next(drafted).replaceAll('&#x3D;', '='))
  shows(t, second, /Preview for C .*First contact/)
  const frame = /<iframe[^>]* src="\/dashboard([^"]+)"/.exec(second.html)?.[1] ?? ''
  t.match((await editor.get(frame.replaceAll('&#x3D;', '='))).html, 'Dear C')
  const third = await editor.get(next(second).replaceAll('&#x3D;', '='))
  const last = await editor.get(next(third).replaceAll('&#x3D;', '='))
  shows(t, last, /Preview No more contacts found in the audience.*First contact/)
})

t.test('a new broadcast has no template until one is chosen', async (t) => {
  const link = '<a href="{{unsubscribe_url}}">off</a>'
  const own = await makeTeam(service)
  const writer = await signedIn(service, { team: own.id, role: 'editor' })
  await writer.post(`/teams/${own.id}/topics`, { name: 'News' })
  const make = async (person: typeof editor, team_id: string, html: string) => {
    const sent = await person.post(`/teams/${team_id}/templates`, { name: html, html, text: '' })
    return sent.location?.split('/').at(-1) ?? ''
  }
  const invoice = await make(writer, own.id, '<p>Invoice</p>')
  const news = await make(writer, own.id, `<p>News</p>${link}`)
  const only = (await writer.get(`/teams/${own.id}/broadcasts/new`)).html
  t.match(only, `value="${news}" selected`, 'the only one that can be sent')
  t.notMatch(only, `value="${invoice}" selected`)
  shows(t, { html: only }, /Invoice<\/p> \(no unsubscribe link\)/)
  t.match(only, `src="/dashboard/teams/${own.id}/templates/${news}/preview?of&#x3D;published"`)
  const template_id = await templateOf(`<p>Chosen</p>${link}`)
  await templateOf(`<p>Not chosen</p>${link}`)
  const path = at('broadcasts/new')
  const page = await editor.get(path)
  t.match(
    page.html,
    /<select[^>]*name="template_id" required[^>]*><option value="" selected>Choose a template</,
  )
  t.notMatch(page.html, new RegExp(`value="${template_id}" selected`))
  const sent = await editor.post(path, {
    ...formTo(page.html, path),
    name: 'x',
    from: 'a@example.com',
    subject: 'x',
  })
  t.equal(sent.status, 400)
  shows(t, sent, 'Template is required.')
})

t.test('each variable has a field for its default value', async (t) => {
  const html = '<p>{{first_name}} {{email}}</p><a href="{{unsubscribe_url}}">off</a>'
  const template_id = await templateOf(html)
  const path = await draft({ template_id, subject: 'For {{lang}}', topic_ids: await topicOf('Defaults') })
  const [id, edit] = [path.split('/').at(-1), `${path}/edit`]
  const stored = async () => (await call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body.variables
  const names = async () =>
    [...(await editor.get(edit)).html.matchAll(/name="(default\.[^"]*|variables)"/g)].map(([, name]) => name)
  t.strictSame(await names(), ['default.first_name', 'default.lang'])
  const long = 'x'.repeat(300_000)
  const wrong = await editor.press(edit, edit, { next: 'save', 'default.lang': long })
  t.equal(wrong.status, 400, 'more than all values may have')
  await editor.press(edit, edit, { next: 'save', 'default.first_name': ' friend ', 'default.lang': '' })
  t.strictSame(await stored(), { first_name: 'friend' })
  await call('PATCH', `/v1/broadcasts/${id}`, {
    key: team.key,
    body: { variables: { first_name: 'two\nlines', lang: 'en', other: '' } },
  })
  t.strictSame(await names(), ['default.lang', 'variables'])
  await editor.press(edit, edit, { next: 'save', 'default.lang': '' })
  t.strictSame(await stored(), { first_name: 'two\nlines', other: '' }, 'the others are kept')
  await editor.press(edit, edit, { next: 'save', 'default.lang': '""' })
  t.strictSame(await stored(), { first_name: 'two\nlines', other: '', lang: '' })
  shows(t, await editor.get(edit), 'Enter "" for an empty text.')
})

t.test('offers the names and common values of properties', async (t) => {
  const own = await makeTeam(service)
  const writer = await signedIn(service, { team: own.id, role: 'editor' })
  const { create } = await broadcastingOf(service, own)
  const add = (email: string, properties: object) =>
    call('POST', '/v1/contacts', { key: own.key, body: { email, properties } })
  for (const [nth, city] of ['Graz', 'Graz', 'Linz', 'Wien', 'Wien', 'Wien'].entries())
    await add(`${nth}@offers.test`, { city, number: `${nth}` })
  const edit = `/teams/${own.id}/broadcasts/${await create()}/edit?step=audience`
  const { html } = await writer.get(edit)
  const lists = [...html.matchAll(/<datalist id="([^"]+)">(.*?)<\/datalist>/g)]
  t.strictSame(
    lists.map(([, , options]) => options),
    [
      '<option value="city"><option value="number">',
      '<option value="Wien" label="city"><option value="Graz" label="city">',
    ],
    'rare values are not offered',
  )
  for (const [, id] of lists) t.equal(html.split(`list="${id}"`).length, 3, 'each row has both')
})

t.test('separates the values of a list with commas', async (t) => {
  const path = await draft({ template_id: await templateOf('<p>In</p>'), topic_ids: await topicOf('In') })
  const audience = `${path}/edit?step=audience`
  const values = 'Graz, "Wien, Land" ,\r\n"Linz"\r\n a "b" c'
  await editor.press(audience, `${path}/edit`, {
    ...{ next: 'save', 'property.0': 'city', 'op.0': 'in', 'value.0': values },
  })
  const { body } = await call('GET', `/v1/broadcasts/${path.split('/').at(-1)}`, { key: team.key })
  const value = ['Graz', 'Wien, Land', 'Linz', 'a "b" c']
  t.strictSame(body.where, [{ property: 'city', op: 'in', value }])
  t.match(
    (await editor.get(audience)).html,
    '>\nGraz\n&quot;Wien, Land&quot;\nLinz\na &quot;b&quot; c</textarea>',
  )
})

t.test('the last step shows when the broadcast starts and how long it takes', async (t) => {
  const topic = await topicOf('Planned')
  for (const nth of [1, 2, 3]) await contact(`planned${nth}@example.org`, topic)
  const path = await draft({ template_id: await templateOf('<p>Plan</p>'), topic_ids: topic })
  const step = `${path}/edit?step=when`
  shows(t, await editor.get(step), 'Starts when you start it Contacts 3 ')
  const later = new Date(Date.now() + 5.5 * 86_400_000).toISOString().slice(0, 16)
  const plan = { next: 'when', send_at: later, rate_per_minute: '1' }
  const planned = await editor.press(step, `${path}/edit`, plan)
  shows(t, planned, /Starts in 5 days \w{3}, [^C]* UTC Contacts 3 Takes about 3 minutes at 1 email a minute/)
  const stored = await call('GET', `/v1/broadcasts/${path.split('/').at(-1)}`, { key: team.key })
  t.match(stored.body, { send_at: null, rate_per_minute: null }, 'calculating stores nothing')
  const odd = await editor.press(step, `${path}/edit`, { ...plan, rate_per_minute: 'many' })
  shows(t, odd, /Starts – Maximum emails per minute must be a whole number/)
})

t.test('an unknown step is the first', async (t) => {
  const path = await draft({ template_id: await templateOf('<p>Step</p>'), topic_ids: await topicOf('Step') })
  const page = await editor.get(`${path}/edit?step=time`)
  t.equal(page.status, 200)
  t.match(page.html, '<h2>Message</h2>')
})

t.test('a count by the script has no preview', async (t) => {
  const path = await draft({ template_id: await templateOf('<p>Seen</p>'), topic_ids: await topicOf('Seen') })
  const { html } = await editor.get(`${path}/edit?step=audience`)
  t.match(html, 'id="preview"')
  const count = async (destination: string) => {
    const form = { ...formTo(html, `${path}/edit`), next: 'audience' }
    const headers = { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': destination }
    const page = await editor.post(`${path}/edit`, form, headers)
    shows(t, page, 'Contacts 0 match')
    return page.html
  }
  t.match(await count('document'), 'id="preview"')
  t.notMatch(await count('empty'), 'id="preview"', 'the script uses only the count')
})

t.test('an empty audience is red, above the buttons', async (t) => {
  const path = await draft({ template_id: await templateOf('<p>0</p>'), topic_ids: await topicOf('Empty') })
  const { html } = await editor.get(`${path}/edit?step=audience`)
  t.match(html, /<section id="audience"[\s\S]*<li class="bad">[\s\S]*<div class="submit">[\s\S]*Continue/)
  t.match(html, /Conditions \(optional\)[\s\S]*name="property\.0"/)
  shows(t, { html }, 'Contacts 0 match, so no one would receive it')
})

t.test('each problem of a draft links to its solution', async (t) => {
  const template_id = await templateOf('<p>{{name}}</p>')
  const path = await draft({ template_id, from: 'a@unverified.test', topic_ids: await topicOf('Solved') })
  const links = async (person: typeof editor) => {
    const { html } = await person.get(path)
    const [, alerts = ''] = /<h2>Before it can start<\/h2>([\s\S]*?)<\/section>/.exec(html) ?? []
    t.ok(html.indexOf('Before it can start') < html.indexOf('<h2>Audience</h2>'), 'problems come first')
    return [...alerts.matchAll(/href="\/dashboard([^"]*)">([^<]*)/g)].map(([, href = '', label]) => [
      href.replaceAll('&#x3D;', '='),
      label,
    ])
  }
  const domains = [at('domains'), 'Show the domains']
  t.strictSame(await links(editor), [
    domains,
    [`${path}/edit?step=message`, 'Edit message'],
    [`${path}/edit?step=audience`, 'Edit audience'],
  ])
  t.strictSame(await links(viewer), [domains])
})

t.test('a question about a broadcast of another state has nothing to confirm', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  for (const [state, verb, after] of [
    ['sending', 'pause', 'paused'],
    ['paused', 'resume', 'sending'],
    ['sending', 'cancel', 'cancelled'],
    ['sent', 'again', 'sending'],
    ['draft', 'delete', 'sending'],
    ['draft', 'send', 'scheduled'],
  ] as const) {
    await broadcast.become(state)
    const form = verb === 'send' ? formTo((await editor.get(path)).html, `${path}/send`) : {}
    const { location, status } = await editor.post(`${path}/${verb}`, { ...form, confirmed: '' })
    t.equal(status, 303, verb)
    t.notMatch(textOf((await editor.get(location ?? '')).html), 'Nothing left to confirm', verb)
    await broadcast.become(after)
    const late = await editor.get(location ?? '')
    shows(t, late, /Nothing left to confirm The broadcast is .*Go back/)
    t.match(late.html, `href="/dashboard${path}${verb === 'again' ? '/again' : ''}">Go back</a>`, verb)
  }
  await broadcast.become('cancelled')
})

t.test('the preview of a sent broadcast mentions no skip, unlike a resend', async (t) => {
  const html = '<p>{{nickname}}</p><a href="{{unsubscribe_url}}">off</a>'
  const topic = await topicOf('Later')
  await contact('later@example.org', topic)
  const path = await draft({ template_id: await templateOf(html), topic_ids: topic, subject: 'Hi' })
  shows(t, await viewer.get(path), /would be skipped: no value for nickname/)
  await database.query(sql.unsafe`
    update broadcasts set state = 'sent', started_at = now(), audience = 1, link_base = 'x',
      template_version_id = (select version_id from templates t where t.id = template_id)
    where id = ${path.split('/').at(-1) ?? ''}`)
  const page = await viewer.get(path)
  shows(t, page, /Preview for later@example\.org Variables without a value show their names\./)
  t.notMatch(textOf(page.html), 'would be skipped')
  const all = await editor.get(`${path}/again`)
  shows(
    t,
    all,
    /Every contact would be skipped\. No contact has a value for nickname\. .*Contacts to be skipped .*Preview for later@example\.org This contact would be skipped/,
  )
  t.strictSame(
    [mainActs(all), formsTo(all, `${path}/again`)],
    [['Duplicate broadcast'], []],
    'nothing to send',
  )
  await contact('nick@example.org', topic, { nickname: 'Nick' })
  const some = await editor.get(`${path}/again`)
  shows(t, some, '1 contact would be skipped: no value for nickname')
  for (const words of [/Contacts that match now Contact Result/, /later@\S+ skipped: no value for nickname/])
    shows(t, some, words)
  shows(t, some, /nick@\S+ would receive it/)
  t.strictSame(mainActs(some), ['Send to 1 contact'])
  const [form] = formsTo(some, `${path}/again`)
  shows(t, await editor.ask(`${path}/again`, form), 'Send “Spring” to 1 more contact?')
  const fewer = await editor.ask(`${path}/again`, { ...form, lacking: 'x' })
  shows(t, fewer, 'Send “Spring” to 2 more contacts?')
})

t.test('an empty list of recipients names deleted emails', async (t) => {
  const own = await makeTeam(service)
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const broadcast = await aBroadcast(service, own)
  const people = `/teams/${own.id}/broadcasts/${broadcast.id}/people`
  shows(t, await reader.get(people), 'No recipients yet.')
  await broadcast.emails('old@example.net')
  await database.query(sql.unsafe`update email_states set status = 'bounced' where team_id = ${own.id}`)
  shows(t, await reader.get(people), /bounced old@example\.net/)
  await database.transaction(async (tx) => {
    const all = sql.fragment`select id from email_states where team_id = ${own.id}`
    await keepStats(tx, own.id, await deleteEmails(tx, own.id, all))
  })
  const words = 'These emails have been deleted. Their counts are kept.'
  shows(t, await reader.get(people), words)
  shows(t, await reader.get(`${people}?status=bounced`), words)
  shows(t, await reader.get(`${people}?status=clicked`), 'No recipient matches.')
})

t.test('creates, sends and evaluates a broadcast', async (t) => {
  const sink = await startSmtpSink(t)
  const topic = await topicOf('News')
  const other = await topicOf('Customers')
  const template_id = await templateOf('<p>Hello {{name}}</p><a href="{{unsubscribe_url}}">off</a>')
  await contact('ana@example.org', topic, { name: 'Ana', city: 'Graz' })
  await contact('ben@example.org', topic, { city: 'Graz' })
  await contact('vienna@example.org', topic, { name: 'Vi', city: 'Wien' })
  await contact('customer@example.org', other, { name: 'Cu', city: 'Graz' })
  const condition = { 'property.0': 'city', 'op.0': 'eq', 'value.0': 'Graz' }
  const path = await draft({ template_id, topic_ids: topic, ...condition })
  shows(t, await editor.get(`${path}/edit?step=audience`), /News \(3\).*Customers \(1\)/)
  const drafted = await editor.get(path)
  shows(t, drafted, /draft Draft: .*Topics News Conditions city is Graz/)
  shows(t, drafted, /Contacts 2 Missing a variable 1 Skipped: no value for name/)
  shows(t, drafted, 'Nothing is missing.')
  const asked = await editor.ask(`${path}/send`, formTo(drafted.html, `${path}/send`))
  shows(t, asked, 'Send “Spring” to 2 contacts of News?')
  const previewed = await editor.get(`${path}?contact=ana@example.org`)
  shows(t, previewed, /Preview for Ana .* Hi Ana/)
  t.match((await editor.get(`${path}/preview?contact=ana%40example.org`)).html, '<p>Hello Ana</p>')
  shows(t, await editor.get(`${path}?contact=ben@example.org`), /Preview for ben@.*no value for name/)
  t.match((await editor.get(`${path}/preview?contact=ben%40example.org`)).html, '<p>Hello [name]</p>')
  await startWorker(t, service, { smtp_url: sink.url })
  shows(
    t,
    await after(await editor.post(`${path}/test`, { to: 'me@example.net', contact: '' })),
    'A test is on its way.',
  )
  await until('the test is there', () => sink.messages().length === 1)
  t.same(sink.last().rcpt_to, ['me@example.net'])
  const many = Array.from({ length: 6 }, (_, nth) => `me${nth}@example.net`).join(', ')
  t.match(await editor.post(`${path}/test`, { to: many }), { status: 400 })
  const started = await after(await editor.press(path, `${path}/send`))
  shows(t, started, /Spring is being sent/)
  await until('it is sent', async () => textOf((await editor.get(path)).html).includes('sent Sent: '))
  const sent = await viewer.get(path)
  shows(
    t,
    sent,
    /Sent: 1 of 2 contacts, 1 skipped.*Audience 2 Sent 1 Delivered 0 your mail server doesn’t report deliveries Opened 0 Clicked 0 Bounced 0 0 % .* Skipped 1/,
  )
  t.match(sink.last().rcpt_to, ['ana@example.org'])
  shows(t, await viewer.get(`${path}/people?status=sent`), /sent Ana ana@example\.org/)
  shows(t, await viewer.get(`${path}/people?status=bounced`), 'No recipient matches.')
  shows(t, await viewer.get(`${path}/people`), /All emails 1 queued 0 sent 1 delivered 0 .* skipped 1 /)
  shows(t, await viewer.get(`${path}/skips`), /ben@example\.org No value for name/)
  t.match(
    (await viewer.get(`${path}/people.csv`)).html,
    /^\uFEFF?email,status,detail,[\s\S]*\r\nana@example\.org,sent,/,
  )
  t.match((await viewer.get(`${path}/skips.csv`)).html, /\r\nben@example\.org,variables,no value for name,/)
  const list = await viewer.get(at('broadcasts'))
  shows(t, list, /sent Spring 1 of 2 /)
  t.match(list.html, 'title="1 of 2 contacts, 1 skipped"')
  await contact('late@example.org', topic, { name: 'Late', city: 'Graz' })
  await call('PATCH', '/v1/contacts/ben@example.org', {
    key: team.key,
    body: { properties: { name: 'Ben', city: 'Graz' } },
  })
  const again = await editor.get(`${path}/again`)
  shows(
    t,
    again,
    /2 contacts match now and haven’t received it.* Cancel .*Contact Ben ben@example\.org Late late@example\.org .*Preview for Ben Acme <hello@example\.com> Hi Ben/,
  )
  t.strictSame(mainActs(again), ['Send to 2 contacts'])
  const before = sink.messages().length
  shows(t, await after(await editor.press(`${path}/again`, `${path}/again`)), /Spring is being sent/)
  await until('all of it is sent', async () => textOf((await editor.get(path)).html).includes('sent Sent: '))
  const more = sink.messages().slice(before)
  t.same(more.flatMap(({ rcpt_to }) => rcpt_to).sort(), ['ben@example.org', 'late@example.org'])
  shows(
    t,
    await viewer.get(path),
    /Sent: 3 of 3 contacts.*Of audience Contacts Of sent .*Audience 3 Sent 3 Delivered/,
  )
  const nobody = await editor.get(`${path}/again`)
  shows(t, nobody, 'All contacts that match now have already received it.')
  t.notMatch(nobody.html, 'Send to 0 contacts', 'what would be refused is not offered')
  t.equal((await editor.post(`${path}/again`)).status, 409)
  const actions = (await auditEntries(database, { team: team.id, limit: 10 })).map(({ action }) => action)
  for (const action of ['broadcast.create', 'broadcast.test', 'broadcast.start', 'broadcast.again'])
    t.ok(actions.includes(action), action)
})

t.test("a blocked draft's main action depends on the blocker", async (t) => {
  const topic_ids = await topicOf('Blocked')
  await contact('blocked@example.org', topic_ids, { first: 'B' })
  await contact('whole@example.org', topic_ids, { first: 'W', last: 'H' })
  const acts = async (fields: Record<string, string>) => mainActs(await editor.get(await draft(fields)))
  const template_id = await templateOf('<p>{{first}} {{last}} {{unsubscribe_url}}</p>')
  const good = { template_id, topic_ids, from: 'a@example.com', subject: 'Hi' }
  const path = await draft(good)
  const ready = await editor.get(path)
  t.strictSame(mainActs(ready), ['Send now'])
  shows(t, ready, 'Missing a variable 1 Skipped: no value for one of first, last')
  t.strictSame(await acts({ ...good, from: 'a@unverified.test' }), [], 'an edit of the message is no remedy')
  t.strictSame(await acts({ ...good, template_id: await templateOf('<p>Hi</p>') }), ['Edit message'])
  await database.query(sql.unsafe`delete from topics where id = ${topic_ids}`)
  const blocked = await editor.get(path)
  t.strictSame(mainActs(blocked), ['Edit audience'])
})

t.test('shows all problems before and after a rejected start', async (t) => {
  const empty = await topicOf('Nobody here')
  const template_id = await templateOf('<p>Hello</p>')
  const path = await draft({ template_id, topic_ids: empty, from: 'hello@other.test', subject: 'Hi' })
  const words =
    /From domain .*other\.test isn't verified in this team.*must contain the variable unsubscribe_url.*The audience is empty/
  const blocked = await editor.get(path)
  shows(t, blocked, words)
  t.strictSame(mainActs(blocked), ['Edit audience'])
  const refused = await editor.press(path, `${path}/send`)
  t.equal(refused.status, 409)
  shows(t, refused, words)
  const fields = { name: 'Summer', template_id, from: 'hello@example.com', subject: 'Hi', topic_ids: empty }
  await write(path, { ...fields, rate_per_minute: '60' })
  shows(t, await editor.get(path), /Summer.*at most 60 emails/)
  const odd = await editor.press(`${path}/edit?step=when`, `${path}/edit`, { rate_per_minute: 'many' })
  t.equal(odd.status, 400)
  shows(t, odd, /Maximum emails per minute must be a whole number/)
  shows(t, await after(await editor.post(`${path}/delete`)), 'The draft Summer was deleted.')
})

t.test('counts are cumulative: clicked includes opened, opened includes delivered', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  const [first = ''] = await broadcast.emails(
    ...Array.from({ length: 12 }, (_, nth) => `reader${nth}@example.net`),
  )
  await database.query(sql.unsafe`update broadcasts set audience = 12 where id = ${broadcast.id}`)
  await broadcast.moved({ queued: -11, delivered: 5, opened: 3, clicked: 2, bounced: 1 })
  const page = await viewer.get(path)
  shows(
    t,
    page,
    /45\.5 % opened, 18\.2 % clicked\. .*Audience 12 Not sent yet 1 Sent 11 Delivered 10 90\.9 % Opened 5 45\.5 % Clicked 2 18\.2 % Bounced 1 9\.1 % limit 5\.0 % /,
  )
  shows(t, page, /11 of 12 contacts.* 91 %\./)
  t.notMatch(page.html, 'class="tag bad"', 'too few emails for a limit')
  t.match(page.html, /<progress[^>]* value="11" max="12"|<progress[^>]* max="12" value="11"/)
  await database.query(sql.unsafe`
    update broadcasts set started_at = now() - interval '11 minutes' where id = ${broadcast.id}`)
  shows(t, await viewer.get(path), /91 %, about 1 email a minute, done in about 1 minute\./)
  await database.query(sql.unsafe`update email_states set status = 'clicked' where id = ${first}`)
  shows(t, await viewer.get(`${path}/people?status=opened`), /clicked reader0@example\.net/)
  await editor.post(`${path}/cancel`)
})

t.test('rates above their limits are red, and the alert names both', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  await broadcast.moved({ sent: 89, bounced: 10, complained: 1 })
  await database.query(sql.unsafe`
    update broadcasts set audience = 4690, state = 'paused', state_reason = 'bounces',
      brake = '{"left": 100, "count": 10, "limit": 5}' where id = ${broadcast.id}`)
  const page = await viewer.get(path)
  shows(
    t,
    page,
    /auto-paused .*Too many of its emails bounced: 10\.0 % of 100 emails, limit 5\.0 %\. Complaints are also above their limit: 1\.0 % of 100 emails, limit 0\.10 %\. Check the addresses .*Not sent yet 4,590 Sent 100 /,
  )
  const table = /<section[^>]*id="outcomes"[\s\S]*?<\/section>/.exec(page.html)?.[0] ?? ''
  t.match(table.match(/bad[^>]*>[\d.]+\s%/g), { length: 2 })
  await editor.post(`${path}/cancel`)
  shows(t, await viewer.get(path), / Not sent 4,590 Sent 100 /)
})

t.test('pauses, resumes and cancels a broadcast, with the remaining contacts', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('one@example.net', 'two@example.net')
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.ask(`${path}/pause`), 'Pause “News”')
  shows(t, await editor.ask(`${path}/cancel`), 'Keep broadcast')
  shows(
    t,
    await after(await editor.post(`${path}/pause`)),
    /News is paused.*paused Paused by editor-\S+, just now: 0 of 2 contacts/,
  )
  shows(
    t,
    await editor.ask(`${path}/resume`),
    /Resume “News” for [^?]*\? So far: 0 emails sent, 0 % bounced, 0 % reported as spam\./,
  )
  shows(t, await after(await editor.post(`${path}/resume`)), /News is being sent.*sending Being sent/)
  shows(t, await after(await editor.post(`${path}/cancel`)), /News is cancelled.*cancelled Cancelled/)
  const late = await editor.post(`${path}/pause`)
  t.equal(late.status, 409)
  shows(t, late, /The broadcast is cancelled/i)
})

t.test('uses the singular for one contact and one value', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('single@example.net')
  await database.query(sql.unsafe`update broadcasts set audience = 1 where id = ${broadcast.id}`)
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.ask(`${path}/pause`), 'before it is sent to the 1 remaining contact?')
  const [tile] = asTextTiles([{ property: 'spent', text: 1, all: 1 }])
  t.equal(tile?.detail, 'of 1 value isn’t a number')
  await editor.post(`${path}/cancel`)
})

t.test('shows who paused or resumed a broadcast, and when', async (t) => {
  const topic = await topicOf('History')
  const template_id = await templateOf('<p>History</p><a href="{{unsubscribe_url}}">off</a>')
  await contact('history@example.org', topic)
  const later = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 16)
  const planned = await draft({ template_id, topic_ids: topic, subject: 'Hi', send_at: later })
  await after(await editor.press(planned, `${planned}/send`))
  await after(await editor.press(planned, `${planned}/unschedule`))
  const who = editor.email.replaceAll('.', '\\.')
  shows(
    t,
    await viewer.get(planned),
    new RegExp(
      `What happened Made a draft again .* By ${who}\\. Scheduled .* By ${who}\\. Created .* By ${who}\\.`,
    ),
  )
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  const byKey = (verb: string) => call('POST', `/v1/broadcasts/${broadcast.id}/${verb}`, { key: team.key })
  await editor.post(`${path}/pause`)
  shows(t, await viewer.get(path), new RegExp(`paused Paused by ${who}, just now: 0 of 2 contacts`))
  await editor.post(`${path}/resume`)
  const resumed = new RegExp(`Resumed .* By ${who}\\. Paused .* By ${who}\\. Started .* Through the API\\.`)
  shows(t, await viewer.get(path), resumed)
  await byKey('pause')
  shows(t, await viewer.get(path), /Paused through the API, just now: .* Paused .* Through the API\. Resumed/)
  await database.query(sql.unsafe`
    update broadcasts set state_reason = 'bounces' where id = ${broadcast.id}`)
  shows(t, await viewer.get(path), /Paused automatically, just now: .*Auto-paused (?!.*Automatically)/)
  await byKey('cancel')
  shows(t, await viewer.get(path), /Cancelled through the API, just now: /)
  const other = await aBroadcast(service, team)
  await editor.post(at(`broadcasts/${other.id}/cancel`))
  const cancelled = await viewer.get(at(`broadcasts/${other.id}`))
  shows(t, cancelled, new RegExp(`Cancelled by ${who}, just now: `))
  t.match(cancelled.html, '<li class="plain"><strong>Cancelled</strong>', 'nothing went wrong')
  t.equal(textOf(cancelled.html).match(/By editor/g)?.length, 1, 'nothing of another broadcast')
})

t.test("start times are in the reader's time zone, or UTC", async (t) => {
  const template_id = await templateOf('<p>Zones</p>')
  const topic = await topicOf('Zones')
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
  const plain = await draft({ template_id, topic_ids: topic, send_at: `${tomorrow}T09:00` })
  const question = async () => {
    const form = formTo((await editor.get(plain)).html, `${plain}/send`)
    return textOf((await editor.ask(`${plain}/send`, form)).html)
  }
  const when = `${plain}/edit?step=when`
  t.match((await editor.get(when)).html, 'Start at (UTC time)')
  t.match(await question(), ` for ${utc(`${tomorrow}T09:00:00Z`)}?`)
  editor.cookies.set('heliograph-zone', 'Asia/Kolkata')
  const [field, zone] = [`name="send_at" type="datetime-local" value="${tomorrow}T14:30"`, 'Asia/Kolkata']
  t.match((await editor.get(when)).html, field, 'what is stored is shown in the zone')
  const form = { name: 'Spring', from: 'hello@example.com', subject: 'Hi', template_id, topic_ids: topic }
  const typed = { ...form, send_at: `${tomorrow}T18:00`, send_at_zone: zone }
  const refused = await editor.press(when, `${plain}/edit`, { ...typed, rate_per_minute: 'many' })
  t.match(refused.html, `value="${tomorrow}T18:00"`, 'as it was typed')
  t.match(refused.html, `name="send_at_zone" value="${zone}"`)
  t.equal((await editor.press(when, `${plain}/edit`, typed)).status, 303)
  t.match(await question(), `, 18:00 in Asia/Kolkata (${utc(`${tomorrow}T12:30:00Z`)})?`)
  editor.cookies.set('heliograph-zone', 'Asia/Nowhere')
  t.match(await editor.get(when), { status: 200, html: 'Start at (UTC time)' })
  editor.cookies.delete('heliograph-zone')
  t.equal(
    (await editor.press(when, `${plain}/edit`, { ...form, send_at: 'tomorrow', send_at_zone: zone })).status,
    400,
  )
})

t.test('warns about unfilled variables in every step', async (t) => {
  const topic = await topicOf('Unfilled')
  const html = '<p>{{first_name}} {{nick-name}} {{name}} {{email}}</p><a href="{{unsubscribe_url}}">off</a>'
  const fields = { template_id: await templateOf(html), topic_ids: topic, subject: 'For {{lang}}' }
  await contact('unfilled@example.org', topic, { name: 'Una' })
  const path = await draft(fields)
  const words = /No contact has the properties first_name, nick-name, lang\. Used in the message/
  for (const place of ['/edit?step=message', '/edit?step=audience', '/edit?step=when'])
    shows(t, await editor.get(`${path}${place}`), words)
  const skipping = await editor.get(path)
  shows(
    t,
    skipping,
    /Every contact would be skipped\. No contact has a value for first_name, nick-name, lang\. Set default/,
  )
  t.notMatch(textOf(skipping.html), words, 'the same fault is shown once')
  shows(
    t,
    await viewer.get(path),
    /Every contact would be skipped\. No contact has a value for .* nick-name, lang\. (?!Set)/,
  )
  t.strictSame(mainActs(skipping), ['Edit message'])
  await write(path, { ...fields, variables: 'first_name: friend\nlang: en' })
  shows(
    t,
    await editor.get(`${path}/edit?step=when`),
    /No contact has the property nick-name\. Used in the message/,
  )
  t.equal((await contact('nicknamed@example.org', topic, { 'nick-name': 'Nick' })).status, 201)
  const filled = await editor.get(path)
  t.notMatch(textOf(filled.html), /No contact has/)
  shows(t, filled, /Every contact would be skipped\. Each contact lacks a value for one of nick-name, name\./)
})

t.test('each state has one main action, and a scheduled one shows a forecast', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('main@example.net')
  const path = at(`broadcasts/${broadcast.id}`)
  for (const [state, act] of [
    ['sending', 'Pause broadcast'],
    ['paused', 'Resume broadcast'],
    ['scheduled', 'Send a test'],
    ['sent', 'Send to the rest'],
    ['cancelled', 'Send to the rest'],
    ['sent to all', 'Duplicate broadcast'],
  ] as const) {
    await broadcast.become(state.replace(' to all', ''))
    if (state === 'sent to all') {
      await broadcast.moved({ queued: -1, sent: 1 })
      await database.query(sql.unsafe`update broadcasts set audience = 1 where id = ${broadcast.id}`)
    }
    t.strictSame(mainActs(await editor.get(path)), [act], state)
    t.strictSame(mainActs(await viewer.get(path)), [], `${state}, for a viewer`)
  }
  const topic = await topicOf('To come')
  for (const [nth, name] of ['Ana', 'Ben', ''].entries())
    await contact(`come${nth}@example.org`, topic, name === '' ? {} : { name })
  const template_id = await templateOf('<p>To come</p><a href="{{unsubscribe_url}}">off</a>')
  const tomorrow = new Date(Date.now() + 86_500_000).toISOString().slice(0, 16)
  const planned = await draft({ template_id, topic_ids: topic, send_at: tomorrow, rate_per_minute: '1' })
  t.strictSame(mainActs(await editor.get(planned)), ['Schedule'])
  await after(await editor.press(planned, `${planned}/send`))
  // The version that was shown is sent, so later changes of the template don't matter.
  await editor.press(at(`templates/${template_id}`), at(`templates/${template_id}/draft`), {
    html: '<p>{{town}}</p>',
  })
  await editor.press(at(`templates/${template_id}/changes`), at(`templates/${template_id}/publish`))
  const page = await viewer.get(planned)
  shows(
    t,
    page,
    /Starts in 1 day \(\w{3}, [^)]*UTC\)\. Pause updates Forecast Contacts 3 match now\. The audience is chosen when it starts Missing a variable 1 Skipped: no value for name Takes about 3 minutes at 1 email a minute /,
  )
  t.notMatch(textOf(page.html), /Outcome|Before it can start/)
  await call('DELETE', '/v1/contacts/come0@example.org', { key: team.key })
  await editor.post(at(`topics/${topic}/rename`), { name: 'Came' })
  await call('DELETE', '/v1/contacts/come1@example.org', { key: team.key })
  const skipping = await editor.get(planned)
  shows(
    t,
    skipping,
    /Planned for .*UTC\. If nothing changes, it skips every contact and ends\. .*Before it can start Every contact would be skipped.*Contacts 0 of 1 contact that matches now would receive it/,
  )
  t.notMatch(textOf(skipping.html), /No contact has the property|Missing a variable/, 'shown once')
  t.strictSame(mainActs(skipping), ['Back to draft'])
  shows(t, skipping, /Preview for .* Starts \d+ \w+ \d+, [\d:]+ UTC in 1 day Template/)
  await call('DELETE', '/v1/contacts/come2@example.org', { key: team.key })
  shows(t, await viewer.get(planned), /Before it can start The audience is empty\./)
  await after(await editor.post(`${planned}/cancel`))
})

t.test('a broadcast cancelled before its start shows no start time', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await database.query(sql.unsafe`
    update broadcasts set name = 'Advent', state = 'scheduled', started_at = null, audience = null,
      send_at = now() + interval '2 hours' where id = ${broadcast.id}`)
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.get(at('broadcasts')), /scheduled Advent [^%]* in 1 hour/)
  shows(t, await editor.get(path), /Planned for \w{3}, .* UTC\. If nothing changes, it is paused then\./)
  await after(await editor.post(`${path}/cancel`))
  shows(t, await editor.get(at('broadcasts')), /cancelled Advent – – – – not started/)
  t.notMatch(textOf((await editor.get(path)).html), /begin|Planned for/i)
})

t.test('a scheduled broadcast becomes a draft again and is sent', async (t) => {
  const sink = await startSmtpSink(t)
  const topic = await topicOf('Unscheduled')
  const template_id = await templateOf('<p>Hi</p><a href="{{unsubscribe_url}}">off</a>')
  await contact('scheduled@example.org', topic)
  const later = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 16)
  const path = await draft({ template_id, topic_ids: topic, subject: 'Hi', send_at: later })
  shows(t, await after(await editor.press(path, `${path}/send`)), /Spring is scheduled.*scheduled Starts in/)
  await startWorker(t, service, { smtp_url: sink.url })
  const isEarly = sql.unsafe`
    select state::text from pgboss.job where name = 'expand-broadcast' and start_after > now() + interval '1 hour'`
  await until('its job waits for its time', async () => (await database.any(isEarly)).length === 1)
  shows(
    t,
    await after(await editor.press(path, `${path}/unschedule`)),
    /Spring is a draft again.*draft Draft:/,
  )
  t.equal((await editor.post(`${path}/unschedule`)).status, 409)
  const fields = { name: 'Spring', template_id, from: 'hello@example.com', subject: 'Hi', topic_ids: topic }
  await write(path, { ...fields, send_at: '' })
  shows(t, await after(await editor.press(path, `${path}/send`)), /Spring is being sent/)
  await until('it is sent', () => sink.messages().length === 1)
  const copied = await after(await editor.post(`${path}/duplicate`))
  shows(
    t,
    copied,
    /The draft Copy of Spring was created\..*draft Draft:.*Preview for .*hello@example\.com Hi .*Topics Unscheduled/,
  )
  const actions = (await auditEntries(database, { team: team.id, limit: 10 })).map(({ action }) => action)
  t.ok(actions.includes('broadcast.unschedule'))
})

t.test('requeues the failed emails of one broadcast only', async (t) => {
  let isRefusing = true
  const onRcpt = (to: string) =>
    isRefusing && to.startsWith('no') ? '552 5.3.4 too large for me' : undefined
  const sink = await startSmtpSink(t, { onRcpt })
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  const [broadcast, other] = [await aBroadcast(service, team), await aBroadcast(service, team)]
  await broadcast.emails('no@example.net', 'yes@example.net')
  await other.emails('no-other@example.net')
  await until('all had their turn', async () => {
    const [one, two] = [await broadcast.figures(), await other.figures()]
    return one.bounced === 1 && one.sent === 1 && two.bounced === 1
  })
  isRefusing = false
  const page = await editor.get(at(`broadcasts/${broadcast.id}`))
  shows(t, page, 'Send failed emails again')
  shows(t, page, /Why emails bounced The message is too large for the server 1/)
  const found = await cli.json([
    ...['email', 'requeue', team.id, '--broadcast', broadcast.id, '--force', '--dry-run'],
  ])
  t.match(found, { requeued: 1, dry_run: true })
  const all = await editor.get(at(`emails/all?broadcast=${broadcast.id}`))
  shows(
    t,
    all,
    /Bulk actions: emails of “[^”]+” 2 emails\. Emails that start to match later aren’t affected\./,
  )
  t.match(all.html, new RegExp(`class="back"><a href="[^"]*/broadcasts/${broadcast.id}"`))
  const none = await editor.get(at(`emails/all?broadcast=${broadcast.id}&status=clicked`))
  shows(t, none, /0 emails, Status: clicked\. No emails match/)
  const listed = await editor.get(at(`emails?broadcast=${broadcast.id}`))
  t.notMatch(textOf(listed.html), broadcast.id, 'its name and not its ID')
  const [fields = {}] = formsTo(all, at('emails/all/requeue'))
  t.equal((await editor.post(at('emails/all/requeue'), { ...fields, force: 'refused' })).status, 303)
  await until('it is sent', async () => (await broadcast.figures()).sent === 2)
  t.strictSame(await other.figures(), { made: 1, bounced: 1 })
  t.strictSame(await broadcast.figures(), { made: 2, sent: 2 })
  await worker.stop()
})

t.test('keeps the edit of a draft that was scheduled since', async (t) => {
  const { contacts, create, post } = await broadcastingOf(service, team)
  await contacts(['kept'])
  const id = await create()
  const person = await signedIn(service, { team: team.id, role: 'editor' })
  const edit = `/teams/${team.id}/broadcasts/${id}/edit`
  const form = formTo((await person.get(edit)).html, edit)
  t.match((await post(id, 'send')).body, { id })
  const sent = await person.post(edit, { ...form, subject: 'Typed for an hour', next: 'save' })
  t.ok(sent.status >= 400, `${sent.status}`)
  shows(t, sent, 'Subject Typed for an hour')
  t.notMatch(sent.html, />csrf</i)
})

t.test('filters by state, and tells manual and automatic pauses apart', async (t) => {
  const own = await makeTeam(service)
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const list = `/teams/${own.id}/broadcasts`
  t.notMatch((await reader.get(list)).html, 'state&#x3D;draft', 'no filter for an empty list')
  const [manual, automatic, sent] = [
    await aBroadcast(service, own),
    await aBroadcast(service, own),
    await aBroadcast(service, own),
  ]
  const name = (id: string, words: string) =>
    database.query(sql.unsafe`update broadcasts set name = ${words} where id = ${id}`)
  await Promise.all([name(manual.id, 'By hand'), name(automatic.id, 'Stopped'), name(sent.id, 'Done')])
  await database.query(sql.unsafe`
    update broadcasts set state = 'paused', state_reason = case when id = ${automatic.id} then 'bounces' end
    where id = any(${sql.array([manual.id, automatic.id], 'uuid')})`)
  await sent.emails('a@example.net', 'b@example.net', 'c@example.net', 'd@example.net')
  await sent.moved({ queued: -4, opened: 2, clicked: 1, delivered: 1 })
  await sent.become('sent')
  const opened = '4 of 2 75\\.0 %'
  const all = await reader.get(list)
  shows(t, all, new RegExp(`sent Done ${opened} 0 % 0 % .*auto-paused Stopped .* – – .*paused By hand`))
  const paused = await reader.get(`${list}?state=paused`)
  shows(t, paused, /Stopped.*By hand/)
  t.notMatch(textOf(paused.html), 'Done')
  await sent.moved({ bounced: 46 })
  t.match((await reader.get(list)).html, /class="tag bad">92\.0\s%</, 'too many bounced')
  shows(t, await reader.get(`${list}?state=draft`), 'No broadcast matches.')
  t.equal((await reader.get(`${list}?state=gone`)).status, 400)
})

t.test('a list without rows offers no file', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  for (const list of ['people', 'skips'])
    t.notMatch((await viewer.get(`${path}/${list}`)).html, 'Export as CSV', list)
  await broadcast.emails('listed@example.net')
  t.match((await viewer.get(`${path}/people`)).html, 'Export as CSV')
  await broadcast.become('cancelled')
})
