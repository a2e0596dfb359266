/** Lists of emails on the dashboard with search, filters and the CSV. */
import { sql } from 'slonik'
import { mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { makeTeam, sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, call, database, team, send } = await world(t)
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
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

t.test('the CSV has the matching emails', async (t) => {
  await send({ subject: 'Plain, "quoted"', tags: ['csv'] })
  const { html: file, headers } = await editor.get(`${list}.csv?tag=csv`)
  t.match(headers.get('content-type'), 'text/csv')
  const lines = file.trim().split('\r\n')
  t.equal(lines.length, 2)
  t.match(lines[1], '"Plain, ""quoted"""')
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
  t.notMatch(queued, 'Delivery is paused')
  const operator = await signedIn(service, { operator: true })
  await operator.post('/operator/queues/deliver-email/pause')
  const paused = textOf((await chosen('queued')).html)
  t.match(paused, / queued \S+@.* Delivery is paused /)
  t.notMatch(textOf((await chosen('failed')).html), 'Delivery is paused')
  await operator.post('/operator/queues/deliver-email/resume')
  const file = (await editor.get(`${list}.csv?tag=ended&status=failed`)).html.trim().split('\r\n')
  t.strictSame(file.map((line) => line.split(',').at(-1)).toSorted(), ['ended', 'expired', 'failed'])
  t.notMatch(textOf((await chosen('sent')).html), 'includes')
  const page = async (id = '') => editor.get(`${list}/${id}`)
  shows(t, await page(skipped), /Hello skipped Not sent, because its recipient is suppressed\./)
  shows(t, await page(expired), /Hello expired /)
  shows(t, await page(failed), /Hello failed Failed, with no attempts left\. .*Last response 451 later/)
  t.strictSame(mainActs(await page(failed)), ['Send again'])
  await editor.post(`${list}/${failed}/requeue`)
  shows(t, await page(failed), /Hello queued Waiting to be sent\./)
  shows(t, await page(sending), /Hello sending Being sent now\./)
  t.notMatch(textOf((await page(sending)).html), 'Why it waits')
  t.strictSame(mainActs(await page(sent)), [])
})

t.test('the count of bounced emails includes skipped ones, like their list', async (t) => {
  const other = await makeTeam(service)
  const id = await sendEmail(service, other)
  await database.query(sql.unsafe`
    update email_states set status = 'bounced', suppression = 'applied' where id = ${id}`)
  const viewer = await signedIn(service, { team: other.id, role: 'viewer' })
  const listed = await viewer.get(`/teams/${other.id}/emails?status=bounced`)
  shows(t, listed, /bounced 1 .*in the last 30 days\. Bounced includes skipped emails\. .* skipped /)
})

t.test('lists show a recipient’s name before the address', async (t) => {
  const to = ['Erika Mustermann <first@erika.example>', 'second@erika.example']
  await send({ to, subject: 'Address first' })
  const found = /Erika Mustermann first@erika\.example \+1 Address first/
  shows(t, await viewer.get(`${list}?subject=Address%20first`), found)
  shows(t, await viewer.get('/find?q=first@erika.example'), found)
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

t.test('finds by address, ID or subject, and rejects conflicts', async (t) => {
  const id = await send({ to: ['only@example.org'], subject: 'Wholly unheard of' })
  for (const q of ['only@example.org', id, `<${id}@example.com>`, 'unheard wholly'])
    shows(t, await editor.get(`${list}?q=${encodeURIComponent(q)}`), 'Wholly unheard of')
  const both = await editor.get(`${list}?q=only@example.org&recipient=other@example.org`)
  t.equal(both.status, 400)
  shows(t, both, /Search can't be used together with the recipient field. Clear one of them/)
  t.notMatch(textOf(both.html), /Q names/, 'on top, too')
})
