/** Concurrent saves, publishing and discarding of drafts of email templates. */
import { sql } from 'slonik'
import { saveDraft } from '../../../db/content/templates/draft.ts'
import { updateTemplate } from '../../../db/content/templates/save.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { after, framedIn, shows } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { hold } from '../../support/held.ts'
import { openPool } from '../../support/pool.ts'
import { lockWaits } from '../../support/rows.ts'
import { anEmail, byCli } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startTemplatePages } from '../../support/template-pages.ts'
import { until } from '../../support/worker.ts'

const pages = await startTemplatePages(t)
const { service, call, database, team, viewer, editor, owner, entries, makeTemplate, draft, tokens } = pages
const { hiddenIn, idOf, sentWith } = pages

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
