/**
 * Email templates on the dashboard: drafts, previews, tests, publishing, versions and their audit entries.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { saveDraft } from '../../../db/content/templates/draft.ts'
import { removeTemplate } from '../../../db/content/templates/remove.ts'
import { saveTemplate, updateTemplate } from '../../../db/content/templates/save.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { after, framedIn, mainActs, type Seen, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { insertEmailRows } from '../../support/email-rows.ts'
import { formTo } from '../../support/forms.ts'
import { hold } from '../../support/held.ts'
import { openPool } from '../../support/pool.ts'
import { lockWaits } from '../../support/rows.ts'
import { anEmail, byCli, makeTeam, sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { uuidAt } from '../../support/uuid-sql.ts'
import { until } from '../../support/worker.ts'

const { service, call, database, team } = await world(t)
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const at = (path: string): string => `/teams/${team.id}/${path}`
const entries = async (subject: string) =>
  (await auditEntries(database, { team: team.id, limit: 50 }))
    .filter((entry) => entry.subject === subject)
    .map(({ action, actor }) => `${action} ${actor}`)

/** Returns the value of a hidden field. */
const hiddenIn = ({ html }: Pick<Seen, 'html'>, name: string): string =>
  new RegExp(`name="${name}" value="([^"]+)"`).exec(html)?.[1] ?? ''

/** Creates a template. @returns the path of its page. */
async function makeTemplate(name: string, html: string, text = ''): Promise<string> {
  const { location } = await editor.post(at('templates'), { name, html, text })
  return location ?? ''
}

/** Saves a draft like the editor's form. */
async function draft(person: typeof owner, path: string, html: string, text = '') {
  const seen = hiddenIn(await person.get(path), 'seen')
  return after(person, await person.post(`${path}/draft`, { html, text, seen }))
}

/** Returns the draft and the version in the form that publishes a template's draft. */
async function tokens(path: string) {
  const page = await editor.get(`${path}/changes`)
  return { draft: hiddenIn(page, 'draft'), version: hiddenIn(page, 'version') }
}

const idOf = (path: string): string => path.split('/').at(-1) ?? ''

/** Sends an email with the template. @returns its HTML. */
async function sentWith(path: string, variables: Record<string, string> = {}): Promise<string> {
  const body = anEmail({ html: undefined, template_id: idOf(path), variables })
  return (await call('POST', '/v1/emails', { key: team.key, body })).body.html
}

t.test('creates, previews and tests a template', async (t) => {
  const path = await makeTemplate('Welcome', '<p>Hi {{name}}</p>', 'Hi {{name}}')
  const frame = await viewer.get(`${path}/preview?v.name=%3Cscript%3E`)
  t.equal(framedIn(frame), '<p>Hi &lt;script&gt;</p>')
  shows(t, await viewer.get(`${path}?v.name=Ana`), /Welcome published .*Hi Ana/)
  await editor.post(`${path}/test`, { from: 'hello@example.com', 'v.name': 'Ana' })
  const list = await editor.get(`${at('emails')}?recipient=${editor.email}`)
  shows(t, list, /Test: Welcome Welcome/)
  t.equal((await editor.post(at('templates'), { name: 'Bad', html: '{{#each}}', text: '' })).status, 400)
  const twin = await editor.post(at('templates'), { name: 'Welcome', html: '<p>x</p>', text: '' })
  t.equal(twin.status, 400)
  shows(t, twin, 'already has a template "Welcome"')
})

