/** The steps of a draft of a broadcast, with their errors, previews and start times. */
import { utc } from '../../../api/dashboard/components/cell.ts'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { mainActs, type Seen, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, team, editor, viewer, at, after, topicOf, contact, templateOf, draft } =
  await startBroadcastPages(t)

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
  const added = /<details><summary>Add a condition<\/summary>[\s\S]*name="property\.1"/
  t.match(audience.html, added, 'a blank condition is folded')
  t.notMatch(odder.html, added)
  t.match(textOf(audience.html), /at least 1 topic\. Value must be/, 'on top')
  t.match(textOf(odder.html), / Value 2 must be/, 'on top')
  t.notMatch(textOf(audience.html + odder.html), /where\[|value\.\d/i)
  const wide = { topic_ids: topic, 'property.1': 'x'.repeat(129), 'value.1': 'x' }
  const tooLong = fault(await step('audience', 'when', wide), 'property\\.1')
  t.match(tooLong, /^Property 2 must be a string of 1 to/)
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
  shows(t, await editor.get(at('broadcasts')), /Three draft –/)
  const left = await editor.get(path.replace('/edit', ''))
  shows(t, left, /Before it can start No topic is selected, so no one would receive it.* Contacts 0 /)
  t.strictSame(mainActs(left), ['Choose the audience'])
  const done = [...left.html.matchAll(/<li class="good"><a href="[^"]*">(\w+)/g)].map(([, step]) => step)
  t.strictSame(done, ['Message', 'When'], 'the audience is missing')
  const early = await editor.get(`${path}?step=when`)
  shows(t, early, /Audience \(to do\) .* Contacts 0 /)
  t.match(early.html, /<strong><a href="[^"]*step&#x3D;audience">0</, 'the way to the cause')
  t.notMatch((await viewer.get(path.replace('/edit', ''))).html, 'class="stepper"')
  const id = path.split('/').at(-2)
  t.match((await call('POST', `/v1/broadcasts/${id}/send`, { key: team.key })).body, {
    error: { message: /No topic is selected, so no one would receive it./ },
  })
  const more = { topic_ids: topic, 'property.0': 'spent', 'op.0': 'gt', 'value.0': '5000' }
  const counted = await step(audience, 'audience', more)
  shows(t, counted, /Contacts 3 .*“spent” compared as text 2 of 4 values aren’t numbers/)
  const none = await step(audience, 'audience', { ...more, 'op.0': 'eq', 'value.0': '7' })
  shows(t, none, /Contacts 0 match, so [^.]*\. Without the conditions, 4 contacts would match\./)
  const empty = await step(audience, 'audience', { ...more, topic_ids: other })
  shows(t, empty, /Contacts 0 match, so [^.]*\. No contact has the chosen topic\. Continue/)
  const uncounted = await step(counted, 'audience', { 'op.0': 'in', 'value.0': '' })
  shows(t, uncounted, /Not counted\. Value must be an array of 1 to 100 strings/)
  shows(t, await step(counted, 'audience', { 'op.0': 'exists', exclude_topic_ids: other }), 'Contacts 4')
  const saidOf = async () => (await call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body
  t.match(await saidOf(), { name: 'Three', topic_ids: EMPTY, where: EMPTY }, 'counting stores nothing')
  const back = await after(await step(audience, 'message', {}))
  t.match(back.html, /<h2>Message[\s\S]*name="subject" type="text" value="Hi"/)
  t.match(back.html, /<details open><summary>More options<\/summary>[\s\S]*name="tags"[\s\S]*>Continue</)
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
  shows(t, page, 'Preview Choose a template and continue to see the email.')
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
  const shown = await editor.get(edit)
  shows(t, shown, 'Enter "" for an empty text.')
  const ownLine = /<strong>Default values of variables \(optional\)<\/strong><br> <small>Used if /
  t.match(shown.html, ownLine, 'the hint has its own line')
  const { html: audience } = await editor.get(`${edit}?step=audience`)
  t.match(audience, /<strong>Conditions \(optional\)<\/strong><br> <small>A contact must match all/)
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
  const { html } = await editor.get(audience)
  t.match(html, '>\nGraz\n&quot;Wien, Land&quot;\nLinz\na &quot;b&quot; c</textarea>')
})

t.test('the last step shows when the broadcast starts and how long it takes', async (t) => {
  const topic = await topicOf('Planned')
  for (const nth of [1, 2, 3]) await contact(`planned${nth}@example.org`, topic)
  const path = await draft({ template_id: await templateOf('<p>Plan</p>'), topic_ids: topic })
  const step = `${path}/edit?step=when`
  const last = await editor.get(step)
  shows(t, last, /← Draft Spring .*Starts at once after you confirm/)
  const audienceDone = /Audience<\/a><span class="vh"> \(done\)/
  t.match(last.html, audienceDone)
  shows(t, last, 'after you confirm the review Contacts 3 ')
  const none = await topicOf('Planned for no one')
  const empty = await draft({ template_id: await templateOf('<p>No plan</p>'), topic_ids: none })
  const unmatched = await editor.get(`${empty}/edit?step=when`)
  t.match(unmatched.html, /Message<\/a><span class="vh"> \(done\)/)
  t.notMatch(unmatched.html, audienceDone, 'no one matches')
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
