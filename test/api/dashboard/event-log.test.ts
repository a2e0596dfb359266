/** The event log, with the recipient of each event and a search for one. */
import { sql } from 'slonik'
import { DISABLED } from '../../../db/channels/events/webhooks.sql.ts'
import { applyReportedWhatsapp } from '../../../db/messages/whatsapp/apply-events.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { anEmail, makeTeam, sendEmail, sendEmails, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { happen } from '../../support/webhooks.ts'
import { makeTemplate, rowsOf, sendWhatsapp } from '../../support/whatsapp.ts'

const { service, team } = await world(t)
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const at = (path: string): string => `/teams/${team.id}/${path}`
const made = await owner.post(at('webhooks'), {
  ...{ url: 'https://example.com/hooks', name: 'Order system', types: '*' },
})
const webhook = made.location ?? ''

/** Sends an email to each of these addresses, and stores its delivery. @returns their IDs. */
async function delivered(...addresses: string[]): Promise<string[]> {
  const ids: string[] = []
  for (const to of addresses) {
    const body = anEmail({ to: [to] })
    const { id } = (await service.call('POST', '/v1/emails', { key: team.key, body })).body
    await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
    ids.push(id)
  }
  return ids
}

/** Returns the shown recipients in order, with their links. */
const recipientsIn = (html: string): string[] =>
  [...html.matchAll(/href="\/dashboard([^"]*)">[^<]*?([\w+.]+@[\w.]+|\+\d+)\s*</g)].map(
    ([, href = '', words = '']) => `${words} ${href.slice(at('').length)}`,
  )

const [first = '', second = ''] = await delivered('Ana <ana@example.org>', 'bo@example.org')

t.test('each event has its recipient, with a link to the email', async (t) => {
  const { html } = await viewer.get(at('webhooks/events'))
  t.strictSame(recipientsIn(html), [`bo@example.org emails/${second}`, `ana@example.org emails/${first}`])
  const own = await viewer.get(`${webhook}/messages`)
  t.strictSame(recipientsIn(own.html), recipientsIn(html))
})

t.test('URLs of webhooks and subjects of a contact wrap', async (t) => {
  for (const path of ['webhooks', 'contacts/ana@example.org'])
    t.match((await viewer.get(at(path))).html, /<td class="main wrap self">/, path)
})

t.test('finds the events of one recipient, whatever the spelling', async (t) => {
  await service.call('PATCH', '/v1/contacts/ana@example.org', {
    ...{ key: team.key, body: { properties: { city: 'Linz' } } },
  })
  for (const list of [at('webhooks/events'), `${webhook}/messages`]) {
    const { html } = await viewer.get(`${list}?recipient=ANA%40example.org`)
    t.match(recipientsIn(html), [`ana@example.org emails/${first}`])
    t.notMatch(html, 'bo@example.org')
    shows(t, await viewer.get(`${list}?recipient=ana%40example.org&status=delivered`), 'No event matches.')
    shows(t, await viewer.get(`${list}?recipient=cy%40example.org`), 'No event matches.')
  }
  const part = await viewer.get(at('webhooks/events?recipient=ana'))
  t.equal(part.status, 400)
  shows(t, part, 'must be a whole email address or phone number')
})

t.test('does not find events of another team', async (t) => {
  const other = await makeTeam(service, { domain: 'other.test' })
  const stranger = await signedIn(service, { team: other.id, role: 'owner' })
  const found = await stranger.get(`/teams/${other.id}/webhooks/events?recipient=ana%40example.org`)
  shows(t, found, 'No event matches.')
})

t.test('one event links to its webhook by name and to its email', async (t) => {
  const { html } = await viewer.get(at('webhooks/events'))
  const [, path = ''] = /href="\/dashboard([^"]*\/events\/[0-9a-f-]{36})"/.exec(html) ?? []
  const page = await viewer.get(path)
  t.match(page.html, `href="/dashboard${webhook}">← Order system</a>`)
  t.match(page.html, `href="/dashboard${at(`emails/${second}`)}">`)
  shows(t, page, /Recipient .*bo@example\.org/)
})

/** Returns the event log with this filter. */
const logOf = (recipient: string) =>
  viewer.get(at(`webhooks/events?recipient=${encodeURIComponent(recipient)}`))

t.test('finds the events of a phone number', async (t) => {
  const { id: template_id } = await makeTemplate(service, team.id)
  await sendWhatsapp(service, team, template_id, { to: ['+15555550101', '+15555550102'] })
  const rows = await rowsOf(service, team.id)
  const idOf = (number: string): string => rows.find(({ recipient }) => recipient === number)?.id ?? ''
  const reported = { status: 'delivered', provider_message_id: null, number: null, detail: '' } as const
  const events = rows.map(({ team_id, id }) => ({
    ...{ ...reported, ref: { team_id, id }, event_key: id, occurred_at: new Date() },
  }))
  await service.database.transaction((tx) => applyReportedWhatsapp(tx, events, new Date()))
  const { html } = await logOf('+1 555 555 0101')
  t.strictSame(recipientsIn(html), [`+15555550101 whatsapp/${idOf('+15555550101')}`])
  shows(t, { html }, 'whatsapp.delivered +15555550101')
  shows(t, await logOf('+15555550109'), 'No event matches.')
})

t.test('shows the number of an opt-out', async (t) => {
  await owner.post(at('whatsapp-opt-outs'), { to: '+15555550104' })
  const found = await viewer.get(at('webhooks/events?type=whatsapp.opted_out'))
  shows(t, found, 'whatsapp.opted_out +15555550104')
  const [, path = ''] = /href="\/dashboard([^"]*\/events\/[0-9a-f-]{36})"/.exec(found.html) ?? []
  shows(t, await viewer.get(path), /Recipient .*\+15555550104/)
})

