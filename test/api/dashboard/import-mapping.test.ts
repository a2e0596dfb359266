/** Uploaded files before their import: mapping, check and start. Also imports of suppressions. */
import { createTopic, removeTopic } from '../../../db/audience/contacts/topics.ts'
import { showContact, showSuppression } from '../../../db/audience/suppressions/lift.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { erasePerson } from '../../support/erase.ts'
import { formTo } from '../../support/forms.ts'
import { startImportPages } from '../../support/import-pages.ts'
import { byCli } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const pages = await startImportPages(t)
const { service, database, call, team, lastEntry, editor, at, importPath, known, create } = pages
const { uploaded, imported } = pages
const news = await createTopic(byCli(database), team.id, { name: 'News' })

const mapping = (columns: Record<string, string>, more: Record<string, string | string[]> = {}) => ({
  ...Object.fromEntries(
    Object.values(columns).flatMap((choice, index) => {
      const [to = '', name = Object.keys(columns)[index] ?? ''] = choice.split('=')
      return [
        [`column.${index}`, to],
        [`name.${index}`, name],
      ]
    }),
  ),
  merge: 'no',
  ...more,
})

t.test('maps columns to properties and topics as previewed', async (t) => {
  await create('old@example.com', { plan: 'gold', city: 'Linz' })
  const lines =
    'new@example.com;Köln;yes;7 old@example.com;Graz;;8 odd@example.com;Wien;maybe;9 nobody;;;'.split(' ')
  const text = `E-Mail Address;Ort;Newsletter;Customer No.\n${lines.join('\n')}\n`
  const draft = await uploaded(new Uint8Array(Buffer.from(text, 'latin1')))
  const page = await editor.get(draft)
  shows(t, page, /Records 4 records .* Encoding Windows-1252 Separated by semicolons/)
  shows(t, page, /Köln · Graz · Wien/)
  t.match(page.html, /name="column\.0"[^>]*>\s*<option value="email" selected>/)
  t.match(page.html, /name="name\.1"[^>]* value="Ort"/)
  const columns = { Mail: 'email', Ort: 'property=city', Newsletter: `topic:${news.id}`, No: 'ignore' }
  const sent = await editor.post(draft, mapping(columns, { merge: 'yes' }))
  t.equal(sent.location, `${draft}/check`)
  const check = await editor.get(`${draft}/check`)
  shows(t, check, /New contacts 1 of 4 records Updated 1 .*merged Repeated 0 .*Rejected 2/)
  shows(t, check, /4 Newsletter maybe Must be yes or no 5 E-Mail Address nobody Must be an email address/)
  shows(
    t,
    check,
    /Properties Ort as city Subscribed to News when Newsletter is “yes” Not imported Customer No\./,
  )
  t.equal(await known('new@example.com'), null, 'trying has changed nothing')
  shows(t, await editor.get(importPath), /people\.csv open to continue · by \S+ not started \d+ records?/)
  const done = await imported(draft)
  shows(t, done, /2 contacts stored\. Show them 2 records rejected/)
  t.match(await known('new@example.com'), { properties: { city: 'Köln' }, topic_ids: [news.id] })
  t.match(await known('old@example.com'), { properties: { plan: 'gold', city: 'Graz' }, topic_ids: EMPTY })
  const { html: rejected } = await editor.get(`${draft}/refused.csv`)
  t.match(rejected, /\r\nodd@example\.com,Wien,maybe,9,4,Newsletter must be yes or no\r\n/)
  t.match(await lastEntry(), { action: 'contact.import', subject: 'people.csv', detail: '2 rejected' })
  shows(t, await editor.post(`${draft}/start`), /This upload no longer exists\. It was imported/)
})

t.test("doesn't start an import whose columns a colleague has changed", async (t) => {
  const colleague = await signedIn(service, { team: team.id, role: 'editor' })
  await create('seen@example.com', { plan: 'gold' })
  const draft = await uploaded('email,town\nseen@example.com,Linz\n')
  const columns = { email: 'email', town: 'property' }
  await editor.post(draft, mapping(columns, { merge: 'yes' }))
  const form = formTo((await editor.get(`${draft}/check`)).html, `${draft}/start`)
  await colleague.post(draft, mapping(columns, { merge: 'no' }))
  const refused = await editor.post(`${draft}/start`, form)
  t.equal(refused.status, 409)
  shows(t, refused, /Someone else has changed the columns since this page was opened/)
  shows(t, await editor.get(importPath), /people\.csv open to continue · by \S+ not started \d+ records?/)
  await editor.post(draft, mapping(columns, { merge: 'yes' }))
  t.equal((await editor.press(`${draft}/check`, `${draft}/start`)).status, 303)
  const { stop } = await startWorker(t, service)
  await until('it is over', async () => /Done/.test((await editor.get(draft)).html))
  await stop()
  t.match(await known('seen@example.com'), { properties: { plan: 'gold', town: 'Linz' } })
})

