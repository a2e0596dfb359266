/** Versions of email templates, and the stats of their emails. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { removeTemplate } from '../../../db/content/templates/remove.ts'
import { after, framedIn, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { insertEmailRows } from '../../support/email-rows.ts'
import { anEmail, byCli, makeTeam, sendEmail } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startTemplatePages } from '../../support/template-pages.ts'
import { uuidAt } from '../../support/uuid-sql.ts'

const pages = await startTemplatePages(t)
const { service, call, database, team, viewer, editor, owner, at, makeTemplate, draft, tokens } = pages
const { hiddenIn, idOf } = pages

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
