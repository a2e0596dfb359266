/** The event log, with the recipient of each event and a search for one. */
import { sql } from 'slonik'
import { applyReportedWhatsapp } from '../../../db/messages/whatsapp/apply-events.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
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
    /Recent attempts .* 503 not retried email\.delivered .* 500 retried later email/,
  )
  shows(t, await stored(400, 422), /400 rejected by the server .* 422 retried later /)
})
