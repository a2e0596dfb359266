/**
 * The forms of words that clients rely on (api/README.md, /docs), one block for each: keys, codes with their
 * statuses, headers, empty values. What the words are about is tested with each endpoint.
 */
import { sql } from 'slonik'
import { stopClock } from '../support/clock.ts'
import { teamWithRoom } from '../support/contacts.ts'
import { anEmail, makeKey, makeTeam, type Reply, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, aTemplate, type Json, makeTemplate } from '../support/whatsapp.ts'
import { startWorker } from '../support/worker.ts'

const UNKNOWN = '0190a000-0000-7000-8000-000000000000'
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

const { service, team } = await world(t)
// Bulk upserts are a worker's; it never reaches a relay.
await startWorker(t, service)
const template = await makeTemplate(service, team.id)
const EMAILS = '/v1/emails'
const WHATSAPP = '/v1/whatsapp/messages'
const CONTACTS = '/v1/contacts'

const post = (path: string, body: unknown, key = team.key): Promise<Reply> =>
  service.call('POST', path, { key, body })
const emails = (items: unknown[], key = team.key) => post(`${EMAILS}/batch`, { emails: items }, key)
const messages = (items: unknown[]) => post(`${WHATSAPP}/batch`, { messages: items })
const contacts = (items: unknown[]) => post(`${CONTACTS}/bulk`, { contacts: items })
const create = async (email: string): Promise<Json> => (await post(CONTACTS, { email })).body
const suppress = (email: string) =>
  service.database.query(sql.unsafe`
    update contacts set status = 'bounced', suppression = 'bounced' where identity = ${email}`)

t.test('an empty properties map is returned as {}, never null', async (t) => {
  const made = await create('empty@example.org')
  const path = `${CONTACTS}/empty@example.org`
  const patched = await service.call('PATCH', path, { key: team.key, body: { properties: {} } })
  const listed = await service.call('GET', `${CONTACTS}?email=empty@`, { key: team.key })
  for (const contact of [made, patched.body, listed.body.data[0]]) t.strictSame(contact.properties, {})
})

t.test('timestamps are RFC 3339, of contacts and of emails', async (t) => {
  const { created_at, updated_at } = await create('times@example.org')
  const { body } = await post(EMAILS, anEmail())
  for (const time of [created_at, updated_at, body.created_at]) t.match(time, RFC_3339)
})

t.test('an email’s unset fields are null or an empty string, each as its row says', async (t) => {
  const { body } = await post(EMAILS, anEmail())
  for (const [field, unset] of Object.entries({
    ...{ template_id: null, idempotency_key: null, requeued_at: null, provider_message_id: null },
    ...{ broadcast_id: null, contact_id: null, unsubscribe_token: null, headers: null },
    ...{ body_text: '', reply_to: '', tags: [] },
  })) {
    t.strictSame(body[field], unset, field)
  }
})

t.test('a custom header is returned exactly as accepted; reply_to is the bare address', async (t) => {
  const headers = { 'x-Lower': ' a  b ', 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }
  const { body } = await post(EMAILS, anEmail({ headers, reply_to: 'Help <help@example.com>' }))
  t.strictSame([body.headers, body.reply_to], [headers, 'help@example.com'])
})

t.test('data of a WhatsApp send is an array of rows of id, to and status; a replay’s too', async (t) => {
  const item = aMessage(template.id, { idempotency_key: 'rows' })
  const [first, again] = [await post(WHATSAPP, item), await post(WHATSAPP, item)]
  t.strictSame([first.status, again.status], [201, 200])
  t.strictSame(again.body, first.body)
  t.strictSame(Object.keys(first.body), ['data'])
  for (const row of first.body.data) t.strictSame(Object.keys(row), ['id', 'to', 'status'])
})

t.test('a batch result item has its index and an id or an error, in order, with status 200', async (t) => {
  const replies = [
    await emails([anEmail({ from: 'nobody' }), anEmail()]),
    await messages([aMessage(UNKNOWN), aMessage(template.id)]),
    await contacts([{ email: 'nobody' }, { email: 'item@example.org' }]),
  ]
  for (const { status, body } of replies) {
    t.strictSame([status, Object.keys(body)], [200, ['data']])
    const [refused, accepted] = body.data
    t.strictSame(Object.keys(refused), ['index', 'error'])
    t.strictSame(Object.keys(refused.error).toSorted(), ['code', 'message'])
    t.strictSame(Object.keys(accepted), ['index', 'id'])
    t.strictSame([refused.index, accepted.index], [0, 1])
  }
  t.strictSame(
    replies.map(({ body }) => body.data[0].error.code),
    ['invalid_from', 'not_found', 'bad_request'],
    'an unknown WhatsApp template is not_found, an invalid contact bad_request',
  )
})

t.test('a rejected recipient of a WhatsApp batch item is to[<n>]: <code>: <detail>', async (t) => {
  const to = ['+15555550101', '+1 555 555 0101', 'nobody']
  const { body } = await messages([aMessage(template.id), aMessage(template.id, { to })])
  t.equal(body.data[1].error.code, 'invalid_phone')
  t.match(body.data[1].error.message, /^to\[2\]: invalid_phone: \S/)
})

t.test('next_cursor is a string, an integer offset, and only there while more pages exist', async (t) => {
  for (const name of ['one', 'two', 'three']) await create(`${name}@pages.example.org`)
  const page = async (query: string) =>
    (await service.call('GET', `${CONTACTS}?email=@pages&limit=2${query}`, { key: team.key })).body
  const first = await page('')
  t.strictSame([first.data.length, first.next_cursor], [2, '2'])
  const last = await page(`&cursor=${first.next_cursor}`)
  t.strictSame([last.data.length, Object.keys(last)], [1, ['data']])
  t.strictSame(await page('&cursor=9'), { data: [] }, 'past the end')
})