t.test("an import doesn't resubscribe an erased contact to left topics", async (t) => {
  const body = { email: 'left@example.com', topic_ids: [news.id] }
  await call('POST', '/v1/contacts', { key: team.key, body })
  await call('POST', '/v1/marketing/unsubscribe', { key: team.key, body })
  await erasePerson({ ...service.deps, database }, team.id, 'left@example.com')
  const others = Array.from({ length: 1_000 }, (_, at) => `other${at}@example.com,no\n`).join('')
  const draft = await uploaded(
    `email,News\nleft@example.com,yes\nstays@example.com,yes\n${others}left@example.com,yes\n`,
  )
  await editor.post(draft, mapping({ email: 'email', News: `topic:${news.id}` }))
  shows(t, await imported(draft), /1,002 contacts stored/)
  t.match(await known('left@example.com'), { status: 'subscribed', topic_ids: EMPTY })
  t.match(await known('stays@example.com'), { topic_ids: [news.id] })
  const again = await uploaded('email,News\nleft@example.com,yes\n')
  await editor.post(again, mapping({ email: 'email', News: `topic:${news.id}` }))
  await imported(again)
  const left = await known('left@example.com')
  t.match(left, { topic_ids: [news.id] }, 'a contact that there is gets what it is given')
})

t.test('merges properties unless the others are deleted', async (t) => {
  const store = (email: string) => create(email, { plan: 'gold', city: 'Linz' })
  await store('merged@example.com')
  const file = 'email,city\nmerged@example.com,Graz\n'
  const draft = await uploaded(file)
  const form = formTo((await editor.get(draft)).html, draft)
  t.strictSame(form.merge, ['yes'])
  await imported(draft)
  t.strictSame((await known('merged@example.com'))?.properties, { plan: 'gold', city: 'Graz' })
  const again = await uploaded(file)
  const { merge: _, ...without } = form
  await editor.post(again, without)
  shows(t, await editor.get(`${again}/check`), 'properties merged')
  await editor.post(again, { ...form, merge: 'no' })
  await imported(again)
  t.strictSame((await known('merged@example.com'))?.properties, { city: 'Graz' })
})

t.test('counts the contacts that would be imported, not the rows', async (t) => {
  const draft = await uploaded('email,city\nsame@example.com,Graz\nnobody,Wien\nsame@example.com,Linz\n')
  const label = async () => />(Import \d[^<]*)</.exec((await editor.get(`${draft}/check`)).html)?.[1]
  t.equal(await label(), 'Import 1 contact')
  await editor.post(`${draft}/discard`)
  const list = await uploaded('email\nsame@example.com\nsome@example.com\n', at('suppressions', 'import'))
  await editor.post(list, mapping({ email: 'email' }, { as: 'bounced', reason: 'from the old service' }))
  t.match((await editor.get(`${list}/check`)).html, '>Import 2 addresses<')
  await editor.post(`${list}/discard`)
})

t.test('offers an example file that can be imported', async (t) => {
  for (const [path, counts] of [
    [importPath, /New contacts 2 of 2 records/],
    [at('suppressions', 'import'), /Newly suppressed 2 of 2 records/],
  ] as const) {
    const { html } = await editor.get(path)
    const [, example = ''] = /href="\/dashboard([^"]*)">Example CSV</.exec(html) ?? []
    const file = await editor.get(example)
    t.match(file.headers.get('content-disposition'), /^attachment; filename="example-/)
    const draft = await uploaded(file.html, path)
    const form = formTo((await editor.get(draft)).html, draft)
    await editor.post(draft, path === importPath ? form : { ...form, reason: 'from the old service' })
    shows(t, await editor.get(`${draft}/check`), counts)
    await editor.post(`${draft}/discard`)
  }
})

