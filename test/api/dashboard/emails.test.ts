/** Emails on the dashboard: search, timeline, requeue, deletion, content and attachments. */
import { sql } from 'slonik'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { applyEmailEvents } from '../../../db/messages/emails/apply-events.ts'
import { recordBounce } from '../../support/bounce.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { formsTo, framedIn, mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { ageEmailRows } from '../../support/email-rows.ts'
import { formTo } from '../../support/forms.ts'
import { jobStates, usedBy } from '../../support/rows.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, database, team, send, lastEntry } = await world(t, {
  dashboard: { from: 'login@example.com' },
})
const other = await makeTeam(service, { domain: 'example.net' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const list = `/teams/${team.id}/emails`

t.test('finds emails by recipient, ID, subject, status, tag and day', async (t) => {
  const today = () => new Date().toISOString().slice(0, 10)
  const from = today()
  const id = await send({
    to: ['Lost@Example.org'],
    subject: 'Your parcel is on its way',
    tags: ['parcel'],
    idempotency_key: 'order-17',
  })
  await send({ subject: 'Another' })
  for (const query of [
    'recipient=lost@example.org',
    'subject=parcel+way',
    `id=${id}`,
    'id=order-17',
    'tag=parcel',
    `status=queued&tag=parcel&domain=example.com&from=${from}&to=${today()}`,
  ]) {
    const { html } = await editor.get(`${list}?${query}`)
    shows(t, { html }, 'Your parcel is on its way')
    t.notMatch(html, 'Another', query)
  }
  const none = await editor.get(`${list}?recipient=nobody@example.org`)
  shows(t, none, 'No email matches. Include emails of broadcasts')
  t.match(none.html, /\/emails\?recipient[^"]*kind[^"]*all">Include/)
  t.equal((await editor.get(`${list}?from=yesterday`)).status, 400)
})

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

t.test("the list shows a template's name, or its deletion", async (t) => {
  const { location } = await editor.post(`/teams/${team.id}/templates`, {
    ...{ name: 'Short-lived', html: '<p>Hi</p>', text: '' },
  })
  const template_id = (location ?? '').split('/').at(-1)
  const { status } = await call('POST', '/v1/emails', {
    key: team.key,
    body: { from: 'a@example.com', to: ['a@example.org'], subject: 'Of a template', template_id },
  })
  t.equal(status, 201)
  shows(t, await viewer.get(`${list}?subject=template`), /Of a template Short-lived/)
  const asked = new URLSearchParams({
    q: 'nobody',
    kind: 'all',
    status: 'bounced',
    template: `${template_id}`,
  })
  const labels = 'Search: nobody, Kind of email: All emails, Status: bounced, Template: Short-lived.'
  shows(t, await editor.get(`${list}/all?${asked}`), labels)
  await editor.post(`${location}/delete`)
  shows(t, await viewer.get(`${list}?subject=template`), /Of a template deleted template/)
})

t.test('untrusted text is escaped on every page', async (t) => {
  const evil = '<img src=x onerror=alert(1)>"\'{{this}}'
  const id = await send({
    subject: evil,
    tags: [evil],
    html: '<script>alert(2)</script>',
    headers: { 'X-Evil': evil },
  })
  for (const path of [
    list,
    `${list}/${id}`,
    `${list}?subject=${encodeURIComponent(evil)}&tag=${encodeURIComponent(evil)}`,
  ]) {
    const { html } = await editor.get(path)
    t.notMatch(html, /<img|<script>/, path)
    t.ok(textOf(html).includes(evil), path)
  }
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

t.test('the CSV has the matching emails', async (t) => {
  await send({ subject: 'Plain, "quoted"', tags: ['csv'] })
  const { html: file, headers } = await editor.get(`${list}.csv?tag=csv`)
  t.match(headers.get('content-type'), 'text/csv')
  const lines = file.trim().split('\r\n')
  t.equal(lines.length, 2)
  t.match(lines[1], '"Plain, ""quoted"""')
})

/** Prepares a click on a button for all matching emails, as the page has it now. */
async function pressAll(
  person: typeof owner,
  verb: string,
  query: string,
  form: Record<string, string> = {},
) {
  const { html } = await person.get(`${list}/all?${query}`)
  const drawn = new RegExp(`<form[^>]*/all/${verb}["?][\\s\\S]*?</form>`).exec(html)?.[0] ?? ''
  const fields = [...drawn.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, ...pair]) => pair)
  const sent = { ...Object.fromEntries(fields), ...form }
  return async () => person.post(`${list}/all/${verb}`, sent)
}

t.test('a bulk action changes exactly the emails that were counted', async (t) => {
  const ids = await Promise.all(['one', 'two', 'three'].map((subject) => send({ subject, tags: ['bulk'] })))
  const kept = await send({ subject: 'kept' })
  shows(t, await editor.get(`${list}/all?tag=bulk`), 'Bulk actions: 3 emails')
  shows(t, await editor.get(`${list}/all?tag=none`), /Bulk actions: 0 emails Tag: none\. No emails match/)
  const requeued = await (await pressAll(editor, 'requeue', 'tag=bulk', { confirmed: 'yes' }))()
  t.match(requeued, { status: 303, location: `${list}?tag=bulk` })
  shows(t, await editor.get(list), '3 emails queued to be sent again.')
  for (const id of ids) t.strictSame(await jobStates(service, id), ['created'])
  t.equal((await owner.post(`${list}/all/delete`, { tag: 'bulk' })).status, 400, 'not without what was shown')
  const press = await pressAll(owner, 'delete', 'tag=bulk', { confirmed: 'yes' })
  const later = await send({ subject: 'arrived after the page was shown', tags: ['bulk'] })
  const before = (await usedBy(service, team.id)).emails
  await press()
  t.equal((await usedBy(service, team.id)).emails, before - 3)
  t.equal((await owner.get(`${list}/${ids[0]}`)).status, 404)
  t.equal((await owner.get(`${list}/${kept}`)).status, 200)
  t.equal((await owner.get(`${list}/${later}`)).status, 200)
  const deleted = { action: 'email.delete', subject: '3 emails', detail: 'tag=bulk' }
  t.match(await lastEntry(), { actor: owner.email, ...deleted })
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
  const [id, cancelled] = [
    await send({ subject: 'Later', scheduled_at }),
    await send({ subject: 'Never', scheduled_at }),
  ]
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
})

t.test('an email that was never sent shows how it ended', async (t) => {
  const [skipped, expired, failed, sending, sent] = await Promise.all(
    ['skipped', 'expired', 'failed', 'sending', 'sent'].map((tag) => send({ tags: ['ended', tag] })),
  )
  await database.query(sql.unsafe`
    update email_states set status = 'bounced', suppression = 'applied' where id = ${skipped ?? ''}`)
  await database.query(sql.unsafe`update email_states set expired_at = now() where id = ${expired ?? ''}`)
  for (const table of ['accepted_emails', 'email_states'])
    await database.query(sql.unsafe`
      update ${sql.identifier([table])} set created_at = created_at - interval '2 minutes'
      where id = ${expired ?? ''}`)
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select ${team.id}, id, uuid_send(gen_random_uuid()), 'gave_up', now(), '451 later'
    from email_states where id in (${expired ?? ''}, ${failed ?? ''})`)
  await database.query(sql.unsafe`
    delete from pgboss.job where name = 'deliver-email' and id in (${skipped ?? ''}, ${expired ?? ''}, ${failed ?? ''})`)
  await database.query(sql.unsafe`
    update pgboss.job set state = 'active' where name = 'deliver-email' and id = ${sending ?? ''}`)
  await database.query(sql.unsafe`
    update email_states set status = 'sent', provider_message_id = 'ended' where id = ${sent ?? ''}`)
  const listed = textOf((await editor.get(`${list}?tag=ended`)).html)
  for (const word of ['skipped', 'expired', 'failed']) t.match(listed, ` ${word} `)
  const chosen = (status: string) => editor.get(`${list}?tag=ended&status=${status}`)
  shows(t, await chosen('bounced'), /Bounced includes skipped emails\. .* skipped /)
  const ended = textOf((await chosen('failed')).html)
  for (const words of [/Failed includes expired emails\./, / expired \S+@/, / failed \S+@/])
    t.match(ended, words)
  t.match(ended, /Status Recipient Subject Problem Accepted .* 451 later /)
  t.notMatch(listed, 'Problem', 'most emails have none')
  t.notMatch(ended, / (queued|sent|skipped) \S+@/)
  const queued = textOf((await chosen('queued')).html)
  t.match(queued, / queued \S+@/)
  t.notMatch(queued, / (expired|failed) \S+@/)
  const file = (await editor.get(`${list}.csv?tag=ended&status=failed`)).html.trim().split('\r\n')
  t.strictSame(file.map((line) => line.split(',').at(-1)).toSorted(), ['ended', 'expired', 'failed'])
  t.notMatch(textOf((await chosen('sent')).html), 'includes')
  const page = async (id = '') => editor.get(`${list}/${id}`)
  shows(t, await page(skipped), /Hello skipped Not sent, because its recipient is suppressed\./)
  shows(t, await page(expired), /Hello expired /)
  shows(t, await page(failed), /Hello failed Failed, with no attempts left\. .*Last response 451 later/)
  t.strictSame(mainActs(await page(failed)), ['Send again'])
  shows(t, await page(sending), /Hello sending Being sent now\./)
  t.notMatch(textOf((await page(sending)).html), 'Why it waits')
  t.strictSame(mainActs(await page(sent)), [])
})

t.test('the count of bounced emails includes skipped ones, like their list', async (t) => {
  const other = await makeTeam(service)
  const { body } = await service.call('POST', '/v1/emails', { key: other.key, body: anEmail() })
  await database.query(sql.unsafe`
    update email_states set status = 'bounced', suppression = 'applied' where id = ${body.id}`)
  const viewer = await signedIn(service, { team: other.id, role: 'viewer' })
  const listed = await viewer.get(`/teams/${other.id}/emails?status=bounced`)
  shows(t, listed, /bounced 1 .*in the last 30 days\. Bounced includes skipped emails\. .* skipped /)
})

t.test("the question leaves out emails that can't be sent because of suppressions", async (t) => {
  const to = 'quiet@example.org'
  await database.query(sql.unsafe`
    update teams set suppress_transactional = 'bounces_and_complaints' where id = ${team.id}`)
  await owner.post(`/teams/${team.id}/suppressions`, { email: to, as: 'complained', reason: 'they asked' })
  const [stopped = '', open = ''] = [
    await send({ to: [to], tags: ['quiet'] }),
    await send({ tags: ['quiet', 'heard'] }),
  ]
  const ask = (...ids: string[]) => editor.ask(`${list}/requeue`, { ids })
  const refused = await ask(stopped)
  t.equal(refused.status, 409)
  shows(t, refused, 'None of these emails can be sent again. Some would only go to suppressed addresses.')
  const forced = await ask(stopped, open)
  shows(t, forced, /Send 1 email again\? 1 email can’t be sent again: all recipients are suppressed/)
  const page = await editor.get(`${list}/all?tag=quiet`)
  shows(
    t,
    page,
    /Waiting 1 can be sent again .*To suppressed addresses 1 left out .*Send 1 queued email again/,
  )
  const one = await editor.get(`${list}/all?tag=quiet&recipient=${to}`)
  shows(t, one, /None of them can be sent again\. 1 email would go only to suppressed addresses/)
  t.strictSame(formsTo(one, `${list}/all/requeue`), [])
  await database.query(sql.unsafe`update teams set suppress_transactional = default where id = ${team.id}`)
})

t.test('a question shows that nothing is left to confirm', async (t) => {
  const [one, two, gone] = [
    await send({ tags: ['left'], scheduled_at: new Date(Date.now() + 3_600_000).toISOString() }),
    await send({ tags: ['left'] }),
    await send({ tags: ['left'] }),
  ]
  const bounce = { recipient: 'someone@example.org', detail: '550 5.7.1 blocked', effect: 'none' } as const
  await recordBounce(service, { team_id: team.id, email_id: two }, bounce)
  const requeue = `${list}/${two}/requeue`
  const all = await owner.get(`${list}/all?tag=left`)
  const [fields = {}] = formsTo(all, `${list}/all/delete`)
  const [again = {}] = formsTo(all, `${list}/all/requeue`)
  const questions: [path: string, form: Record<string, string | string[]>][] = [
    [`${list}/${one}/cancel`, {}],
    [requeue, formTo((await owner.get(`${list}/${two}`)).html, requeue)],
    [`${list}/${gone}/delete`, {}],
    [`${list}/delete`, { ids: [two, gone] }],
    [`${list}/requeue`, { ids: [two, gone] }],
    [`${list}/all/delete`, fields],
    [`${list}/all/requeue`, again],
  ]
  const asked: string[] = []
  for (const [path, form] of questions) {
    const { location, status } = await owner.post(path, { ...form, confirmed: '' })
    t.equal(status, 303, path)
    t.notMatch(textOf((await owner.get(location ?? '')).html), 'Nothing left to confirm', path)
    asked.push(location ?? '')
  }
  await owner.press(`${list}/${two}`, requeue)
  shows(t, await owner.get(asked[1] ?? ''), /Nothing left to confirm The email has changed/)
  await owner.press(`${list}/${one}`, `${list}/${one}/requeue`)
  shows(t, await owner.get(asked[0] ?? ''), /Nothing left to confirm This message can no longer be cancelled/)
  await owner.post(`${list}/delete`, { ids: [one, two, gone] })
  for (const question of asked) shows(t, await owner.get(question), 'Nothing left to confirm')
})

t.test('rejected emails are only requeued in bulk if checked', async (t) => {
  const id = await send({ to: ['blocked@example.org'], tags: ['outright'] })
  // A rejection without suppression, because suppressed recipients are left out.
  const bounce = { recipient: 'blocked@example.org', detail: '550 5.7.1 blocked', effect: 'none' } as const
  await recordBounce(service, { team_id: team.id, email_id: id }, bounce)
  const question = async (form: Record<string, string> = {}) => {
    const [fields = {}] = formsTo(await editor.get(`${list}/all?tag=outright`), `${list}/all/requeue`)
    return editor.ask(`${list}/all/requeue`, { ...fields, ...form })
  }
  shows(t, await editor.get(`${list}/all?tag=outright`), 'Send 1 rejected email again')
  shows(t, await question(), 'Send 1 rejected email again?')
  await send({ tags: ['outright'] })
  const press = async (form: Record<string, string>) => {
    await (await pressAll(editor, 'requeue', 'tag=outright', { confirmed: 'yes', ...form }))()
    return editor.get(list)
  }
  shows(
    t,
    await editor.get(`${list}/all?tag=outright`),
    /expired emails, and emails that a provider has accepted aren’t sent again\. .*1 queued email 1 queued email, and 1 email rejected by a server/,
  )
  shows(t, await question(), 'Send 1 queued email again?')
  shows(t, await question({ force: 'refused' }), 'Send 1 queued email and 1 rejected one again?')
  t.equal((await question({ waiting: 'many' })).status, 400)
  shows(t, await press({}), '1 email queued to be sent again.')
  shows(t, await press({ force: 'refused' }), '2 emails queued to be sent again.')
})

t.test('a bulk requeue shows an incomplete count as a minimum', async (t) => {
  await send({ tags: ['slow'] })
  const [fields = {}] = formsTo(await editor.get(`${list}/all?tag=slow`), `${list}/all/requeue`)
  const question = (waiting: number, form: Record<string, string> = {}) =>
    editor.ask(`${list}/all/requeue`, {
      ...{ ...fields, waiting: String(waiting), rejected: '0', timed_out: 'yes' },
      ...form,
    })
  shows(t, await question(3), 'Send at least 3 queued emails again?')
  shows(t, await question(0), 'Send the queued emails again?')
  shows(t, await question(0, { force: 'refused' }), 'Send the queued emails and the rejected ones again?')
})

t.test('bulk actions say beforehand that nothing can be sent again', async (t) => {
  const id = await send({ tags: ['accepted'] })
  await database.query(sql.unsafe`
    update email_states set status = 'delivered', provider_message_id = 'x' where id = ${id}`)
  await send({ tags: ['accepted'], scheduled_at: new Date(Date.now() + 3_600_000).toISOString() })
  const page = await owner.get(`${list}/all?tag=accepted`)
  shows(
    t,
    page,
    /Bulk actions: 2 emails .*None of them can be sent again\. .* are scheduled, or have expired/,
  )
  t.strictSame(formsTo(page, `${list}/all/requeue`), [])
  t.equal(formsTo(page, `${list}/all/delete`).length, 1)
})

t.test('sends selected emails again, or deletes them', async (t) => {
  const [waiting = '', sent = '', left = ''] = await Promise.all(
    ['a', 'b', 'c'].map((tag) => send({ tags: [tag] })),
  )
  await database.query(sql.unsafe`
    update email_states set status = 'delivered', provider_message_id = 'y' where id = ${sent}`)
  const ids = [waiting, sent]
  const at = (verb: string): string => `${list}/${verb}?tag=a`
  t.match((await editor.get(list)).html, `name="ids" value="${waiting}"`)
  t.match((await editor.get(list)).html, /aria-label="Select [^",]+@[^",]+, [^"]+"/, 'recipient and subject')
  t.notMatch((await viewer.get(list)).html, /name="ids"/)
  shows(
    t,
    await editor.ask(at('requeue'), { ids }),
    /Send 1 email again\? 1 email can’t be sent again: accepted by a provider, scheduled or expired/,
  )
  t.match(await editor.post(at('requeue'), { ids }), { status: 303, location: `${list}?tag=a` })
  shows(t, await editor.get(list), '1 email queued to be sent again. 1 other can’t be sent again.')
  t.equal((await owner.post(at('delete'))).status, 400, 'without a selection')
  await owner.post(at('delete'), { ids })
  shows(t, await owner.get(list), '2 emails deleted.')
  for (const id of ids) t.equal((await owner.get(`${list}/${id}`)).status, 404)
  t.equal((await owner.get(`${list}/${left}`)).status, 200)
  const entry = await lastEntry()
  t.match(entry, { action: 'email.delete', subject: '2 emails' })
  for (const id of ids) t.match(entry?.detail, id)
  const theirs = await signedIn(service, { team: other.id, role: 'owner' })
  await theirs.post(`/teams/${other.id}/emails/requeue`, { ids: left })
  shows(t, await theirs.get(`/teams/${other.id}/emails`), '0 emails queued to be sent again.')
  await theirs.post(`/teams/${other.id}/emails/delete`, { ids: left })
  t.equal((await owner.get(`${list}/${left}`)).status, 200, 'another team’s email stays')
})

t.test('selected emails to suppressed addresses are not sent again', async (t) => {
  const bounced = await send({ to: ['dead@example.org'] })
  await recordBounce(service, { team_id: team.id, email_id: bounced }, { recipient: 'dead@example.org' })
  const id = await send({ to: ['dead@example.org'] })
  await editor.post(`${list}/requeue`, { ids: id })
  shows(t, await editor.get(list), '0 emails queued to be sent again. 1 other can’t be sent again.')
})

t.test("the page explains why an accepted email can't be requeued", async (t) => {
  const id = await send({ to: ['full@example.org'] })
  const ref = { team_id: team.id, email_id: id }
  const sent = {
    ...ref,
    kind: 'sent',
    effect: 'none',
    event_key: 'sent',
    recipient: null,
    detail: '250 ok',
  } as const
  const now = new Date()
  await database.transaction((tx) => applyEmailEvents(tx, [{ ...sent, occurred_at: now }], now))
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
  const traces = async () =>
    (await auditEntries(database, { team: team.id, limit: 50 })).filter(
      ({ action }) => action === 'email.open',
    )
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
  const looks = (await auditEntries(database, { team: team.id, limit: 50 })).filter(
    ({ action }) => action === 'email.file',
  )
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

t.test('lists show a recipient’s name before the address', async (t) => {
  const to = ['Erika Mustermann <first@erika.example>', 'second@erika.example']
  await send({ to, subject: 'Address first' })
  const found = /Erika Mustermann first@erika\.example \+1 Address first/
  shows(t, await viewer.get(`${list}?subject=Address%20first`), found)
  shows(t, await viewer.get('/find?q=first@erika.example'), found)
})

t.test('lists leave out emails of broadcasts by default', async (t) => {
  const { emails } = await aBroadcast(service, team)
  const [id = ''] = await emails('kim@example.net')
  const single = await send({ to: ['kim@example.net'], subject: 'Only for Kim' })
  const found = async (query: string): Promise<boolean[]> => {
    const { html } = await viewer.get(`${list}?${query}`)
    return [single, id].map((each) => html.includes(`${list}/${each}`))
  }
  t.strictSame(await found(''), [true, false])
  t.strictSame(await found('recipient=kim@example.net'), [true, false])
  t.strictSame(await found('kind=broadcasts'), [false, true])
  t.strictSame(await found('kind=all'), [true, true])
  t.strictSame(await found(`id=${id}`), [false, true], 'who names an email means it')
  t.equal((await viewer.get(`${list}?kind=other`)).status, 400)
  shows(t, await editor.get(`${list}/all?q=kim@example.net`), 'Bulk actions: 1 email')
  const requeued = await (await pressAll(editor, 'requeue', 'q=kim@example.net', { confirmed: 'yes' }))()
  t.equal(requeued.status, 303)
  shows(t, await editor.get(list), '1 email queued to be sent again.')
  const kind = await database.oneFirst(sql.unsafe`
    select kind from background_jobs where team_id = ${team.id} order by begun_at desc limit 1`)
  t.equal(kind, 'email.requeue_apart', 'workers of version 0.1.0 leave it alone')
  t.match(await lastEntry(), { action: 'email.requeue', subject: '1 email' })
})

t.test('the link back to the list keeps its filter', async (t) => {
  const id = await send({ tags: ['kept'], subject: 'Found again' })
  const shown = await editor.get(`${list}?tag=kept`)
  const link = `${list}/${id}?list=tag%3Dkept`
  t.ok(textOf(shown.html).includes('Tag: kept'))
  t.match(shown.html, `href="/dashboard${link.replaceAll('=', '&#x3D;')}"`)
  t.match((await editor.get(link)).html, `href="/dashboard${list}?tag&#x3D;kept">← Emails`)
  t.equal((await editor.post(`${list}/${id}/requeue?list=tag%3Dkept`)).location, link)
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

t.test("cancelling a question, or an error, keeps the list's filter", async (t) => {
  const id = await send({ tags: ['asked'], subject: 'Asked about' })
  const [page, action] = [`${list}/all?tag=asked`, `${list}/all/delete`]
  const [drawn = ''] =
    new RegExp(`action="/dashboard${action}[^"]*"`).exec((await owner.get(page)).html) ?? []
  const to = drawn.slice('action="/dashboard'.length, -1).replaceAll('&#x3D;', '=')
  const [form = {}] = formsTo(await owner.get(page), action)
  const asked = await owner.ask(to, form)
  t.match(asked.html, `href="/dashboard${list}/all?tag&#x3D;asked">Go back</a>`)
  const refused = await owner.post(to, { ...form, total: '', confirmed: 'yes' })
  t.equal(refused.status, 400)
  shows(t, refused, /Bulk actions: 1 email Tag: asked\. /)
  const opened = `${list}/${id}?list=tag%3Dasked`
  const one = await owner.ask(`${list}/${id}/delete?list=tag%3Dasked`)
  t.match(one.html, `href="/dashboard${opened.replaceAll('=', '&#x3D;')}">Go back</a>`)
})

t.test('finds by address, ID or subject, and rejects conflicts', async (t) => {
  const id = await send({ to: ['only@example.org'], subject: 'Wholly unheard of' })
  for (const q of ['only@example.org', id, `<${id}@example.com>`, 'unheard wholly'])
    shows(t, await editor.get(`${list}?q=${encodeURIComponent(q)}`), 'Wholly unheard of')
  const both = await editor.get(`${list}?q=only@example.org&recipient=other@example.org`)
  t.equal(both.status, 400)
  shows(t, both, /Search can't be used together with the recipient field. Clear one of them/)
  t.notMatch(textOf(both.html), /Q names/, 'on top, too')
})
