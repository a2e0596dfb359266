/** The page of one email with its timeline, requeue, content and attachments. */
import { sql } from 'slonik'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { recordBounce } from '../../support/bounce.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { formsTo, framedIn, mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { ageEmailRows } from '../../support/email-rows.ts'
import { formTo } from '../../support/forms.ts'
import { jobStates } from '../../support/rows.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { happen } from '../../support/webhooks.ts'

const { service, database, team, send, lastEntry } = await world(t, {
  dashboard: { from: 'login@example.com' },
})
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const list = `/teams/${team.id}/emails`

t.test('the page of an email shows its events', async (t) => {
  const id = await send({ to: ['gone@example.org'] })
  const bounce = { recipient: 'gone@example.org', detail: '550 5.1.1 no such user' }
  await recordBounce(service, { team_id: team.id, email_id: id }, bounce)
  const page = await editor.get(`${list}/${id}`)
  shows(t, page, /Bounced gone@example\.org .* 550 5\.1\.1 no such user/)
  shows(t, page, 'Accepted by the API')
})

t.test('only operators get the advice to check the worker', async (t) => {
  const operator = await signedIn(service, { operator: true })
  const id = await send({})
  shows(t, await editor.get(`${list}/${id}`), /If this lasts longer than a minute, tell an operator/)
  shows(t, await operator.get(`${list}/${id}`), /If this lasts longer than a minute, check that a worker/)
  await ageEmailRows(service, sql.fragment`id = ${id}`, '1 hour')
  for (const [person, words] of [
    [editor, /Waiting for a worker\. Tell an operator/],
    [operator, /Waiting for a worker\. Check that a worker/],
  ] as const)
    shows(t, await person.get(`${list}/${id}`), words)
})

t.test('a subject has the direction of its script', async (t) => {
  const subject = 'فاتورة 42'
  const id = await send({ subject })
  t.match((await owner.get(`${list}/${id}`)).html, /<h1 dir="auto">[^<]*فاتورة/)
  t.match((await owner.get(list)).html, /<div[^>]* dir="auto"[^>]*>(<a[^>]*>)?[^<]*فاتورة/)
})

t.test('a preview blocks scripts, forms and, unless requested, remote images', async (t) => {
  const html = '<script>alert(1)</script><img src="https://example.org/pixel.png">'
  const id = await send({ html })
  const shut = await editor.get(`${list}/${id}/preview`)
  t.equal(framedIn(shut), html)
  t.match(shut.html, '<base target="_blank">', 'a link leads nowhere')
  t.match(shut.headers.get('content-security-policy'), /^sandbox; default-src 'none'; .*img-src data:;/)
  t.notMatch(shut.headers.get('content-security-policy'), /script-src|allow-/)
  const opened = await editor.get(`${list}/${id}/preview-with-pictures`)
  t.match(opened.headers.get('content-security-policy'), /img-src data: https: http:;/)
  t.match((await editor.get(`${list}/${id}`)).html, /<iframe sandbox src="\/dashboard[^"]+\/preview"/)
})

t.test('sends the user a copy, and requeues a queued email', async (t) => {
  const id = await send({ subject: 'Copied' })
  t.equal((await editor.post(`${list}/${id}/copy`)).status, 303)
  shows(t, await editor.get(`${list}?recipient=${editor.email}`), 'Copied')
  t.match(await editor.post(`${list}/${id}/requeue`), { status: 303, location: `${list}/${id}` })
  t.equal((await owner.post(`${list}/${id}/delete`)).status, 303)
  t.equal((await owner.get(`${list}/${id}`)).status, 404)
})