t.test('properties are replaced, or merged up to the limit', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 99 }, (_, index) => [`p${index}`, 'x']))
  await create('full@example.com', many)
  const file = 'email,a,b\nfull@example.com,1,2\nfull@example.com,,3\n'
  const columns = { email: 'email', a: 'property', b: 'property' }
  const added = await uploaded(file)
  await editor.post(added, mapping(columns, { merge: 'yes' }))
  shows(t, await editor.get(`${added}/check`), /Rejected 1 .* 2 – – Properties must have at most 100 keys/)
  shows(t, await imported(added), /1 contact stored\. Show them 1 record rejected/)
  t.strictSame((await known('full@example.com'))?.properties, { ...many, b: '3' })
  const replaced = await uploaded(file)
  await editor.post(replaced, mapping(columns, { topic_ids: news.id }))
  await imported(replaced)
  t.match(await known('full@example.com'), { topic_ids: [news.id] })
  t.strictSame((await known('full@example.com'))?.properties, { b: '3' })
})

t.test("warns about properties that templates can't use", async (t) => {
  const draft = await uploaded('email,Kunde seit,Straße,Umsatz €\na@example.com,2019,Ring,7\n')
  const { html } = await editor.get(draft)
  const warned = [
    ...html.matchAll(/class="hint warn" id="[^"]*name\.(\d)-hint">No template can use this name\./g),
  ]
  const columnsWarned = warned.map(([, column]) => column)
  t.strictSame(columnsWarned, ['1', '3'], 'at their fields')
  const check = await editor.get(`${draft}/check`)
  shows(t, check, /No template can use “Kunde seit”, “Umsatz €”\. Use only letters, .* Change columns/)
  t.ok(check.html.includes(`href="/dashboard${draft}">Change columns`))
  const columns = { email: 'email', a: 'property=since', b: 'property=Straße', c: 'ignore' }
  t.equal((await editor.post(draft, mapping(columns))).status, 303)
  t.notMatch(textOf((await editor.get(`${draft}/check`)).html), 'No template can use')
  await editor.post(`${draft}/discard`)
})

t.test('rejects an invalid mapping and keeps the choices', async (t) => {
  const draft = await uploaded('email,city,town\na@example.com,Graz,Graz\n')
  const cases: [Record<string, string>, RegExp][] = [
    [
      { email: 'ignore', city: 'property', town: 'property' },
      /Choose the column that contains the email address/,
    ],
    [{ email: 'email', city: 'email', town: 'ignore' }, /Two columns are mapped to the email address/],
    [
      { email: 'email', city: 'property', town: 'property=city' },
      /Property name for town is already the name of another property/,
    ],
    [{ email: 'email', city: 'property= ', town: 'ignore' }, /Property name for city must not be empty/],
    [
      { email: 'email', city: `property=${'n'.repeat(129)}`, town: 'ignore' },
      /Property name for city must have at most 128 characters/,
    ],
    [{ email: 'email', city: `topic:${team.id}`, town: 'ignore' }, /A topic you chose has been deleted/],
    [{ email: 'email', city: 'topic:x', town: 'ignore' }, /A topic you chose has been deleted/],
    [{ email: 'email', city: 'status=', town: 'everything' }, /Choose again how to import column 3/],
  ]
  for (const [columns, words] of cases) {
    const answer = await editor.post(draft, mapping(columns, { merge: 'yes' }))
    t.equal(answer.status, 400, JSON.stringify(columns))
    shows(t, answer, words)
    t.match(answer.html, /value="yes" checked/, 'what was chosen is kept')
  }
  shows(t, await editor.get(`${draft}/check`), /Properties city, town/)
  const odd = await uploaded('name,city\nAna,Graz\n')
  t.equal((await editor.get(`${odd}/check`)).status, 400)
  t.equal((await editor.post(`${odd}/start`)).status, 400)
  for (const path of [draft, odd]) await editor.post(`${path}/discard`)
})

t.test("doesn't start an import if a chosen topic was deleted", async (t) => {
  const gone = await database.transaction((tx) => createTopic(byCli(tx), team.id, { name: 'Gone' }))
  const draft = await uploaded('email,News\ntopicless@example.com,yes\n')
  await editor.post(draft, mapping({ email: 'email', News: `topic:${gone.id}` }))
  await database.transaction((tx) => removeTopic(byCli(tx), team.id, gone.id))
  const started = await editor.post(`${draft}/start`)
  t.equal(started.status, 400)
  shows(t, started, /A topic you chose has been deleted\. Choose the topics again/)
  await editor.post(draft, mapping({ email: 'email', News: `topic:${news.id}` }))
  await imported(draft)
  t.match(await known('topicless@example.com'), { topic_ids: [news.id] })
})

