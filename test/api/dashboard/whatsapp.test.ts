/** WhatsApp pages of a team: messages, their status and templates. */

import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { applyReportedWhatsapp } from '../../../db/messages/whatsapp/apply-events.ts'
import { storeSignOfLife } from '../../../db/stats/fleet/fleet.sql.ts'
import { DEMO_TEMPLATE } from '../../sandbox/whatsapp-magic.ts'
import { adminCli } from '../../support/admin.ts'
import { mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { idleGauges } from '../../support/gauges.ts'
import { makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate, rowsOf, sendWhatsapp, setFailed } from '../../support/whatsapp.ts'

const { service, team, lastEntry } = await world(t)
const template = await makeTemplate(service, team.id, DEMO_TEMPLATE)
const parameters = Object.fromEntries(template.slots.map((slot) => [slot, `<b>${slot}</b>`]))
const to = ['+15555550101', '+15555550102']
await sendWhatsapp(service, team, template.id, { to, parameters, idempotency_key: 'wa-1' })
const [first] = await rowsOf(service, team.id)
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const path = `/teams/${team.id}/whatsapp`

t.test('finds messages by number, ID, status and template', async (t) => {
  for (const query of [
    'recipient=%2B1+555+555+0101',
    'q=1+555+555+0101',
    `q=${first?.id}`,
    `id=${first?.id}`,
    `status=queued&template=${template.id}&recipient=%2B15555550101`,
  ]) {
    const page = await viewer.get(`${path}?${query}`)
    shows(t, page, /\+15555550101/)
    t.notMatch(page.html, /\+15555550102/, query)
  }
  const both = await viewer.get(`${path}?id=wa-1`)
  shows(t, both, /\+15555550101/)
  shows(t, both, /\+15555550102/)
  shows(t, await viewer.get(`${path}?status=read`), /No message matches/)
  const odd = await viewer.get(`${path}?recipient=nobody`)
  t.equal(odd.status, 400)
  const text = textOf(odd.html)
  t.match(text, /Number must be a phone number, such as \+15551234567\..* Number must be/, 'on top, too')
  t.match(odd.html, /name="recipient"[^>]* aria-invalid="true"/)
  t.notMatch(textOf(odd.html), /Recipient must/)
  t.equal((await viewer.get(`${path}?q=%2B15555550101&recipient=%2B15555550102`)).status, 400)
})

t.test('a message shows its parameters, timeline and reason to wait', async (t) => {
  const page = await viewer.get(`${path}/${first?.id}`)
  shows(t, page, /order_ready \(en_US\)/)
  shows(t, page, /Accepted by the API/)
  shows(t, page, /Waiting for a worker/)
  t.notMatch(page.html, /<b>body/)
  shows(t, page, 'Hello <b>body:1</b>, your order is ready <b>body:2</b>.')
  t.notMatch(page.html, /Send again/, 'a viewer only reads')
})

t.test("the integration page has an example with the team's template", async (t) => {
  const page = await viewer.get(`/teams/${team.id}/integration`)
  shows(t, page, new RegExp(`v1/whatsapp/messages.* "template_id": "${template.id}".* "body:1"`))
})

t.test('an editor requeues a waiting message', async (t) => {
  const done = await editor.post(`${path}/${first?.id}/requeue`)
  t.equal(done.status, 303)
  shows(t, await editor.get(`${path}/${first?.id}`), /Queued again/)
})

t.test('requeues a rejected message only by force, and audits that', async (t) => {
  const [, second] = await rowsOf(service, team.id)
  const id = second?.id ?? ''
  await setFailed(service, id)
  shows(t, await viewer.get(`${path}?status=failed`), /failed \+15555550102 order_ready No reason given/)
  shows(t, await editor.get(`${path}/${id}`), 'Send again')
  t.notMatch((await viewer.get(`${path}/${id}`)).html, /Send again/)
  t.equal((await editor.post(`${path}/${id}/requeue`)).status, 409, 'not without the word')
  t.equal((await editor.post(`${path}/${id}/requeue`, { force: 'refused' })).status, 303)
  shows(t, await editor.get(`${path}/${id}`), /queued Waiting to be sent\. .* Queued again/)
  const expected = { actor: editor.email, action: 'whatsapp.requeue', subject: id }
  t.match(await lastEntry(), { ...expected, detail: 'it had been rejected' })
})

t.test('shows templates with state, slots and JSON', async (t) => {
  const list = `/teams/${team.id}/whatsapp-templates`
  const templates = await viewer.get(list)
  shows(t, templates, /order_ready en_US Hello Ana, your order is ready tomorrow\. Utility approved/)
  const shown = await viewer.get(`${list}/${template.id}`)
  shows(t, shown, /url:1/)
  shows(
    t,
    shown,
    new RegExp(`Example request curl .*/v1/whatsapp/messages.*"template_id": ?"${template.id}".*"body:1"`),
  )
  const python = await viewer.get(`${list}/${template.id}?language=Python`)
  shows(
    t,
    python,
    new RegExp(`Example request curl Node\\.js Python .*requests?.*"template_id": "${template.id}"`),
  )
  t.match(python.html, /<a href="[^"]*#request" aria-current="page">Python</)
  shows(t, shown, /Order A-17 Hello Ana, your order is ready tomorrow\. Heliograph demo Thanks See it/)
  const definition = JSON.stringify({ ...DEMO_TEMPLATE, name: 'second' })
  const added = await editor.post(list, { definition })
  shows(t, await editor.get(added.location ?? ''), /second/)
  const broken = await editor.post(list, { definition: '{' })
  t.equal(broken.status, 400)
  shows(t, broken, /must be valid JSON/)
})

t.test("explains an error by the provider's code, not its text", async (t) => {
  const event = (detail: string, code?: string) => ({
    ref: { team_id: team.id, id: first?.id ?? '' },
    status: 'sent' as const,
    occurred_at: new Date(1_750_000_000_000),
    event_key: detail,
    provider_message_id: null,
    number: null,
    detail,
    ...(code === undefined ? {} : { code }),
  })
  const show = async (...given: Parameters<typeof event>) => {
    await service.database.transaction((tx) => applyReportedWhatsapp(tx, [event(...given)], new Date()))
    return viewer.get(`${path}/${first?.id}`)
  }
  const prose = await show('451 131042 is the number of this session')
  shows(t, prose, /451 131042 is the number of this session/)
  t.notMatch(prose.html, /payment problem/)
  shows(t, await show('131026 No', '131026'), /The number may not be on WhatsApp.* · 131026 No/)
  const failure = { ...event('Message undeliverable', '131026'), status: 'failed' as const }
  await service.database.transaction((tx) => applyReportedWhatsapp(tx, [failure], new Date()))
  const failed = textOf((await viewer.get(`${path}/${first?.id}`)).html)
  const causes = failed.match(/The number may not be on WhatsApp/g)?.length
  t.equal(causes, 2, 'once at the top, once for the earlier report')
  t.match(failed, 'Message undeliverable · Meta’s error 131026')
  t.equal(failed.match(/the recipient another way/gi)?.length, 1, 'the same advice once')
})

t.test('a failed message leads to what helps against its cause', async (t) => {
  const [id = ''] = await sendWhatsapp(service, team, template.id, { to: ['+15555550109'], parameters })
  await setFailed(service, id)
  const acts = async (code: string | null) => {
    await service.database.query(sql.unsafe`delete from whatsapp_events where message_id = ${id}`)
    await service.database.query(sql.unsafe`
      insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail, code)
      values (${team.id}, ${id}, uuid_send(gen_random_uuid()), 'failed', now(), 'No', ${code})`)
    return mainActs(await editor.get(`${path}/${id}`))
  }
  t.strictSame(await acts(null), ['Send again'], 'an unknown cause')
  t.strictSame(await acts('131026'), [], 'a search may find no contact')
  const page = await editor.get(`${path}/${id}`)
  shows(t, page, /Reach the recipient another way/)
  t.match(page.html, 'q&#x3D;%2B15555550109')
  t.match(
    page.html,
    /Search for the number<\/a>[\s\S]*<button class="quiet"[^>]*>Send again</,
    'repeating comes second',
  )
  shows(
    t,
    await viewer.get(`${path}?status=failed`),
    /failed \+\d+ order_ready The number may not be on WhatsApp/,
  )
  t.strictSame(await acts('132000'), ['Open the template'])
  t.match((await editor.get(`${path}/${id}`)).html, `/whatsapp-templates/${template.id}"`)
  t.strictSame(await acts('131050'), ['Show opt-outs'])
  t.strictSame(await acts('131042'), [], 'only the owner of the account can fix it')
  t.strictSame(await acts('131049'), ['Send again'], 'a later message may get through')
  t.strictSame(mainActs(await viewer.get(`${path}/${id}`)), [])
})

t.test('a message that was never sent shows how it ended', async (t) => {
  const other = await makeTeam(service)
  const { id: template_id, slots } = await makeTemplate(service, other.id, DEMO_TEMPLATE)
  const values = Object.fromEntries(slots.map((slot) => [slot, 'x']))
  const { database } = service
  await sendWhatsapp(service, other, template_id, { to, parameters: values, idempotency_key: 'ended' })
  const [expired, failed] = (await rowsOf(service, other.id)).map(({ id }) => id)
  await database.query(
    sql.unsafe`update whatsapp_messages set expired_at = now() where id = ${expired ?? ''}`,
  )
  await database.query(sql.unsafe`
    insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', now(), 'busy'
    from whatsapp_messages where team_id = ${other.id}`)
  await database.query(sql.unsafe`delete from pgboss.job where id in (${expired ?? ''}, ${failed ?? ''})`)
  const someone = await signedIn(service, { team: other.id, role: 'editor' })
  const page = (id = '') => someone.get(`/teams/${other.id}/whatsapp/${id}`)
  shows(
    t,
    await someone.get(`/teams/${other.id}/whatsapp`),
    / failed \+15555550102 .* expired \+15555550101 /,
  )
  shows(t, await page(expired), /expired Not sent\. It expired\./)
  shows(t, await page(failed), /failed Failed, with no attempts left\./)
  await someone.post(`/teams/${other.id}/whatsapp/${failed}/requeue`)
  shows(t, await page(failed), /queued Waiting to be sent\./)
})

t.test('the filter has the statuses in the order in which a message has them', async (t) => {
  shows(t, await viewer.get(path), /All \d scheduled \d queued \d sent \d delivered \d read \d failed \d/)
})

t.test('lists countries only if one is known', async (t) => {
  t.notMatch((await viewer.get(path)).html, '>Country<')
  await service.database.query(sql.unsafe`
    update whatsapp_messages set country = 'AT' where team_id = ${team.id} and id = ${first?.id ?? ''}`)
  shows(t, await viewer.get(path), /Country .* AT /)
})

t.test('the CSV has the pricing of each message', async (t) => {
  const [id = ''] = await sendWhatsapp(service, team, template.id, { to: ['+15555550103'], parameters })
  const about = { ref: { team_id: team.id, id }, provider_message_id: 'wamid.csv', number: null }
  const pricing = { category: 'utility', type: 'regular', billable: true }
  const status = { status: 'sent' as const, occurred_at: new Date(), detail: '', event_key: 'csv', pricing }
  await service.database.transaction((tx) => applyReportedWhatsapp(tx, [{ ...about, ...status }], new Date()))
  const [header = '', ...lines] = (await viewer.get(`${path}.csv`)).html.trim().split('\r\n')
  const columns = header.replace('\uFEFF', '').split(',')
  t.equal(lines.length, 4)
  const line = lines.find((each) => each.startsWith(id))?.split(',') ?? []
  const cell = (name: string) => line[columns.indexOf(name)]
  t.same(['Status', 'Category', 'Type', 'Billable'].map(cell), ['sent', 'utility', 'regular', 'true'])
  shows(t, await viewer.get(`${path}/${id}`), /utility, regular, billable/)
  t.equal(
    (await viewer.get(`${path}.csv?status=sent&recipient=%2B15555550103`)).html.trim().split('\r\n').length,
    2,
  )
})

t.test('an editor opts a number out of marketing, then in', async (t) => {
  const page = `/teams/${team.id}/whatsapp-opt-outs`
  t.notMatch((await editor.get(page)).html, 'End an opt-out', 'no one has opted out')
  t.equal((await editor.post(page, { to: '+1 555 555 0109' })).location, page)
  shows(t, await viewer.get(page), new RegExp(`\\+15555550109 ${editor.email}`))
  const shown = (await editor.get(page)).html
  t.match(shown, 'End an opt-out')
  t.match(shown, new RegExp(`/teams/${team.id}/whatsapp" aria-current="page"`))
  t.equal((await editor.post(page, { to: 'nobody' })).status, 400)
  t.equal((await editor.post(`${page}/opt-in`, { to: '+15555550109' })).location, page)
  shows(t, await viewer.get(page), /No one has opted out/)
})

t.test("an editor ends an erased number's opt-out", async (t) => {
  const page = `/teams/${team.id}/whatsapp-opt-outs`
  await editor.post(page, { to: '+15555550110' })
  shows(t, await editor.get(page), /\+15555550110 was opted out/)
  const cli = adminCli({ DATABASE_URL: service.url })
  t.match(await cli.json(['contact', 'erase', team.id, '+15555550110']), { whatsapp_opt_outs: 1 })
  const seen = await editor.get(page)
  shows(t, seen, /End an opt-out .*All opted-out numbers have been erased/)
  t.notMatch(seen.html, '5555550110')
  t.equal((await editor.press(page, `${page}/opt-in`, { to: '+15555550110' })).location, page)
  const after = await editor.get(page)
  shows(t, after, 'No one has opted out.')
  t.notMatch(after.html, 'End an opt-out')
})

t.test('an alert explains messages waiting for the default number', async (t) => {
  const own = await makeTeam(service, { domain: 'waits.test' })
  const operator = await signedIn(service, { operator: true })
  const home = `/teams/${own.id}`
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const TITLE = 'WhatsApp messages wait, because no worker sends from the default number'
  const none = async (page: string) => t.notMatch(textOf((await operator.get(page)).html), 'default number')
  await none(`${home}/whatsapp`)
  const life = {
    kind: 'worker',
    host: 'worker',
    pid: 1,
    senders: {},
    completed: {},
    gauges: idleGauges(),
  } as const
  const live = async (id: string, queues: readonly string[]) =>
    storeSignOfLife(service.database, { ...life, id, queues, started_at: new Date() }, [])
  const [others, all] = [uuidv7(), uuidv7()]
  await live(others, ['deliver-email', 'deliver-whatsapp-number'])
  shows(t, await reader.get(`${home}/whatsapp`), `New ${TITLE}`)
  await none(home)
  const demo = await makeTemplate(service, own.id, DEMO_TEMPLATE)
  await sendWhatsapp(service, own, demo.id, { to: ['+15555550101'], parameters })
  await none(home)
  await service.database.query(sql.unsafe`
    update whatsapp_messages set created_at = created_at - interval '6 minutes' where team_id = ${own.id}`)
  for (const page of [home, `${home}/whatsapp`]) {
    const seen = textOf((await reader.get(page)).html)
    t.match(seen, `${TITLE}. An operator can set up the number.`, page)
    t.notMatch(seen, /New WhatsApp messages|longer than 5 minutes|WHATSAPP_/, page)
    shows(t, await operator.get(page), `${TITLE}. Set WHATSAPP_ACCESS_TOKEN and WHATSAPP_PHONE_NUMBER_ID`)
  }
  t.match((await operator.get(`${home}/whatsapp`)).html, 'href="/dashboard/operator/numbers">Show numbers')
  await service.database.query(sql.unsafe`
    insert into whatsapp_numbers (name, phone_number_id, account_id, access_token, created_at)
    values ('waits', '990', '991', ''::bytea, now())`)
  await service.database.query(sql.unsafe`update teams set whatsapp_number = 'waits' where id = ${own.id}`)
  shows(t, await reader.get(home), TITLE)
  await service.database.query(sql.unsafe`delete from whatsapp_messages where team_id = ${own.id}`)
  await none(`${home}/whatsapp`)
  await service.database.query(sql.unsafe`update teams set whatsapp_number = null where id = ${own.id}`)
  await live(all, ['deliver-whatsapp'])
  await none(`${home}/whatsapp`)
  await service.database.query(sql.unsafe`delete from processes`)
})
