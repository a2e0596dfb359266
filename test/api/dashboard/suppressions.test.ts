/** Suppressed addresses on the dashboard: list, count, adding and lifting. */
import { sql } from 'slonik'
import { recordBounce } from '../../support/bounce.ts'
import { after, shows, signedIn } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam, sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, call, database, team, lastEntry } = await world(t)
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const at = (path: string): string => `/teams/${team.id}/${path}`

t.test('shows the cause of a suppression, and lifts it', async (t) => {
  await editor.post(at('contacts'), { email: 'gone@example.org' })
  const id = await sendEmail(service, team, { to: ['gone@example.org'] })
  const ref = { team_id: team.id, email_id: id }
  await recordBounce(service, ref, { recipient: 'gone@example.org', detail: '550 no such user' })
  const path = at('contacts/gone@example.org')
  shows(t, await viewer.get(path), 'No email is sent to this address.')
  const shown = await viewer.get(path)
  shows(
    t,
    shown,
    /Suppressed: hard bounce, [^,]*, [\d:]+ UTC ?\. No email is sent to this address\. Response: 550 no such user\./,
  )
  t.ok((await viewer.get(path)).html.includes(`emails/${id}`))
  t.equal((await editor.post(`${path}/lift`, { reason: ' ' })).status, 400)
  const lifted = await after(editor, await editor.post(`${path}/lift`, { reason: 'they fixed it' }))
  shows(t, lifted, /The suppression is lifted.* subscribed/)
  t.match(await lastEntry(), { action: 'contact.lift', detail: 'they fixed it' })
})

t.test("lifting a bounce doesn't lift a later complaint", async (t) => {
  await editor.post(at('contacts'), { email: 'both@example.org' })
  const add = (as: string) => editor.post(at('suppressions'), { email: 'both@example.org', as, reason: 'x' })
  await add('bounced')
  const page = at('contacts/both%40example.org')
  const form = formTo((await editor.get(page)).html, `${page}/lift`)
  await add('complained')
  const refused = await editor.post(`${page}/lift`, {
    ...form,
    reason: 'the mailbox is back',
    confirmed: 'yes',
  })
  t.equal(refused.status, 409)
  shows(t, refused, /The contact has been suppressed for another reason since this page was opened\./)
  shows(t, await viewer.get(page), /both@example\.org complained/)
  t.equal((await editor.press(page, `${page}/lift`, { reason: 'asked for it' })).status, 303)
  shows(t, await viewer.get(page), /both@example\.org subscribed/)
})

t.test('lifts a suppression that only the contact has', async (t) => {
  await editor.post(at('contacts'), { email: 'old@example.org' })
  await database.query(sql.unsafe`
    update contacts set suppression = 'complained' where team_id = ${team.id} and email = 'old@example.org'`)
  const page = at('contacts/old%40example.org')
  shows(t, await editor.get(page), /Another complaint harms your reputation.*Suppressed: complained/)
  t.equal((await editor.press(page, `${page}/lift`, { reason: 'asked again' })).status, 303)
  shows(t, await viewer.get(page), 'old@example.org subscribed')
  t.equal((await editor.post(`${page}/lift`, { reason: 'once more' })).status, 400)
})

t.test('explains the risk of lifting, in the menu if there is one', async (t) => {
  const page = async (as: string, response: string) => {
    const email = `${as}@risk.test`
    await editor.post(at('suppressions'), { email, as, reason: response })
    return editor.get(at(`contacts/${email}`))
  }
  const isInMenu = ({ html }: { html: string }) =>
    /<details class="menu more"[\s\S]*Lift the suppression/.test(html)
  const complained = await page('complained', 'asked by post')
  shows(t, complained, /Lift the suppression only at their request/)
  t.ok(isInMenu(complained))
  const added = await page('bounced', '550 5.1.1 no such user')
  shows(
    t,
    added,
    /It was added manually\..*Suppressed: hard bounce, added manually, .* Reason: The mailbox does not exist \(550 5\.1\.1 no such user\)\./,
  )
  t.notOk(isInMenu(added))
  const list = await viewer.get(at('suppressions'))
  shows(t, list, /bounced@risk\.test hard bounce, added manually The mailbox does not exist 550 5\.1\.1/)
  // In a card, the cause is on the line of the time. A filter for the response shows the response.
  const looks = ({ html }: { html: string }) =>
    (/bounced@risk\.test<[\s\S]*?<\/tr>/.exec(html)?.[0] ?? '').match(/(?<=<td class=")[^"]*/g)
  t.strictSame(looks(list), ['self state', 'wide self none', 'self last'])
  const found = await viewer.get(at('suppressions?response=no+such'))
  t.strictSame(looks(found), ['self state', 'wide self', 'self last'])
})