t.test('imports suppressions with their own reason or the chosen one', async (t) => {
  const loud = { email: 'loud@example.net', properties: { city: 'Graz' } }
  await create(loud.email, loud.properties)
  const file =
    'Address,Status,Detail\na@example.net,HardBounce,550 gone\nloud@example.net,SpamComplaint,\nb@example.net,,\nc@example.net,asleep,\n'
  const draft = await uploaded(file, at('suppressions', 'import'))
  const columns = { a: 'email', b: 'status', c: 'reason' }
  shows(t, await editor.post(`${draft}/start`), /Enter the reason for the suppression/)
  shows(t, await editor.post(draft, mapping(columns, { as: 'complained', reason: '' })), /Reason must have/)
  await editor.post(draft, mapping(columns, { as: 'complained', reason: 'from the old service' }))
  const check = await editor.get(`${draft}/check`)
  shows(t, check, /Newly suppressed 3 .*Rejected 1/)
  shows(t, check, /5 Status asleep Must be bounced or complained/)
  shows(t, await imported(draft), /3 addresses suppressed\. Show suppressions 1 record rejected/)
  const cause = async (email: string) => {
    const { cause, response } = await showSuppression(database, team.id, email)
    return { cause, response }
  }
  const response = 'from the old service'
  t.match(await cause('a@example.net'), { cause: 'bounce', response: '550 gone' })
  t.match(await cause('loud@example.net'), { cause: 'complaint', response })
  t.match(await cause('b@example.net'), { cause: 'complaint', response })
  t.equal(await known('a@example.net'), null, 'it makes no contacts')
  t.match(await showContact(database, team.id, loud.email), { ...loud, status: 'complained' })
  t.equal(await known('c@example.net'), null)
  t.match(await lastEntry(), {
    actor: editor.email,
    action: 'suppression.import',
    detail: 'complained: from the old service; 1 rejected',
  })
  const { html: own } = await editor.get(at('suppressions.csv'))
  for (const email of ['a', 'loud', 'b'])
    await editor.post(at('contacts', `${email}@example.net`, 'lift'), { reason: 'once more' })
  const again = await uploaded(own, at('suppressions', 'import'))
  const ours = { email: 'email', status: 'status', cause: 'ignore', since: 'ignore', words: 'reason' }
  await editor.post(again, mapping(ours, { as: 'bounced', reason: 'brought back' }))
  shows(
    t,
    await imported(again),
    /Newly suppressed 3 .*3 addresses suppressed\. Show suppressions Rejected records No records were rejected/,
  )
  t.match(await cause('a@example.net'), { cause: 'bounce', response: '550 gone' })
  t.match(await cause('loud@example.net'), { cause: 'complaint' })
})

t.test('reuses the mapping for the same columns, without deleted topics', async (t) => {
  const topic = (await database.transaction((tx) => createTopic(byCli(tx), team.id, { name: 'Gone' }))).id
  const file = 'who,what,where\nx@example.org,yes,Graz\n'
  const columns = { who: 'email', what: `topic:${topic}`, where: 'property=city' }
  const first = await uploaded(file)
  await editor.post(first, mapping(columns, { merge: 'yes', topic_ids: topic }))
  await imported(first)
  const chosen = async (path?: string) => {
    const { html } = await editor.get(await uploaded(file, path))
    return [...html.matchAll(/<option value="([^"]+)" selected>/g)].map(([, value]) => value)
  }
  t.strictSame(await chosen(), ['email', `topic:${topic}`, 'property'])
  t.strictSame(await chosen(at('suppressions', 'import')), ['ignore', 'ignore', 'ignore'])
  await editor.post(at('topics', topic, 'delete'))
  const again = await uploaded(file)
  const { html } = await editor.get(again)
  t.match(html, /<option value="ignore" selected>/)
  t.match(html, /name="name\.2"[^>]* value="city"/)
  t.match(html, /value="yes" checked/)
  t.match((await imported(again)).html, /1 contact stored/, 'a topic that is gone is given to nobody')
})
