// GET and POST /hooks/whatsapp: the handshake works, and only verified posts are stored.

import { deriveVerifyToken } from '../../../db/messages/whatsapp/number-hook.ts'
import { hubSignature } from '../../sandbox/whatsapp.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { startService, WHATSAPP_APP_SECRET, WHATSAPP_VERIFY_TOKEN } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeNumber } from '../../support/whatsapp-numbers.ts'

const PATH = '/hooks/whatsapp'
// Spacing, escapes and order that another serialization would change.
const RAW = Buffer.from(
  `{ "object":"whatsapp_business_account",\n "entry" : [ {"changes":[{"field":"messages","value":{
    "statuses":[{"id":"wamid.1", "status":"read"}]}}]} ], "x":"\\u00e9\\/é" }`,
)

const service = await startService(t)
const { call } = service

const post = async (raw: Uint8Array, headers: Record<string, string>) =>
  await call('POST', PATH, { raw, headers: { 'Content-Type': 'application/json', ...headers } })
const signed = (raw: Buffer, secret = WHATSAPP_APP_SECRET) => ({
  'X-Hub-Signature-256': hubSignature(secret, raw),
})

const shake = async (query: Record<string, string>) =>
  await call('GET', `${PATH}?${new URLSearchParams(query)}`)
const HANDSHAKE = {
  'hub.mode': 'subscribe',
  'hub.verify_token': WHATSAPP_VERIFY_TOKEN,
  'hub.challenge': '1158201444',
}

t.test('the handshake returns the challenge if the token matches', async (t) => {
  const { status, body, headers } = await shake(HANDSHAKE)
  t.equal(status, 200)
  t.equal(body, '1158201444')
  t.match(headers.get('content-type'), /^text\/plain/)
})

t.test('an invalid handshake is 403', async (t) => {
  const odd: Record<string, string>[] = [
    {},
    { ...HANDSHAKE, 'hub.verify_token': `${WHATSAPP_VERIFY_TOKEN}x` },
    { ...HANDSHAKE, 'hub.verify_token': '' },
    { ...HANDSHAKE, 'hub.mode': 'unsubscribe' },
    { ...HANDSHAKE, 'hub.challenge': '' },
    { ...HANDSHAKE, 'hub.challenge': '<script>alert(1)</script> \n' },
    { 'hub.mode': 'subscribe', 'hub.challenge': '1' },
  ]
  for (const query of odd) {
    const reply = await shake(query)
    t.equal(reply.status, 403, JSON.stringify(query))
    t.same(Object.keys(reply.body), ['error'])
  }
  const twice = `${PATH}?${new URLSearchParams(HANDSHAKE)}&hub.verify_token=x`
  t.equal((await call('GET', twice)).status, 403)
  service.deps.hooks.whatsapp_verify_token = null
  t.equal((await shake(HANDSHAKE)).status, 403, 'not configured')
  service.deps.hooks.whatsapp_verify_token = WHATSAPP_VERIFY_TOKEN
})

t.test('an invalid signature is 401 and stores nothing', async (t) => {
  const genuine = hubSignature(WHATSAPP_APP_SECRET, RAW)
  const forged: Record<string, string>[] = [
    {},
    ...[
      '',
      'sha256=',
      genuine.slice(0, -1),
      `${genuine}0`,
      genuine.replace('sha256', 'sha1'),
      genuine.slice(7),
    ].map((value) => ({ 'X-Hub-Signature-256': value })),
    { 'X-Hub-Signature-256': `${genuine}, ${genuine}` },
    { 'X-Hub-Signature-256': `sha256=${'é'.repeat(32)}` },
    { 'X-Hub-Signature': genuine },
    signed(RAW, 'another secret'),
    signed(RAW, ''),
    signed(Buffer.from(JSON.stringify(JSON.parse(RAW.toString())))),
  ]
  for (const headers of forged) {
    const { status, body } = await post(
      RAW,
      Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, encodeURI(v)])),
    )
    t.equal(status, 401, JSON.stringify(headers))
    t.match(body, { error: { code: 'unauthorized' } })
  }
  const changed = Buffer.from(RAW)
  changed[2] = (changed[2] ?? 0) ^ 1
  t.equal((await post(changed, signed(RAW))).status, 401, 'one bit of the body')
  t.equal((await post(Buffer.alloc(0), signed(RAW))).status, 401, 'no body at all')
  service.deps.hooks.whatsapp_app_secret = null
  t.equal((await post(RAW, signed(RAW))).status, 401, 'not configured')
  t.equal((await post(RAW, signed(RAW, 'null'))).status, 401, 'not configured')
  service.deps.hooks.whatsapp_app_secret = WHATSAPP_APP_SECRET
  t.same(await storedReports(service), [])
  t.same(await jobsIn(service, 'ingest-report'), [])
})