t.test('finds the events of a contact', async (t) => {
  await owner.post(at('contacts'), { email: 'kim@example.org' })
  await owner.post(at('contacts/kim%40example.org/unsubscribe'))
  shows(t, await logOf('kim@example.org'), 'contact.unsubscribed kim@example.org')
})

t.test('tells that only events about the newest messages are found', async (t) => {
  const note = 'Finds events about the recipient’s newest 500 messages.'
  await sendEmails(service, team, Array(499).fill({ to: ['busy@example.org'] }))
  t.notMatch((await logOf('busy@example.org')).html, note)
  await sendEmail(service, team, { to: ['busy@example.org'] })
  shows(t, await logOf('busy@example.org'), note)
})

t.test('only the last attempt of a failed event has the reason for the end', async (t) => {
  const { database } = service
  const made = await owner.post(at('webhooks'), {
    url: 'https://example.com/fails',
    name: 'Fails',
    types: '*',
  })
  const path = made.location ?? ''
  await delivered('end@example.org')
  const endpoint_id = path.split('/').at(-1) ?? ''
  const stored = async (...codes: number[]) => {
    await database.query(sql.unsafe`
      with message as (
        update webhook_messages set status = 'failed' where endpoint_id = ${endpoint_id} returning *),
      old as (delete from webhook_events where endpoint_id = ${endpoint_id})
      insert into webhook_events (
        team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail, counts, kind)
      select team_id, endpoint_id, uuid_send(gen_random_uuid()), id, now() - make_interval(mins => n::int), code, 50,
        '', true, 'attempt'
      from message, unnest(${sql.array(codes, 'int4')}) with ordinality codes (code, n)`)
    return viewer.get(path)
  }
  shows(
    t,
    await stored(503, 500),
    /Recent attempts .* 503 no attempts left email\.delivered .* 500 retried later email/,
  )
  shows(t, await stored(400, 422), /400 rejected by the server .* 422 retried later /)
  // The same reason as in the lists of events.
  await stored(503)
  await database.query(sql.unsafe`
    insert into webhook_events (team_id, endpoint_id, event_key, message_id, occurred_at, detail, counts, kind)
    select team_id, endpoint_id, uuid_send(gen_random_uuid()), id, now(), ${DISABLED}, false, 'gave_up'
    from webhook_messages where endpoint_id = ${endpoint_id}`)
  for (const page of [path, `${path}/messages`]) shows(t, await viewer.get(page), /503 webhook disabled /)
})

t.test('the attempts of a webhook have its success rate and response times', async (t) => {
  const { database } = service
  const made = await owner.post(at('webhooks'), { url: 'https://example.com/rate', name: 'Rate', types: '*' })
  const path = made.location ?? ''
  await delivered('rate@example.org')
  const endpoint_id = path.split('/').at(-1) ?? ''
  t.notMatch((await viewer.get(path)).html, 'of the last', 'nothing was attempted')
  await database.query(sql.unsafe`
    with message as (select * from webhook_messages where endpoint_id = ${endpoint_id})
    insert into webhook_events (
      team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail, counts, kind)
    select team_id, endpoint_id, uuid_send(gen_random_uuid()), id, now() - make_interval(mins => n), code, 1184, '',
      true, 'attempt'
    from message, (values (1, 200), (2, 503), (3, 204), (4, 200)) tries (n, code)`)
  await database.query(sql.unsafe`
    update webhook_endpoints set last_success_at = '2026-11-30T10:20:30Z' where id = ${endpoint_id}`)
  shows(
    t,
    await viewer.get(path),
    /Recent attempts 75\.0 % of the last 4 attempts succeeded\. The last success was on 30 Nov 2026, 10:20:30 UTC \. .* 200 in 1,184 ms .* 503 retried later /,
  )
})

t.test('the alert of a failing webhook has advice for owners', async (t) => {
  const { database } = service
  const made = await owner.post(at('webhooks'), { url: 'https://example.com/down', name: 'Down', types: '*' })
  const path = made.location ?? ''
  const endpoint_id = path.split('/').at(-1) ?? ''
  await database.query(sql.unsafe`
    update webhook_endpoints set failing_since = now() - interval '1 hour' where id = ${endpoint_id}`)
  const advice = 'Once it works again, send the failed events again.'
  shows(t, await owner.get(path), new RegExp(`All attempts have failed since .* ${advice} If no attempt`))
  const seen = await viewer.get(path)
  shows(t, seen, /All attempts have failed since \S+ \S+ \S+, \S+ UTC \. If no attempt succeeds by /)
  t.notMatch(seen.html, advice)
  const list = `${path}/messages`
  shows(t, await owner.get(list), /Events sent to Down .* Send events again .* Delivered events are kept/)
  t.match((await owner.get(list)).html, `action="/dashboard${path}/replay"`)
  t.notMatch((await viewer.get(list)).html, '/replay"')
  await owner.press(path, `${path}/disable`)
  t.notMatch((await owner.get(list)).html, '/replay"', 'nothing can be sent to it')
})

t.test('in the lists of events, only the status has a color', async (t) => {
  const { database } = service
  await database.query(sql.unsafe`
    with failed as (update webhook_messages set status = 'failed' where team_id = ${team.id} returning *)
    insert into webhook_events (
      team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail, counts, kind)
    select team_id, endpoint_id, uuid_send(gen_random_uuid()), id, now(), 503, 50, '', true, 'attempt' from failed`)
  const { html } = await viewer.get(at('webhooks/events?status=failed'))
  t.match(html, /<span class="tag bad">failed</)
  t.match(textOf(html), / failed 503 no attempts left /)
  t.notMatch(html, /class="tag[^"]*">503/)
})