t.test('warns about resubscribing a contact', async (t) => {
  const page = at('contacts/left%40example.org')
  await editor.post(at('contacts'), { email: 'left@example.org' })
  await editor.post(`${page}/unsubscribe`)
  const left = await viewer.get(page)
  shows(t, left, /unsubscribed Broadcasts don’t go to this contact\. Resubscribe them only at their request/)
  await editor.post(`${page}/resubscribe`)
  t.notMatch((await viewer.get(page)).html, 'only at their request')
})

t.test('the filter lists the most common causes first', async (t) => {
  shows(
    t,
    await viewer.get(at('suppressions')),
    /All hard bounce complaint soft bounces other, added manually/,
  )
})

t.test('counts suppressions up to a limit', async (t) => {
  const other = await makeTeam(service, { domain: 'counted.test' })
  const reader = await signedIn(service, { team: other.id, role: 'viewer' })
  const path = `/teams/${other.id}/suppressions`
  const add = (first: number, last: number, cause: string | null) =>
    service.database.query(sql.unsafe`
      insert into suppressed_addresses (team_id, identity, email, cause, since, lifted_at)
      select ${other.id}, n || '@counted.test', n || '@counted.test', ${cause},
        case when ${cause}::text is not null then now() end, now()
      from generate_series(${first}::int, ${last}::int) n`)
  shows(t, await reader.get(path), /Suppressions 0 Broadcasts /)
  await add(1, 1, 'complaint')
  await add(2, 2, null)
  shows(t, await reader.get(path), /Suppressions 1 Broadcasts /)
  await add(3, 10_001, 'manual')
  shows(t, await reader.get(`${path}?email=3%40`), /Suppressions 10,000 Broadcasts /)
  await add(10_002, 10_002, 'manual')
  shows(t, await reader.get(path), /Suppressions 10,000\+ Broadcasts /)
})

t.test('finds suppressions by part of the address', async (t) => {
  for (const email of ['one.gone@suppressed.test', 'other.lost@suppressed.test'])
    await editor.post(at('suppressions'), { email, as: 'bounced', reason: 'asked' })
  const { html } = await viewer.get(at('suppressions?email=GONE%40supp'))
  t.match(html, 'one.gone@suppressed.test')
  t.notMatch(html, 'other.lost@')
  const file = (await viewer.get(at('suppressions.csv?email=lost'))).html
  t.match(file, 'other.lost@suppressed.test')
  t.notMatch(file, 'one.gone@')
  shows(t, await viewer.get(at('suppressions?email=lost&cause=complaint')), 'No suppressed address matches.')
})

t.test('a suppression by a report was not added manually', async (t) => {
  await database.query(sql.unsafe`
    insert into suppressed_addresses (team_id, identity, email, cause, since, report_id, response, bounced_at)
    values (${team.id}, 'reported@example.org', 'reported@example.org', 'bounce', now(), gen_random_uuid(), 'gone', now())`)
  const page = await editor.get(at('contacts/reported%40example.org'))
  shows(t, page, 'Suppressed: hard bounce, ')
  t.notMatch(page.html, 'added manually')
})