t.test('a post is reduced and stored once with its job', async (t) => {
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async () => (await post(RAW, signed(RAW))).status),
  )
  t.same(new Set(statuses), new Set([200]))
  const [report, ...others] = await storedReports(service)
  t.same(others, [])
  t.match(report, { provider: 'whatsapp', state: 'pending' })
  t.same(JSON.parse(report?.body.toString() ?? ''), {
    object: 'whatsapp_business_account',
    entry: [{ changes: [{ field: 'messages', value: { statuses: [{ id: 'wamid.1', status: 'read' }] } }] }],
  })
  t.same(await jobsIn(service, 'ingest-report'), [{ report_id: report?.id }])
})

t.test('a signed body that isn’t a JSON object is 400', async (t) => {
  const before = (await storedReports(service)).length
  for (const text of ['{"object":', '[]', '"x"', '']) {
    const body = Buffer.from(text)
    const reply = await post(body, signed(body))
    t.match(reply, { status: 400, body: { error: { code: 'bad_request' } } }, text)
  }
  t.equal((await storedReports(service)).length, before)
})

t.test('a body can have 3 MiB', async (t) => {
  const largest = Buffer.from(JSON.stringify({ x: 'x'.repeat(3 * 1024 * 1024 - 8) }))
  t.equal(largest.length, 3 * 1024 * 1024)
  t.equal((await post(largest, signed(largest))).status, 200)
  const large = Buffer.concat([largest, Buffer.from(' ')])
  t.equal((await post(large, signed(large))).status, 413)
  t.equal((await call('PUT', PATH)).status, 405)
})

t.test('a number with an app secret has its own hook', async (t) => {
  const number = { account_id: '900', token: 'a-token', app_secret: 'secret-of-acme' }
  await makeNumber(service, { ...number, name: 'acme', phone_number_id: '901' })
  await makeNumber(service, { ...number, name: 'bare', phone_number_id: '902', app_secret: '' })
  const query = (token: string) => new URLSearchParams({ ...HANDSHAKE, 'hub.verify_token': token }).toString()
  const token = deriveVerifyToken(service.deps.secrets, 'acme')
  t.match(await call('GET', `${PATH}/acme?${query(token)}`), { status: 200, body: '1158201444' })
  t.equal((await call('GET', `${PATH}/acme?${query(WHATSAPP_VERIFY_TOKEN)}`)).status, 403)
  const stored = async () =>
    (await storedReports(service)).filter((each) => each.provider === 'whatsapp-number')
  const change = (phone_number_id: string, id: string) => ({
    field: 'messages',
    value: { metadata: { phone_number_id }, statuses: [{ id, status: 'read' }] },
  })
  const template = { message_template_name: 'x', message_template_language: 'en', event: 'PAUSED' }
  const update = { field: 'message_template_status_update', value: template }
  const quality = (display_phone_number: string) => ({
    field: 'phone_number_quality_update',
    value: { display_phone_number, event: 'FLAGGED' },
  })
  const wish = { wa_id: '15555550101', category: 'marketing_messages', value: 'stop', timestamp: 1 }
  const preference = (phone_number_id: string) => ({
    field: 'user_preferences',
    value: { metadata: { phone_number_id }, user_preferences: [wish] },
  })
  const entry = [
    {
      id: '900',
      changes: [
        ...[change('901', 'wamid.own'), change('902', 'wamid.other'), update],
        ...[preference('901'), preference('902')],
      ],
    },
    { id: '800', changes: [update, { field: 'account_update', value: { event: 'DISABLED_UPDATE' } }] },
    { id: '900', changes: [quality('+1 555-555-0902')] },
  ]
  const raw = Buffer.from(JSON.stringify({ object: 'whatsapp_business_account', entry }))
  const send = (name: string, secret: string) =>
    call('POST', `${PATH}/${name}`, {
      raw,
      headers: { 'Content-Type': 'application/json', ...signed(raw, secret) },
    })
  for (const name of ['bare', 'nobodys', 'default', 'A%20b']) {
    t.match(await send(name, 'secret-of-acme'), { status: 404, body: { error: { code: 'not_found' } } }, name)
    t.equal((await call('GET', `${PATH}/${name}?${query(token)}`)).status, 404, name)
  }
  const named = Buffer.from(JSON.stringify({ hook: '901', entry: [{ id: '900', changes: [update] }] }))
  t.equal((await post(named, signed(named))).status, 200)
  const [shared] = (await storedReports(service)).filter(({ body }) => body.includes('PAUSED'))
  t.strictSame(JSON.parse(shared?.body.toString() ?? ''), { entry: [{ id: '900', changes: [update] }] })
  t.equal((await send('acme', WHATSAPP_APP_SECRET)).status, 401)
  t.equal((await call('POST', `${PATH}/acme`, { raw })).status, 401)
  t.strictSame(await stored(), [])
  service.deps.metrics.take()
  t.equal((await send('acme', 'secret-of-acme')).status, 200)
  const [report] = await stored()
  t.strictSame(JSON.parse(report?.body.toString() ?? ''), {
    object: 'whatsapp_business_account',
    hook: '901',
    entry: [{ id: '900', changes: [change('901', 'wamid.own'), update, preference('901')] }],
  })
  const counted = service.deps.metrics
    .take()
    .find(({ figure, labels }) => figure === 'heliograph_whatsapp_ignored_total' && labels.includes('hook'))
  t.strictSame(counted?.values, [5])
})
