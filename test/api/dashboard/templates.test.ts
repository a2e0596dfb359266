/** Email templates on the dashboard: previews, tests, publishing and their audit entries. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { after, framedIn, mainActs, shows, signedIn } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { anEmail, byCli, makeTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startTemplatePages } from '../../support/template-pages.ts'

const pages = await startTemplatePages(t)
const { service, call, database, team, viewer, editor, at, entries, makeTemplate, draft, tokens } = pages
const { hiddenIn, idOf, sentWith } = pages

/** Returns the path and the name of each picture in a list. */
const picturesOn = ({ html }: { html: string }) => [
  ...html.matchAll(/<iframe [^>]*class="thumb"[^>]* src="\/dashboard([^"]*)" title="([^"]*)"/g),
]

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
  shows(t, await viewer.get(at('templates')), /Offer unpublished changes 0 never .*Welcome 1 /)
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
  shows(t, templates, /Offer 2 .*Welcome 1 (just now|\d+ \w+ ago) /)
  const pictures = picturesOn(templates)
  const names = pictures.map(([, , name]) => name)
  t.strictSame(names, ['Offer', 'Welcome'], 'one in each row, by name')
  t.match(templates.html, /aria-sort="ascending"><a href="[^"]*templates\?sort&#x3D;-Name">Name/)
  for (const [former, label] of [
    ['Last used', 'Used'],
    ['Changed', 'Edited'],
  ] as const) {
    const sorted = await viewer.get(at(`templates?${new URLSearchParams({ sort: `-${former}` })}`))
    t.match(
      sorted.html,
      new RegExp(`aria-sort="descending"><a href="[^"]*sort&#x3D;${label}">${label}<`),
      former,
    )
  }
  const [, source = ''] = pictures[0] ?? []
  t.equal(framedIn(await viewer.get(source.replaceAll('&#x3D;', '='))), '<p>Dear [name]</p>')
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

t.test('no template of a long list has a picture', async (t) => {
  const many = await makeTeam(service, { domain: 'many.test' })
  const reader = await signedIn(service, { team: many.id, role: 'viewer' })
  const save = (name: string) =>
    database.transaction((tx) => saveTemplate(byCli(tx), many.id, { name, html: '<p>x</p>', text: '' }))
  const path = `/teams/${many.id}/templates`
  for (let count = 1; count <= 40; count += 1) await save(`Template ${count}`)
  t.equal(picturesOn(await reader.get(path)).length, 40)
  await save('One more')
  const page = await reader.get(path)
  t.strictSame(picturesOn(page), [])
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

t.test('publishes the text of the editor, after a question', async (t) => {
  const path = await makeTemplate('Typed', '<p>one</p>')
  t.notMatch((await editor.get(path)).html, 'value="publish"', 'without a draft, there is nothing to publish')
  await draft(editor, path, '<p>two</p>')
  const page = await editor.get(path)
  t.match(
    page.html,
    /<button class="" form="editor" name="next" value="review">Review changes<[\s\S]*<button class="quiet" form="editor" name="next" value="publish">Publish draft<[\s\S]*<form method="post" id="editor"[\s\S]*<textarea[\s\S]*<textarea[\s\S]*>Save the draft</,
  )
  t.strictSame(mainActs(page), ['Review changes'], 'once')
  t.equal(page.html.match(/value="publish"/g)?.length, 1)
  const written = { html: '<p>three {{x}}</p>', text: '', next: 'publish' }
  const reviewing = { ...written, html: '<p>two {{y}}</p>', next: 'review', seen: hiddenIn(page, 'seen') }
  const reviewed = await editor.post(`${path}/draft`, reviewing)
  t.equal(reviewed.location, `${path}/changes`)
  shows(t, await after(editor, reviewed), /The draft is saved\. .*New variable: y\. .*\+ <p> two \{\{y\}\}/)
  const later = await editor.get(path)
  shows(t, later, /New variable: y\. Once the draft is published, emails without .* Preview/)
  const sent = await editor.post(`${path}/draft`, { ...written, seen: hiddenIn(later, 'seen') })
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

t.test('turns List-Unsubscribe headers on and off, and keeps the draft', async (t) => {
  const path = await makeTemplate('Letter', '<p>Hi</p>')
  await draft(editor, path, '<p>Dear</p>')
  const page = await editor.get(path)
  shows(t, page, 'List-Unsubscribe headers off Turn on Mail apps show no unsubscribe button')
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
