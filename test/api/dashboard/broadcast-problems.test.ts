/** Warnings before a broadcast starts, with their links and main actions. */
import { sql } from 'slonik'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { formsTo, mainActs, shows, textOf } from '../../support/dashboard.ts'
import t from '../../support/tap.ts'

const { database, editor, viewer, at, after, topicOf, contact, templateOf, write, draft } =
  await startBroadcastPages(t)

t.test('an empty audience is red, above the buttons', async (t) => {
  const path = await draft({ template_id: await templateOf('<p>0</p>'), topic_ids: await topicOf('Empty') })
  const { html } = await editor.get(`${path}/edit?step=audience`)
  t.match(html, /<section id="audience"[\s\S]*<li class="bad">[\s\S]*<div class="submit">[\s\S]*Continue/)
  t.match(html, /Conditions \(optional\)[\s\S]*name="property\.0"/)
  shows(t, { html }, 'Contacts 0 match, so no one would receive it. No contact has the chosen topic.')
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
  for (const words of [
    /Contacts that match now Contact Why it wasn’t sent Result/,
    /later@\S+ Didn’t match but matches now skipped: no value for nickname/,
  ])
    shows(t, some, words)
  shows(t, some, /nick@\S+ Didn’t match but matches now would receive it/)
  t.strictSame(mainActs(some), ['Send to 1 contact'])
  const [form] = formsTo(some, `${path}/again`)
  shows(t, await editor.ask(`${path}/again`, form), 'Send “Spring” to 1 more contact?')
  const fewer = await editor.ask(`${path}/again`, { ...form, lacking: 'x' })
  shows(t, fewer, 'Send “Spring” to 2 more contacts?')
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
  const seen = await viewer.get(path)
  shows(t, seen, /Every contact would be skipped\. No contact has a value for .* nick-name, lang\. (?!Set)/)
  t.strictSame(mainActs(skipping), ['Edit message'])
  await write(path, { ...fields, variables: 'first_name: friend\nlang: en' })
  const step = await editor.get(`${path}/edit?step=when`)
  shows(t, step, /No contact has the property nick-name\. Used in the message/)
  t.equal((await contact('nicknamed@example.org', topic, { 'nick-name': 'Nick' })).status, 201)
  const filled = await editor.get(path)
  t.notMatch(textOf(filled.html), /No contact has/)
  shows(t, filled, /Every contact would be skipped\. Each contact lacks a value for one of nick-name, name\./)
})