t.test('lists suppressed addresses with their causes, also as CSV', async (t) => {
  const { body: contact } = await call('POST', '/v1/contacts', {
    key: team.key,
    body: { email: 'gone@example.net' },
  })
  t.ok(contact.id)
  const id = await sendEmail(service, team, { to: ['gone@example.net'] })
  const bounce = { recipient: 'gone@example.net', detail: '550 nobody' }
  await recordBounce(service, { team_id: team.id, email_id: id }, bounce)
  shows(t, await viewer.get(at('suppressions')), /gone@example\.net hard bounce 550 nobody /)
  t.notMatch((await viewer.get(at('suppressions?cause=complaint'))).html, /gone@example\.net/)
  const { html: file } = await viewer.get(at('suppressions.csv?cause=bounce'))
  t.match(file, /^email,status,cause,since,words\r\n[\s\S]*gone@example\.net,bounced,permanent bounce,/)
})

t.test('lifts all matches of a filter after a confirmation', async (t) => {
  for (const name of ['listed1', 'listed2', 'closed'])
    await editor.post(at('suppressions'), {
      ...{ email: `${name}@blocked.test`, as: 'bounced' },
      reason: name === 'closed' ? 'mailbox closed' : '550 Listed by Blocklist.example',
    })
  t.notMatch((await editor.get(at('suppressions'))).html, 'suppressions/lift', 'only a filtered list')
  const page = at('suppressions?response=blocklist')
  const shown = await editor.get(page)
  shows(t, shown, /Lift 2 suppressions/)
  t.notMatch(shown.html, 'closed@blocked.test')
  t.notMatch((await viewer.get(page)).html, 'suppressions/lift')
  const path = at('suppressions/lift')
  const form = { ...formTo(shown.html, path), reason: 'delisted' }
  shows(t, await editor.ask(path, form), /Lift 2 suppressions\?/)
  t.equal((await editor.post(path, form)).status, 303)
  const worker = await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })
  await until('it is audited', async () => (await lastEntry())?.action === 'suppression.lift')
  await worker.stop()
  const { html } = await viewer.get(at('suppressions?email=blocked.test'))
  t.match(html, 'closed@blocked.test')
  t.notMatch(html, /listed\d@blocked\.test/)
  t.match(await lastEntry(), { actor: editor.email, subject: /\b2\b/, detail: /delisted/ })
})

t.test('adds a suppression manually with a reason, and lifts it', async (t) => {
  const add = (form: Record<string, string>) => editor.post(at('suppressions'), form)
  const wish = { email: 'Never@example.net', as: 'complained', reason: 'asked by post' }
  shows(t, await add({ ...wish, email: 'nobody' }), /Email address must be an email address/)
  shows(t, await add({ ...wish, reason: ' ' }), /Reason must have/)
  shows(t, await add({ ...wish, as: 'rich' }), /Suppress as can’t be “rich”\./)
  shows(
    t,
    await after(editor, await add(wish)),
    /was suppressed\..* Never@example\.net complaint, added manually/,
  )
  t.match(await lastEntry(), {
    actor: editor.email,
    action: 'contact.suppress',
    subject: 'Never@example.net',
    detail: 'complained: asked by post',
  })
  const again = await add({ ...wish, as: 'bounced' })
  shows(t, again, /an address that isn.t suppressed. Never@example\.net is suppressed already/)
  const page = at('contacts/never@example.net')
  await editor.post(at('contacts'), { email: 'Never@example.net' })
  const shown = await viewer.get(page)
  shows(t, shown, /Suppressed: complaint, added manually, .* Reason: asked by post\./)
  t.notMatch(shown.html, />Show email</)
  await editor.post(`${page}/lift`, { reason: 'asked again' })
  const { body } = await call('GET', '/v1/contacts/never@example.net', { key: team.key })
  t.equal(body.status, 'subscribed')
  const full = await makeTeam(service, { plan: 'free', contact_limit: 0, domain: 'brim.test' })
  const person = await signedIn(service, { team: full.id, role: 'editor' })
  t.equal((await person.post(`/teams/${full.id}/suppressions`, wish)).status, 303, 'it needs no quota')
})