t.test('a 204 has an empty body', async (t) => {
  await create('gone@example.org')
  const unsubscribed = await post('/v1/marketing/unsubscribe', { email: 'gone@example.org' })
  const deleted = await service.call('DELETE', `${CONTACTS}/gone@example.org`, { key: team.key })
  for (const { status, body } of [unsubscribed, deleted]) t.strictSame([status, body], [204, ''])
})

t.test('every failure is one key, error, with a code and a message; each code has its status', async (t) => {
  const { key: scoped } = { key: await makeKey(service, team.id, { scopes: ['contacts:read'] }) }
  const bound = await makeKey(service, team.id, { domain: 'example.net' })
  const full = await makeTeam(service, { email_limit: 0 })
  const noRoom = await teamWithRoom(service, 0)
  const paused = await makeTemplate(service, team.id, aTemplate({}, { status: 'PAUSED' }))
  const video = await makeTemplate(service, team.id, aTemplate({ header: { format: 'VIDEO' } }))
  await create('known@example.org')
  await create('bounced@example.org')
  await suppress('bounced@example.org')
  const failures: [string, Reply][] = [
    [
      '400 bad_request',
      await service.call('POST', EMAILS, {
        key: team.key,
        headers: { 'Content-Type': 'application/json' },
        raw: '{',
      }),
    ],
    ['400 bad_request', await post(EMAILS, {})],
    ['400 bad_request', await post('/v1/marketing/unsubscribe', { email: 'nobody' })],
    ['400 batch_too_large', await emails(Array(101).fill(null))],
    ['400 batch_too_large', await messages(Array(101).fill(null))],
    ['400 batch_too_large', await contacts(Array(1_001).fill(null))],
    ['400 invalid_from', await post(EMAILS, anEmail({ from: 'nobody' }))],
    ['400 invalid_headers', await post(EMAILS, anEmail({ headers: { 'X-SES-Any': 'x' } }))],
    ['400 invalid_reply_to', await post(EMAILS, anEmail({ reply_to: 'nobody' }))],
    ['400 invalid_phone', await post(WHATSAPP, aMessage(template.id, { to: ['nobody'] }))],
    ['400 invalid_params', await post(WHATSAPP, aMessage(template.id, { parameters: {} }))],
    ['400 template_disabled', await post(WHATSAPP, aMessage(paused.id))],
    ['400 template_unsupported', await post(WHATSAPP, aMessage(video.id))],
    ['402 quota_exceeded', await post(EMAILS, anEmail(), full.key)],
    ['402 quota_exceeded', await emails([anEmail()], full.key)],
    ['402 quota_exceeded', await post(CONTACTS, { email: 'more@example.org' }, noRoom.key)],
    ['403 insufficient_scope', await post(EMAILS, anEmail(), scoped)],
    ['403 domain_not_allowed', await post(EMAILS, anEmail(), bound)],
    ['404 contact_not_found', await service.call('GET', `${CONTACTS}/no@example.org`, { key: team.key })],
    ['404 contact_not_found', await post(`${CONTACTS}/no@example.org/unsubscribe`, undefined)],
    ['404 contact_not_found', await post('/v1/marketing/unsubscribe', { email: 'no@example.org' })],
    ['404 not_found', await post(WHATSAPP, aMessage(UNKNOWN))],
    ['409 contact_exists', await post(CONTACTS, { email: 'known@example.org' })],
    ['409 contact_suppressed', await post(`${CONTACTS}/bounced@example.org/resubscribe`, undefined)],
    ['422 from_domain_not_verified', await post(EMAILS, anEmail({ from: 'a@example.net' }))],
  ]
  for (const [wanted, { status, body, headers }] of failures) {
    t.equal(`${status} ${body.error?.code}`, wanted)
    t.strictSame(Object.keys(body), ['error'], wanted)
    t.strictSame(Object.keys(body.error).toSorted(), ['code', 'message'], wanted)
    t.match(body.error.message, /\S/, wanted)
    t.equal(headers.get('retry-after'), null, `${wanted}: only rate limiting has Retry-After`)
  }
})

t.test('GET /v1/plans omits fields that are not set, but tiers is null for free and custom', async (t) => {
  const { body } = await service.call('GET', '/v1/plans')
  t.strictSame(Object.keys(body).toSorted(), [
    ...['contacts_tiers', 'free_allowances', 'overage_per_1000_cents', 'plans'],
  ])
  t.strictSame(body.free_allowances, { emails: 5_000, contacts: 1_000 })
  for (const plan of body.plans) {
    t.equal(Array.isArray(plan.tiers), plan.kind === 'paid', plan.key)
    t.equal('email_limit' in plan && 'contact_limit' in plan, plan.kind === 'free', plan.key)
    for (const [field, value] of Object.entries(plan)) if (field !== 'tiers') t.not(value, null, field)
  }
})

// Last, since the clock stands still from here on.
t.test('Retry-After is in seconds with a 429, and not with a rate_limited item of a batch', async (t) => {
  const slow = await makeTeam(service, { plan: 'free', rate: 1 })
  await stopClock(service.database, new Date('2027-01-15T12:00:00Z'))
  await emails(Array(5).fill(anEmail()), slow.key)
  const single = await post(EMAILS, anEmail(), slow.key)
  t.equal(`${single.status} ${single.body.error.code}`, '429 rate_limited')
  t.match(single.headers.get('retry-after'), /^[1-9]\d*$/)
  const batch = await emails([anEmail()], slow.key)
  t.equal(`${batch.status} ${batch.body.data[0].error.code}`, '200 rate_limited')
  t.equal(batch.headers.get('retry-after'), null)
})