t.test('sends only use a draft after it is published', async (t) => {
  const path = await makeTemplate('Offer', '<p>Hi {{name}}</p>')
  const saved = await draft(editor, path, '<p>Dear {{name}}</p>', 'Dear {{name}}')
  shows(t, saved, /The draft is saved\..*Offer unpublished changes/)
  shows(t, await viewer.get(path), new RegExp(`Saved by ${editor.email}, just now`))
  shows(t, await viewer.get(at('templates')), /Welcome 1 .*Offer unpublished changes 0 never/)
  t.equal(await sentWith(path, { name: 'Ana' }), '<p>Hi Ana</p>')
  t.equal(framedIn(await viewer.get(`${path}/preview?v.name=Ana`)), '<p>Dear Ana</p>')
  t.equal(framedIn(await viewer.get(`${path}/preview?v.name=Ana&of=published`)), '<p>Hi Ana</p>')
  shows(t, await editor.get(path), `The draft is sent to ${editor.email}`)
  shows(t, await editor.get(`${path}?of=published`), `The published version is sent to ${editor.email}`)
  await editor.post(`${path}/test`, { from: 'hello@example.com', 'v.name': '<Ana>' })
  const list = await editor.get(`${at('emails')}?recipient=${editor.email}&subject=Offer`)
  const test = new RegExp(`${at('emails')}/[0-9a-f-]{36}`).exec(list.html)?.[0] ?? ''
  t.match(framedIn(await editor.get(`${test}/preview`)), /<p>Dear &lt;Ana&gt;<\/p>/, 'the test is the draft')
  const { html } = await viewer.get(`${path}/changes`)
  const shown = [...html.matchAll(/<iframe sandbox src="\/dashboard([^"]*)" title="(\w+)"/g)]
  const rendered = shown.map(async ([, src = '', name = '']) => [
    name,
    framedIn(await viewer.get(src.replaceAll('&#x3D;', '='))),
  ])
  t.strictSame(await Promise.all(rendered), [
    ['Published', '<p>Hi [name]</p>'],
    ['Draft', '<p>Dear [name]</p>'],
  ])
  t.match(html, /class="del">- &lt;p&gt;<mark>Hi/)
  t.match(html, /class="add">\+ &lt;p&gt;<mark>Dear/)
  const asked = await editor.ask(`${path}/publish`, await tokens(path))
  shows(t, asked, 'Publish the draft of Offer? Emails use it from then on.')
  const published = await after(editor, await editor.post(`${path}/publish`, await tokens(path)))
  shows(t, published, /The draft is published\. Variables: name\..*Offer published/)
  shows(t, published, new RegExp(`v2 in use, by ${editor.email} .*v1 by ${editor.email} `))
  t.equal(await sentWith(path, { name: 'Ana' }), '<p>Dear Ana</p>')
  const templates = await viewer.get(at('templates'))
  shows(t, templates, /Welcome 1 (just now|\d+ \w+ ago) .*Offer 2 /)
  t.equal(framedIn(await viewer.get(`${path}/preview?of=published`)), '<p>Dear [name]</p>')
  t.equal((await viewer.get(`${path}/changes`)).status, 404)
  const compare = /\/templates\/[^"]+\/versions\/[^"]+(?=">What changed)/.exec(published.html)?.[0] ?? ''
  const changed = await viewer.get(`/teams/${team.id}${compare}`)
  t.match(changed.html, /class="add">\+ &lt;p&gt;<mark>Dear/)
  shows(t, changed, new RegExp(`Offer: v1 to v2 .*v1 By ${editor.email}, .*v2 By ${editor.email},`))
  const frames = [...changed.html.matchAll(/src="\/dashboard([^"]*\/preview)"/g)]
  const looks = await Promise.all(frames.map(async ([, src = '']) => framedIn(await viewer.get(src))))
  t.strictSame(looks, ['<p>Hi [name]</p>', '<p>Dear [name]</p>'])
  t.notMatch(changed.html, /\/restore"/, 'a viewer restores nothing')
  t.strictSame(await entries(idOf(path)), [
    `template.publish ${editor.email}`,
    `template.draft ${editor.email}`,
  ])
})

t.test('a long list of templates is one page, without frames', async (t) => {
  const many = await makeTeam(service, { domain: 'many.test' })
  const reader = await signedIn(service, { team: many.id, role: 'viewer' })
  const save = (name: string) =>
    database.transaction((tx) => saveTemplate(byCli(tx), many.id, { name, html: '<p>x</p>', text: '' }))
  const path = `/teams/${many.id}/templates`
  for (let count = 1; count <= 40; count += 1) await save(`Template ${count}`)
  await save('One more')
  const page = await reader.get(path)
  t.notMatch(page.html, '<iframe')
  t.equal(page.html.match(/<tr>/g)?.length, 42)
})

t.test('decodes variables in links on saving, with a notice', async (t) => {
  const created = await editor.post(at('templates'), {
    name: 'Decoded',
    html: '<a href="%7B%7Blink%7D%7D">x</a>',
    text: '',
  })
  const page = await after(editor, created)
  shows(t, page, /created\. URL-encoded variables in links were decoded: link\./)
  const saved = await draft(editor, created.location ?? '', '<a href="%7b%7bother%7d%7d">x</a>')
  shows(t, saved, /saved\. URL-encoded variables in links were decoded: other\./)
  t.match(saved.html, '{{other}}')
})

t.test('publishing warns about new variables', async (t) => {
  const path = await makeTemplate('Wider', '<p>Hi {{name}}</p>')
  await draft(editor, path, '<p>Hi {{name}} of {{city}}</p>')
  const asked = await editor.ask(`${path}/publish`, await tokens(path))
  shows(t, asked, 'It has new variables. Emails without city are rejected')
  t.equal(await sentWith(path, { name: 'Ana' }), '<p>Hi Ana</p>')
  const published = await after(editor, await editor.post(`${path}/publish`, await tokens(path)))
  shows(t, published, 'Variables: name, city.')
  const body = anEmail({ html: undefined, template_id: idOf(path), variables: { name: 'Ana' } })
  t.match((await call('POST', '/v1/emails', { key: team.key, body })).body, { error: { message: /city/ } })
})

t.test('publishes the text of the editor, after a question', async (t) => {
  const path = await makeTemplate('Typed', '<p>one</p>')
  t.notMatch((await editor.get(path)).html, 'value="publish"', 'without a draft, there is nothing to publish')
  await draft(editor, path, '<p>two</p>')
  const page = await editor.get(path)
  t.match(
    page.html,
    /<button class="" form="editor" name="next" value="publish">Publish draft<[\s\S]*<form method="post" id="editor"[\s\S]*>Save the draft<[\s\S]*<textarea/,
  )
  t.strictSame(mainActs(page), ['Publish draft'], 'once')
  t.equal(page.html.match(/value="publish"/g)?.length, 1)
  const written = { html: '<p>three {{x}}</p>', text: '', next: 'publish' }
  const sent = await editor.post(`${path}/draft`, { ...written, seen: hiddenIn(page, 'seen') })
  t.ok(sent.location?.startsWith(`${path}/publish/confirm?form=`))
  const asked = await after(editor, sent)
  shows(t, asked, /The draft is saved\. .*Publish the draft of Typed\? .*Emails without x are rejected/)
  t.equal(framedIn(await viewer.get(`${path}/preview?of=published`)), '<p>one</p>', 'not before the answer')
  await editor.post(`${path}/publish`, formTo(asked.html, `${path}/publish`))
  t.equal(framedIn(await viewer.get(`${path}/preview?of=published`)), '<p>three [x]</p>')
  const seen = hiddenIn(await editor.get(path), 'seen')
  const same = await editor.post(`${path}/draft`, { ...written, seen })
  t.equal(same.location, path)
  shows(t, await after(editor, same), 'there is no draft')
})

t.test('publishes only the draft in the question, and warns about a newer version', async (t) => {
  const path = await makeTemplate('Asked', '<p>one</p>')
  await draft(editor, path, '<p>two</p>')
  const seen = hiddenIn(await editor.get(path), 'seen')
  const sent = await editor.post(`${path}/draft`, { html: '<p>2</p>', text: '', seen, next: 'publish' })
  const asked = await after(editor, sent)
  await draft(owner, path, '<p>three</p>')
  const late = await editor.post(`${path}/publish`, formTo(asked.html, `${path}/publish`))
  t.equal(late.status, 400)
  for (const question of [sent.location ?? '', `${path}/publish/confirm`, `${path}/discard/confirm`]) {
    const again = await editor.get(question)
    shows(t, again, /Nothing left to confirm The draft of Asked was replaced .* Go back/)
    t.notMatch(again.html, 'id="confirm"', 'a draft that the user has not seen')
  }
  t.equal(framedIn(await viewer.get(`${path}/preview?of=published`)), '<p>one</p>')
  await updateTemplate(byCli(database), team.id, idOf(path), { html: '<p>4</p>', text: '' })
  shows(t, await editor.ask(`${path}/publish`, await tokens(path)), 'Publishing the draft replaces it.')
})

t.test('changes name the variables that are new or gone, and parts without a change', async (t) => {
  const path = await makeTemplate('Slots', '<p>{{a}} {{b}}</p>', 'Hi {{a}}')
  await draft(editor, path, '<p>{{a}} {{c}}</p>', 'Hi {{a}}')
  const changes = await viewer.get(`${path}/changes`)
  const gone = 'No longer used: b\\. Values for it are ignored\\.'
  const draftWords = 'Once the draft is published, emails without a value for it are rejected\\.'
  shows(t, changes, new RegExp(`New variable: c\\. ${draftWords} ${gone} HTML .* Plain text No change\\.`))
  shows(t, await viewer.get(path), /Variables a, b New in the draft c Not in the draft b/)
  await editor.post(`${path}/publish`, await tokens(path))
  const page = await viewer.get(path)
  t.notMatch(textOf(page.html), 'in the draft')
  const compare = new RegExp(`${path}/versions/[^"]+`).exec(page.html)?.[0] ?? ''
  const compared = await viewer.get(compare)
  shows(t, compared, /New variable: c\. From v2 on, emails without .* Plain text No change\./)
})

t.test('previews unsaved text without storing it', async (t) => {
  const path = await makeTemplate('Written', '<p>Hi {{name}}</p>', 'Hi')
  const page = await editor.get(path)
  const button = `<button form="editor" formaction="/dashboard${path}/preview" formtarget="preview" formnovalidate`
  t.ok(page.html.includes(button), 'the button sends the editor’s form into the frame')
  t.match(page.html, /<iframe sandbox name="preview"/)
  t.match(
    page.html,
    /<input id="form-sample-values\.v\.name" dir="auto" name="v\.name" type="text" value="\[name\]" form="editor"/,
  )
  const form = { html: '<p>Dear {{name}} of {{city}}</p>', text: 'Dear {{name}}', 'v.name': '<Ana>' }
  const shown = await editor.post(`${path}/preview`, form)
  const drawn = '<p>Dear &lt;Ana&gt; of [city]</p>\n<hr><pre>Dear &lt;Ana&gt;</pre>'
  t.equal(framedIn(shown), drawn)
  t.match(shown.headers.get('content-security-policy'), /^sandbox; default-src 'none'/)
  const broken = await editor.post(`${path}/preview`, { ...form, html: '{{#each}}' })
  t.match(framedIn(broken), /^<p>Can’t show a preview\. html .*: line 1.*\.<\/p>$/)
  t.equal(framedIn(await viewer.get(`${path}/preview?v.name=Ana`)), '<p>Hi Ana</p>')
  shows(t, await viewer.get(path), 'Written published')
  t.notMatch((await viewer.get(path)).html, 'formaction')
})

t.test('rejects a stale save of a draft, keeping the input', async (t) => {
  const path = await makeTemplate('Shared', '<p>one</p>')
  const seen = hiddenIn(await editor.get(path), 'seen')
  await draft(owner, path, '<p>two</p>')
  const mine = { html: '<p>three</p>', text: '' }
  const stale = await editor.post(`${path}/draft`, { ...mine, seen })
  t.equal(stale.status, 400)
  shows(t, stale, 'Someone else saved this template while you were editing')
  t.match(stale.html, /&lt;p&gt;three&lt;\/p&gt;<\/textarea>/)
  const now = hiddenIn(stale, 'seen')
  t.not(now, seen, 'saving again is a choice that can be made')
  await after(editor, await editor.post(`${path}/draft`, { ...mine, seen: now }))
  const before = await entries(idOf(path))
  t.strictSame(before, [`template.draft ${editor.email}`, `template.draft ${owner.email}`])
  await draft(editor, path, mine.html)
  t.strictSame(await entries(idOf(path)), before, 'the same text again is no change')
  const same = await draft(editor, path, '<p>one</p>')
  shows(t, same, /there is no draft\. .*Shared published/)
})

t.test('rejects the second of two concurrent saves', async (t) => {
  const path = await makeTemplate('Raced', '<p>one</p>')
  const seen = hiddenIn(await editor.get(path), 'seen')
  const save = (tx: Tx, actor: string) =>
    saveDraft({ tx, now: new Date(), actor }, team.id, idOf(path), {
      html: `<p>${actor}</p>`,
      text: '',
      seen,
    })
  const patient = await openPool(t, service.url, { size: 2, statementTimeout: 120_000 })
  const commit = await hold(t, patient, (tx) => save(tx, 'first'))
  const second = database
    .transaction((tx) => save(tx, 'second'))
    .then(
      () => 'saved',
      (refusal) => refusal.message,
    )
  await until('the second waits', async () => (await lockWaits(service)) > 0)
  await commit()
  t.match(
    await second,
    'Someone else saved this template while you were editing. Your version is below. Compare the two, then save again.',
  )
  t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>first</p>')
})

t.test('only publishes or discards the draft that was shown', async (t) => {
  const path = await makeTemplate('Seen', '<p>one</p>')
  await draft(editor, path, '<p>two</p>')
  const first = await tokens(path)
  await draft(owner, path, '<p>three</p>')
  for (const verb of ['publish', 'discard']) {
    const refused = await editor.post(`${path}/${verb}`, first)
    t.equal(refused.status, 400, verb)
    shows(t, refused, `${owner.email} changed this draft while you were editing`)
  }
  const second = await tokens(path)
  await updateTemplate(byCli(database), team.id, idOf(path), { html: '<p>4</p>', text: '' })
  t.equal(await sentWith(path), '<p>4</p>', 'the command line publishes at once')
  const refused = await editor.post(`${path}/publish`, second)
  t.equal(refused.status, 400)
  shows(
    t,
    refused,
    /Another version was published after you started this draft\..*Another version was published after this draft was started/,
  )
  t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>three</p>', 'the draft is kept')
  const published = await after(editor, await editor.post(`${path}/publish`, await tokens(path)))
  shows(t, published, 'The draft is published')
  t.equal(await sentWith(path), '<p>three</p>')
  const again = await editor.post(`${path}/publish`, second)
  shows(t, again, 'This draft no longer exists')
})

t.test('discards a draft, and deletes it with its template', async (t) => {
  const path = await makeTemplate('Thrown', '<p>one</p>')
  await draft(editor, path, '<p>two</p>')
  const discarded = await after(editor, await editor.post(`${path}/discard`, await tokens(path)))
  shows(t, discarded, 'The draft is discarded.')
  t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>one</p>')
  t.match(await entries(idOf(path)), [`template.discard ${editor.email}`])
  await draft(editor, path, '<p>three</p>')
  await database.query(sql.unsafe`delete from templates where team_id = ${team.id} and id = ${idOf(path)}`)
  const left = sql.unsafe`select from template_drafts where team_id = ${team.id} and template_id = ${idOf(path)}`
  t.equal((await database.query(left)).rowCount, 0)
})

t.test('a viewer sees a draft without its buttons', async (t) => {
  const path = await makeTemplate('Looked at', '<p>one</p>')
  await draft(editor, path, '<p>two</p>')
  const page = await viewer.get(path)
  shows(t, page, /unpublished changes.*Review changes/)
  t.notMatch(page.html, /\/(publish|discard|draft|restore|test)"/)
})

t.test('restores an earlier version as a new one', async (t) => {
  const path = await makeTemplate('Back', '<p>first</p>')
  t.notMatch(textOf((await editor.get(path)).html), 'Restore', 'only one version')
  await draft(editor, path, '<p>second</p>')
  await editor.post(`${path}/publish`, await tokens(path))
  t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>second</p>')
  const version = hiddenIn(await editor.get(path), 'version')
  shows(t, await editor.ask(`${path}/restore`, { version }), 'Restore v1 of Back?')
  shows(t, await after(owner, await owner.post(`${path}/restore`, { version })), 'The version is restored')
  t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>first</p>')
  const page = await viewer.get(path)
  shows(t, page, new RegExp(`v3 in use, by ${owner.email} .*v2 by ${editor.email} .*v1 by ${editor.email} `))
  t.notMatch((await viewer.get(path)).html, /\/restore"/)
})

t.test('restores a version from its comparison', async (t) => {
  const path = await makeTemplate('Undone', '<p>first</p>')
  await draft(editor, path, '<p>second</p>')
  await editor.post(`${path}/publish`, await tokens(path))
  const { html } = await editor.get(path)
  const compare = new RegExp(`${path}/versions/[^"]+`).exec(html)?.[0] ?? ''
  t.equal((await editor.press(compare, `${path}/restore`)).status, 303)
  t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>first</p>')
  const [newest = ''] = (await editor.get(path)).html.match(new RegExp(`${path}/versions/[^"]+`)) ?? []
  const [older = '', newer = ''] = newest.split('/').slice(-2)
  const back = await editor.get(`${path}/versions/${newer}/${older}`)
  t.notMatch(back.html, /\/restore"/, 'the version in use is not restored')
})

t.test('lists the newest versions, and marks the first one', async (t) => {
  const path = await makeTemplate('Often', '<p>1</p>')
  await database.query(sql.unsafe`
    insert into template_versions (team_id, id, template_id, html, body_text, slots, list_unsubscribe, created_by, created_at)
    select team_id, ${uuidAt(sql.fragment`now() + make_interval(secs => n - 3600)`)}, template_id, html || n, body_text, slots, list_unsubscribe,
      created_by, created_at from template_versions, generate_series(1, 50) n where template_id = ${idOf(path)}`)
  const page = await viewer.get(path)
  shows(t, page, /Versions The newest 50\. .*v51 .*v2 .*What changed/)
  t.notMatch(textOf(page.html), /v1 |The first one/)
  shows(t, await viewer.get(await makeTemplate('Once', '<p>1</p>')), /v1 .*The first one/)
})

t.test('turns List-Unsubscribe headers on and off, and keeps the draft', async (t) => {
  const path = await makeTemplate('Letter', '<p>Hi</p>')
  await draft(editor, path, '<p>Dear</p>')
  const page = await editor.get(path)
  shows(t, page, 'List-Unsubscribe headers off Mail apps show no unsubscribe button')
  t.equal(hiddenIn(page, 'wanted'), 'yes')
  const form = { wanted: 'yes' }
  const asked = await editor.ask(`${path}/list-unsubscribe`, form)
  shows(t, asked, 'Turn the List-Unsubscribe headers of Letter on?')
  shows(t, await viewer.get(path), 'headers off')
  const on = await after(editor, await editor.post(`${path}/list-unsubscribe`, { wanted: 'yes' }))
  shows(t, on, /carry List-Unsubscribe headers\..*Letter unpublished changes.*v2 in use.*headers on/)
  const body = anEmail({ html: undefined, template_id: idOf(path) })
  const refused = await call('POST', '/v1/emails', { key: team.key, body })
  t.match(refused, { status: 400, body: { error: { message: /unsubscribe_url/ } } })
  t.equal(await sentWith(path, { unsubscribe_url: 'https://example.com/u' }), '<p>Hi</p>')
  await editor.post(`${path}/publish`, await tokens(path))
  shows(t, await viewer.get(path), /Letter published.*headers on/)
  const tested = await editor.post(`${path}/test`, { from: 'hello@example.com' })
  t.equal(tested.status, 303, 'a test goes out with the sample of its link')
  const off = await after(editor, await editor.post(`${path}/list-unsubscribe`, { wanted: 'no' }))
  shows(t, off, /carry no List-Unsubscribe headers\..*headers off/)
  t.equal(await sentWith(path), '<p>Dear</p>')
  t.notMatch((await viewer.get(path)).html, /list-unsubscribe"/)
  t.match(await entries(idOf(path)), [`template.update ${editor.email}`])
})

t.test('previews have the same limits as sends', async (t) => {
  const parts = { html: '{{a}}'.repeat(50_000), text: '{{a}}'.repeat(50_000) }
  const path = (await editor.post(at('templates'), { name: 'Wide', ...parts })).location ?? ''
  t.equal(framedIn(await viewer.get(`${path}/preview?v.a=x`)), 'x'.repeat(50_000))
  const value = '<'.repeat(100)
  const refused = await viewer.get(`${path}/preview?v.a=${value}`)
  t.equal(refused.status, 400)
  shows(t, refused, /With these values the html is larger than 1 MiB/)
  const page = await viewer.get(`${path}?v.a=${value}`)
  shows(t, page, 'Can’t show a preview. With these values the html is larger')
  t.notMatch(page.html, /<iframe/)
  t.ok(page.html.length < 300_000)
  const form = { from: 'hello@example.com', 'v.a': value }
  t.equal((await editor.post(`${path}/test`, form)).status, 400)
  const slots = Array.from({ length: 10_001 }, (_, at) => `{{s${at}}}`).join('')
  const many = await editor.post(at('templates'), { name: 'Many', html: slots, text: '' })
  shows(t, many, 'at most 10000 variables')
  const most = await editor.post(at('templates'), {
    name: 'Most',
    html: slots.replace('{{s0}}', ''),
    text: '',
  })
  const shown = await editor.get(most.location ?? '')
  t.equal(shown.html.match(/id="form-sample-values\.v\.s[^>]+ form="editor"/g)?.length, 50)
  t.equal(shown.html.match(/>Value of s\d+</g)?.length, 50, 'a test has its own')
  shows(t, shown, 's19, s20 and 9980 more')
})

t.test("reading a template doesn't wait for a change", async (t) => {
  const form = { name: 'Held', html: '<p>held</p>', text: '' }
  const path = (await editor.post(at('templates'), form)).location ?? ''
  await database.transaction(async (tx) => {
    await tx.query(sql.unsafe`select 1 from templates where team_id = ${team.id} for update`)
    t.equal((await viewer.get(path)).status, 200)
    t.equal(framedIn(await viewer.get(`${path}/preview`)), '<p>held</p>')
  })
})

t.test("shows the stats of a template's last 30 days", async (t) => {
  const path = await makeTemplate('Counted', '<p>Hi</p>')
  shows(t, await viewer.get(path), /The last 30 days Sent 0 Delivered – Bounced – Complaints – Versions /)
  const insert = async (status: string, days = 1) => {
    const id = uuidv7({ msecs: Date.now() - days * 86_400_000 })
    const row = sql.fragment`
      select ${team.id} as team_id, ${id} as id, ${team.domain_id} as domain_id, 'a@example.com' as from_address,
        array['b@example.org'] as to_emails, 'Hi' as subject, '<p>Hi</p>' as html, '[]'::json as tags,
        ${status} as status, now() as created_at, '' as reply_to`
    await insertEmailRows(service, row)
    await database.query(sql.unsafe`
      update accepted_emails set template_id = ${idOf(path)} where team_id = ${team.id} and id = ${id}`)
  }
  await insert('bounced')
  shows(t, await viewer.get(path), /Sent 1 Delivered 0 % Bounced 100 % 1 email /)
  for (const status of ['queued', 'sent']) await insert(status)
  await insert('complained', 31)
  shows(
    t,
    await viewer.get(path),
    /Sent 2 1 not sent Delivered – your mail server doesn’t report deliveries Bounced 50\.0 % 1 /,
  )
  for (const status of ['delivered', 'opened', 'delivered']) await insert(status)
  const page = await viewer.get(path)
  shows(
    t,
    page,
    /Sent 5 1 not sent Delivered 60\.0 % 3 emails Bounced 20\.0 % 1 email Complaints 0 % Versions /,
  )
  t.match(page.html, `emails?kind&#x3D;all&amp;template&#x3D;${idOf(path)}&amp;status&#x3D;bounced"`)
  t.notMatch(page.html, 'are counted.</p>', 'all of them are counted')
})

t.test('counts the newest emails of a busy template, with notice', async (t) => {
  const path = await makeTemplate('Busy', '<p>Hi</p>')
  const now = Date.now().toString(16).padStart(12, '0')
  const row = sql.fragment`
    select ${team.id} as team_id, (${now} || '70008000' || lpad(to_hex(n), 12, '0'))::uuid as id,
      ${team.domain_id} as domain_id, 'Busy' as subject,
      'a@example.com' as from_address, '{}'::text[] as to_emails, '<p>Hi</p>' as html, '[]'::json as tags,
      'sent' as status, now() as created_at, '' as reply_to
    from generate_series(1, 5001) n`
  await insertEmailRows(service, row)
  await database.query(sql.unsafe`
    update accepted_emails set template_id = ${idOf(path)} where team_id = ${team.id} and subject = 'Busy'`)
  const page = await viewer.get(path)
  shows(t, page, 'Only the newest 5,000 emails that use this template are counted. Sent 5,000 Delivered')
  shows(t, await viewer.get(at('templates')), /Busy 1,000\+ just now /)
})

t.test("an email's page links to its template until its deletion", async (t) => {
  const path = await makeTemplate('Autumn letter', '<p>Hi</p>')
  const body = anEmail({ html: undefined, template_id: idOf(path) })
  const { body: email } = await call('POST', '/v1/emails', { key: team.key, body })
  const emails = await viewer.get(at(`emails?template=${idOf(path)}`))
  shows(t, emails, /Recipient Subject Accepted queued someone@example\.org Hello Autumn letter/)
  const { html } = await viewer.get(at(`emails/${email.id}`))
  t.match(html, new RegExp(`<a href="[^"]*/templates/${idOf(path)}">Autumn letter\\s*</a>`))
  t.ok(await removeTemplate(byCli(database), team.id, idOf(path)))
  const page = await viewer.get(at(`emails/${email.id}`))
  shows(t, page, /Template deleted/)
  t.notMatch(page.html, idOf(path))
})

t.test('emails have a template column only if one has a template', async (t) => {
  const none = await makeTeam(service, { domain: 'plain.test' })
  const reader = await signedIn(service, { team: none.id, role: 'viewer' })
  const id = await sendEmail(service, none, { from: 'a@plain.test' })
  const { html } = await reader.get(`/teams/${none.id}/emails`)
  t.match(html, id)
  t.match(textOf(html), 'Subject Accepted')
})

t.test('renames, duplicates and deletes a template', async (t) => {
  const path = await makeTemplate('Whole', '<p>Published {{name}}</p>')
  await makeTemplate('Taken', '<p>x</p>')
  t.notMatch((await viewer.get(path)).html, `${path}/rename`)
  for (const [verb, name] of [
    ['rename', 'Taken'],
    ['rename', ' '],
    ['duplicate', 'Taken'],
  ] as const)
    t.equal((await editor.post(`${path}/${verb}`, { name })).status, 400, `${verb} ${name}`)
  t.match(await editor.post(`${path}/rename`, { name: 'All of it' }), { status: 303, location: path })
  const copied = await editor.post(`${path}/duplicate`, { name: 'Copy of all' })
  const copy = copied.location ?? ''
  t.not(copy, path)
  t.equal(framedIn(await viewer.get(`${copy}/preview`)), '<p>Published [name]</p>')
  t.match(await editor.press(path, `${path}/delete`), { status: 303, location: at('templates') })
  t.equal((await viewer.get(path)).status, 404)
  t.equal((await viewer.get(copy)).status, 200)
  t.equal((await editor.post(at(`templates/${uuidv7()}/delete`))).status, 404)
  const actions = (await auditEntries(database, { team: team.id, limit: 4 })).map(({ action }) => action)
  t.strictSame(actions, ['template.delete', 'template.create', 'template.rename', 'template.create'])
})