t.test('a scheduled email is rescheduled, sent now or cancelled', async (t) => {
  const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
  const id = await send({ subject: 'Later', scheduled_at })
  const cancelled = await send({ subject: 'Never', scheduled_at })
  const page = `${list}/${id}`
  const seen = await editor.get(page)
  for (const words of [/scheduled/, /Scheduled for/, 'Send now', 'Reschedule', 'Cancel this email'])
    shows(t, seen, words)
  t.notMatch(textOf((await viewer.get(page)).html), /Send now|Cancel this email/)
  const chosen = await editor.get(`${list}?status=scheduled`)
  for (const words of ['Later', 'Never']) shows(t, chosen, words)
  const overview = await editor.get(`/teams/${team.id}`)
  shows(t, overview, /Running and next Name Status Sent Start 2 scheduled emails/)
  const at = { scheduled_at: '2026-01-31T09:00', zone: 'UTC' }
  t.equal((await editor.post(`${page}/move`, at)).status, 400, 'not into the past')
  const later = new Date(Date.now() + 7_200_000).toISOString().slice(0, 16)
  t.equal((await editor.post(`${page}/move`, { ...at, scheduled_at: later })).status, 303)
  const plain = await editor.post(`${page}/requeue`)
  t.equal(plain.status, 409, 'not without the word')
  t.notMatch(plain.html, /--force|reschedule`/, 'no options of the CLI')
  t.equal((await editor.press(page, `${page}/requeue`)).status, 303)
  t.strictSame(await jobStates(service, id), ['created'])
  t.equal((await editor.press(`${list}/${cancelled}`, `${list}/${cancelled}/cancel`)).status, 303)
  t.equal((await editor.get(`${list}/${cancelled}`)).status, 404)
  t.match(await auditEntries(database, { team: team.id, limit: 3 }), [
    { actor: editor.email, action: 'email.cancel', subject: cancelled },
    { action: 'email.requeue', subject: id, detail: 'it was scheduled' },
    { action: 'email.reschedule', subject: id, detail: `${later}:00.000Z` },
  ])
})

t.test('requeues a rejected email by force, and audits that', async (t) => {
  const refused = await send({ to: ['typo@example.org'], tags: ['refused'] })
  await recordBounce(service, { team_id: team.id, email_id: refused }, { recipient: 'typo@example.org' })
  shows(t, await editor.get(`${list}/${refused}`), 'Send again')
  t.notMatch((await viewer.get(`${list}/${refused}`)).html, /Send again/)
  const plain = await editor.post(`${list}/${refused}/requeue`)
  t.equal(plain.status, 409, 'not without the word')
  t.notMatch(plain.html, '--force', 'no option of the CLI')
  const before = { force: 'refused', seen: 'scheduled' }
  const again = await editor.post(`${list}/${refused}/requeue`, before)
  t.equal(again.status, 409, 'not from a page of before')
  t.match(formTo(again.html, `${list}/${refused}/requeue`), { seen: ['forced'] }, 'and it asks as it is now')
  t.equal((await editor.press(`${list}/${refused}`, `${list}/${refused}/requeue`)).status, 303)
  shows(t, await editor.get(`${list}/${refused}`), /Hello queued Waiting to be sent\. .* Queued again/)
  t.strictSame(await jobStates(service, refused), ['created'])
  const expected = { actor: editor.email, action: 'email.requeue', subject: refused }
  t.match(await lastEntry(), { ...expected, detail: 'it had been rejected' })
})

t.test('a dead address is first corrected, and the question names it', async (t) => {
  const acts = async (id: string) => mainActs(await editor.get(`${list}/${id}`))
  const bounced = async (detail: string, effect: 'hard' | 'none') => {
    const recipient = `dead-${effect}@example.org`
    const id = await send({ to: [recipient], subject: 'Your bill' })
    await recordBounce(service, { team_id: team.id, email_id: id }, { recipient, detail, effect })
    return id
  }
  const blocked = await bounced('550 5.7.1 blocked', 'none')
  t.strictSame(await acts(blocked), ['Send again'], 'it can work later')
  t.strictSame(await acts(await bounced('550 5.1.1 no such user', 'none')), ['Send to a corrected address'])
  const id = await bounced('550 rejected', 'hard')
  t.strictSame(await acts(id), ['Send to a corrected address'], 'its address is suppressed')
  const page = await editor.get(`${list}/${id}`)
  t.equal(textOf(page.html).match(/550 rejected/g)?.length, 1, 'the response is only in the timeline')
  const requeue = (of: string) => `${list}/${of}/requeue`
  const ask = async (of: string) =>
    editor.ask(requeue(of), formTo((await editor.get(`${list}/${of}`)).html, requeue(of)))
  shows(
    t,
    await ask(id),
    /Send “Your bill” to dead-hard@example\.org again\? It was rejected\. dead-hard@example\.org is suppressed \(bounce\)/,
  )
  const other = await ask(blocked)
  shows(t, other, 'Send “Your bill” to dead-none@example.org again? It was rejected.')
  t.notMatch(textOf(other.html), 'suppressed')
})

t.test("a broadcast's email to a suppressed address isn't sent again", async (t) => {
  const { emails } = await aBroadcast(service, team)
  const [id = ''] = await emails('dead-news@example.org')
  const requeue = `${list}/${id}/requeue`
  await recordBounce(service, { team_id: team.id, email_id: id }, { recipient: 'dead-news@example.org' })
  const page = await editor.get(`${list}/${id}`)
  shows(t, page, /dead-news@example\.org is suppressed\. An email to it bounced\. .*Show the suppression/)
  t.strictSame(formsTo(page, requeue), [], 'no button')
  const refused = await editor.post(requeue, { force: 'refused', seen: 'forced', confirmed: '' })
  t.equal(refused.status, 409)
  shows(t, refused, 'Broadcasts are never sent to a suppressed address. Lift the suppression first.')
  const contact = `/teams/${team.id}/contacts/dead-news%40example.org`
  await editor.press(contact, `${contact}/lift`, { reason: 'the mailbox exists again' })
  t.equal((await editor.press(`${list}/${id}`, requeue)).status, 303)
  shows(t, await editor.get(`${list}/${id}`), 'Queued again')
})

t.test('warns about a queued email to a suppressed address', async (t) => {
  const recipient = 'dead-later@example.org'
  const bounced = await send({ to: [recipient] })
  await recordBounce(service, { team_id: team.id, email_id: bounced }, { recipient })
  const page = async (...to: string[]) => editor.get(`${list}/${await send({ to })}`)
  const one = await page(recipient)
  shows(
    t,
    one,
    /It will be skipped, because the address is suppressed\. .*is suppressed and will be skipped\. .* Why it waits/,
  )
  shows(t, one, /Size \d+ bytes/)
  const two = await page(recipient, 'fine@example.org')
  shows(t, two, /Waiting to be sent\. .*dead-later@example\.org is suppressed and will be skipped/)
  const added = { email: 'added@example.org', as: 'bounced', reason: 'asked by phone' }
  await editor.post(`/teams/${team.id}/suppressions`, added)
  shows(t, await page(added.email), 'will be skipped. It was added manually. asked by phone')
})

t.test("the page explains why an accepted email can't be requeued", async (t) => {
  const id = await send({ to: ['full@example.org'] })
  const ref = { team_id: team.id, email_id: id }
  await happen(service, { ...ref, kind: 'sent', detail: '250 ok' })
  await recordBounce(service, ref, { recipient: 'full@example.org', detail: '552 5.2.2 full' })
  const page = await editor.get(`${list}/${id}`)
  shows(t, page, 'A provider has already accepted this email, so it isn’t sent again. Fix the cause')
  t.notMatch(page.html, /Send again/)
  t.equal((await editor.post(`${list}/${id}/requeue`, { force: 'refused' })).status, 400)
})

t.test('an operator opening an email is audited', async (t) => {
  const operator = await signedIn(service, { operator: true })
  const id = await send({ html: '<p>private words</p>' })
  t.notMatch((await operator.get(`${list}/${id}`)).html, /iframe/)
  const traces = () => auditEntries(database, { team: team.id, action: 'email.open', limit: 50 })
  t.equal((await traces()).length, 0)
  await operator.get(`${list}/${id}/content`)
  await operator.get(`${list}/${id}/preview`)
  t.match(await traces(), [
    { actor: operator.email, subject: id },
    { actor: operator.email, subject: id },
  ])
})

const evil = { filename: 'a "b";\u2713.html', content: btoa('<script>alert(1)</script>') }
const logo = { filename: 'logo.png', content: btoa('picture'), content_id: 'logo@1' }

t.test('attachments are listed and always downloaded', async (t) => {
  const id = await send({ attachments: [evil, logo] })
  const page = await viewer.get(`${list}/${id}`)
  shows(
    t,
    page,
    /Attachments .*a "b";\u2713\.html text\/html 25 bytes .*logo\.png image\/png 7 bytes cid:logo@1/,
  )
  t.match(page.html, `/dashboard${list}/${id}/files/0`)
  const saved = await viewer.get(`${list}/${id}/files/0`)
  t.equal(saved.html, '<script>alert(1)</script>')
  t.equal(saved.headers.get('content-type'), 'application/octet-stream')
  const disposition = saved.headers.get('content-disposition')
  t.match(disposition, /^attachment; filename="a \\"b\\";[^"\r\n]*\.html"; filename\*=UTF-8''/)
  t.equal(saved.headers.get('content-security-policy'), "sandbox; default-src 'none'")
  t.equal(saved.headers.get('x-content-type-options'), 'nosniff')
  for (const place of ['2', '-1', 'x', '1e0'])
    t.equal((await viewer.get(`${list}/${id}/files/${place}`)).status, 404, place)
  shows(t, await viewer.get(`/teams/${team.id}`), 'Attachments 32 bytes')
  const operator = await signedIn(service, { operator: true })
  await operator.get(`${list}/${id}/files/1`)
  const looks = await auditEntries(database, { team: team.id, action: 'email.file', limit: 50 })
  t.match(looks, [{ actor: operator.email, subject: `${id} logo.png` }])
  t.equal(looks.length, 1, 'members leave no trace')
})

t.test('only inline images are embedded in the preview', async (t) => {
  const html = '<img src="cid:logo@1"><img src=\'cid:logo%401\'><a href="cid:page">x</a> cid:logo@1'
  const id = await send({ html, attachments: [logo, { ...evil, content_id: 'page' }] })
  const shown = await viewer.get(`${list}/${id}/preview`)
  const url = `data:image/png;base64,${logo.content}`
  t.equal(framedIn(shown), `<img src="${url}"><img src='${url}'><a href="cid:page">x</a> cid:logo@1`)
  t.match(shown.headers.get('content-security-policy'), 'img-src data:;')
})

t.test('the page of a purged email offers no failing action', async (t) => {
  const id = await send({ subject: 'Emptied', text: 'Hi', headers: { 'X-Own': '1' } })
  await database.query(sql.unsafe`
    update accepted_emails set html = '', body_text = '', headers = null where id = ${id}`)
  await database.query(sql.unsafe`update email_states set status = 'bounced' where id = ${id}`)
  for (const view of ['', '?view=text', '?view=headers'])
    shows(
      t,
      await editor.get(`${list}/${id}${view}`),
      /The content of this email was deleted, by retention or by an erasure request\./,
    )
  const page = textOf((await editor.get(`${list}/${id}?view=text`)).html)
  t.notMatch(
    page,
    /Send a copy to me|corrected address|already accepted this email|without a plain-text part/,
  )
  t.equal((await editor.post(`${list}/${id}/copy`)).status, 400, 'it would be refused')
})
