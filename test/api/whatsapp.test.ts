// POST /v1/whatsapp/messages over a real listener and database. DECISIONS: Numbers, Parameters, Order of errors.

import fc from 'fast-check'
import { messageById } from '../../db/messages/whatsapp/messages.sql.ts'
import { makeKey, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import {
  aMessage,
  aTemplate,
  deliveryJobs,
  isRefused,
  type Json,
  makeTemplate,
  numbers,
  rowsOf,
  setLimit,
  setStatus,
  whatsappClient,
} from '../support/whatsapp.ts'

const PATH = '/v1/whatsapp/messages'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const UNKNOWN = '0190a000-0000-7000-8000-000000000000'

// fast-check needs seconds to prepare these. A server in this process would close its connections in that
// time.
const binary = fc.string({ unit: 'binary', maxLength: 40 })
const grapheme = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
fc.sample(fc.tuple(binary, grapheme), 1)

const service = await startService(t)
const { call, database } = service

const { send, usedBy, sender } = whatsappClient(service)

t.test('201 returns a queued row per recipient', async (t) => {
  const { team, key, template } = await sender()
  const reply = await send(key, aMessage(template.id, { to: ['+15555550101', '+33612345678'] }))
  t.equal(reply.status, 201)
  t.same(Object.keys(reply.body), ['data'])
  t.equal(reply.body.data.length, 2)
  for (const row of reply.body.data) {
    t.same(Object.keys(row), ['id', 'to', 'status'])
    t.match(row.id, UUID)
    t.equal(row.status, 'queued')
  }
  t.equal(reply.body.data.map((row: Json) => row.to).join(), '+15555550101,+33612345678')
  const rows = await rowsOf(service, team.id)
  const stored = rows.map((row) => row.id)
  const returned = reply.body.data.map((row: Json) => row.id)
  t.same(stored, returned)
  const countries = rows.map((row) => row.country)
  t.same(countries, [null, 'FR'], 'the country is stored when libphonenumber knows it')
})

t.test('each row has a job with its ID', async (t) => {
  const { team, key, template } = await sender()
  const { body } = await send(key, aMessage(template.id, { to: numbers(3) }))
  const jobs = body.data.map(({ id }: Json) => ({ id, team_id: team.id, message_id: id }))
  t.same(await deliveryJobs(service, team.id), jobs)
})

t.test('separators are removed, and duplicates stored once', async (t) => {
  const { team, key, template } = await sender()
  const to = ['+1 (555) 555-01.01', '+15555550101', '+1/555/5550102', ' +1 555 555 0101 ']
  const { status, body } = await send(key, aMessage(template.id, { to }))
  t.equal(status, 201)
  t.equal(body.data.map((row: Json) => row.to).join(), '+15555550101,+15555550102')
  t.equal(await usedBy(team.id), 2, 'a repeat costs nothing')
})

t.test('to has 1 to 50 numbers, including duplicates', async (t) => {
  const { key, template } = await sender()
  isRefused(
    t,
    await send(key, aMessage(template.id, { to: [] })),
    400,
    'bad_request',
    /^to must have at least 1/,
  )
  t.equal((await send(key, aMessage(template.id, { to: numbers(50) }))).status, 201)
  isRefused(
    t,
    await send(key, aMessage(template.id, { to: numbers(51) })),
    400,
    'bad_request',
    /^to must .* 50/,
  )
  const repeated = Array<string>(51).fill('+15555550101')
  isRefused(t, await send(key, aMessage(template.id, { to: repeated })), 400, 'bad_request')
  t.equal((await send(key, aMessage(template.id, { to: repeated.slice(1) }))).body.data.length, 1)
})

t.test('a number that isn’t E.164 is invalid_phone and named', async (t) => {
  const { team, key, template } = await sender()
  for (const bad of [
    '',
    '15555550101',
    '+05555550101',
    '+1555555',
    '+1234567890123456',
    '+1555x5550101',
    '＋15555550101',
  ]) {
    const reply = await send(key, aMessage(template.id, { to: ['+15555550101', bad] }))
    isRefused(t, reply, 400, 'invalid_phone', /^to\[1\] must be a phone number in E\.164/)
  }
  t.equal((await rowsOf(service, team.id)).length, 0, 'an item is accepted whole or not at all')
})

t.test('invalid fields and bodies are bad_request', async (t) => {
  const { key, template } = await sender()
  for (const idempotency_key of ['', 'x'.repeat(256), 'é']) {
    const reply = await send(key, aMessage(template.id, { idempotency_key }))
    isRefused(t, reply, 400, 'bad_request', /^idempotency_key must/)
  }
  for (const raw of ['', '{', '[]', 'null', '5']) {
    const reply = await call('POST', PATH, { key, raw, headers: { 'Content-Type': 'application/json' } })
    isRefused(t, reply, 400, 'bad_request')
  }
})

t.test('parameters must be exactly the template’s variables', async (t) => {
  const { team, key } = await sender()
  const template = await makeTemplate(
    service,
    team.id,
    aTemplate({
      header: { format: 'TEXT', text: 'Order {{1}}' },
      body: 2,
      buttons: [
        { type: 'QUICK_REPLY', text: 'Stop' },
        { type: 'URL', text: 'Open', url: 'https://example.com/{{1}}' },
      ],
    }),
  )
  t.same(template.slots, ['header:1', 'body:1', 'body:2', 'url:1'])
  const full: Json = { 'header:1': 'A-17', 'body:1': 'Ana', 'body:2': 'tomorrow', 'url:1': 'orders/17' }
  t.equal((await send(key, aMessage(template.id, { parameters: full }))).status, 201)
  for (const slot of template.slots) {
    const { [slot]: _, ...rest } = full
    const reply = await send(key, aMessage(template.id, { parameters: rest }))
    isRefused(t, reply, 400, 'invalid_params', new RegExp(`Missing: ${slot}\\.$`))
  }
  for (const odd of ['body:3', 'footer:1', 'body', 'url:2', 'Body:1', '__proto__', 'constructor', '']) {
    // In an object literal with a computed name, __proto__ is an ordinary key.
    const parameters = { ...full, [odd]: 'x' }
    isRefused(t, await send(key, aMessage(template.id, { parameters })), 400, 'invalid_params', /unknown key/)
  }
  isRefused(t, await send(key, aMessage(template.id, { parameters: undefined })), 400, 'invalid_params')
  const many = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`body:${index + 1}`, 'x']))
  isRefused(t, await send(key, aMessage(template.id, { parameters: many })), 400, 'invalid_params')
  isRefused(t, await send(key, aMessage(template.id, { parameters: null })), 400, 'invalid_params')
})

t.test('a template without variables needs no parameters', async (t) => {
  const { team, key } = await sender()
  const { id, slots } = await makeTemplate(service, team.id, aTemplate({ body: 0, footer: 'Bye' }))
  t.same(slots, [])
  for (const parameters of [undefined, null, {}])
    t.equal((await send(key, aMessage(id, { parameters }))).status, 201)
  isRefused(t, await send(key, aMessage(id)), 400, 'invalid_params', /unknown key "body:1"/)
})

t.test('a value that the provider would reject is invalid_params', async (t) => {
  const { key, template } = await sender()
  const bad = ['', 'x'.repeat(1018), 'a\nb', 'a\rb', 'a\tb', `a${' '.repeat(5)}b`, 'a\u2028b']
  for (const value of bad) {
    const reply = await send(key, aMessage(template.id, { parameters: { 'body:1': value } }))
    isRefused(t, reply, 400, 'invalid_params', /^parameters\["body:1"\] must/)
  }
  for (const value of [
    'x'.repeat(1017),
    '😀'.repeat(1017),
    `a${' '.repeat(4)}b`,
    '{{1}}',
    '<b>',
    "'; drop table",
  ]) {
    t.equal((await send(key, aMessage(template.id, { parameters: { 'body:1': value } }))).status, 201)
  }
})

t.test('template_id ignores case', async (t) => {
  const { key, template } = await sender()
  t.equal((await send(key, aMessage(template.id.toUpperCase()))).status, 201)
})

t.test('a template that isn’t approved is template_disabled', async (t) => {
  const { team, key, template } = await sender()
  for (const status of ['pending', 'rejected', 'PAUSED', 'disabled']) {
    await setStatus(service, team.id, template.id, status)
    isRefused(t, await send(key, aMessage(template.id)), 400, 'template_disabled', /approved/)
  }
  await setStatus(service, team.id, template.id, 'APPROVED')
  t.equal((await send(key, aMessage(template.id))).status, 201)
})

t.test('flows, carousels, catalogs and offers are template_unsupported', async (t) => {
  const { team, key } = await sender()
  const body = { type: 'BODY', text: 'Hello' }
  const unsupported: Record<string, Json> = {
    'GIF header': aTemplate({ header: { format: 'GIF' } }),
    'product header': aTemplate({ header: { format: 'PRODUCT' } }),
    flow: aTemplate({ buttons: [{ type: 'FLOW', text: 'Start' }] }),
    catalogue: aTemplate({ buttons: [{ type: 'CATALOG', text: 'See' }] }),
    carousel: aTemplate({}, { components: [body, { type: 'CAROUSEL', cards: [] }] }),
    offer: aTemplate({}, { components: [{ type: 'LIMITED_TIME_OFFER' }, body] }),
    'mixed slots': aTemplate({}, { components: [{ type: 'BODY', text: 'Hello {{name}} {{1}}' }] }),
    gap: aTemplate({}, { components: [{ type: 'BODY', text: 'Hello {{1}} {{3}}' }] }),
    'two bodies': aTemplate({}, { components: [body, body] }),
  }
  for (const [name, definition] of Object.entries(unsupported)) {
    const { id } = await makeTemplate(service, team.id, definition)
    isRefused(t, await send(key, aMessage(id)), 400, 'template_unsupported')
    t.pass(name)
  }
})

t.test('errors have one order', async (t) => {
  const { team, key } = await sender()
  const { id } = await makeTemplate(service, team.id, aTemplate({ header: { format: 'GIF' } }))
  const wrong = { to: ['x'], parameters: {}, idempotency_key: 'k' }
  isRefused(t, await send(key, aMessage(UNKNOWN, { ...wrong, to: ['x', 5] })), 400, 'bad_request')
  isRefused(t, await send(key, aMessage(UNKNOWN, wrong)), 400, 'invalid_phone')
  isRefused(t, await send(key, aMessage(UNKNOWN, { parameters: {} })), 404, 'not_found')
  await setStatus(service, team.id, id, 'paused')
  isRefused(t, await send(key, aMessage(id, { parameters: {} })), 400, 'template_disabled')
  await setStatus(service, team.id, id, 'approved')
  isRefused(t, await send(key, aMessage(id, { parameters: {} })), 400, 'template_unsupported')
  const good = await makeTemplate(service, team.id)
  await setLimit(service, team.id, 0)
  isRefused(t, await send(key, aMessage(good.id, { parameters: {} })), 400, 'invalid_params')
  isRefused(t, await send(key, aMessage(good.id)), 402, 'quota_exceeded')
})

t.test('a key with a domain can send WhatsApp messages', async (t) => {
  const { team, template } = await sender()
  const bound = await makeKey(service, team.id, { domain: 'example.com' })
  t.equal((await send(bound, aMessage(template.id))).status, 201)
})

t.test('hostile strings are rejected or stored unchanged', async (t) => {
  const { team, key, template } = await sender()
  for (const bad of ['\0', 'a\0b', '\ud800', 'a\udfffb']) {
    for (const changes of [
      { to: [bad] },
      { parameters: { 'body:1': bad } },
      { parameters: { [bad]: 'x' } },
      { idempotency_key: bad },
    ]) {
      isRefused(t, await send(key, aMessage(template.id, changes)), 400, 'bad_request')
    }
  }
  await fc.assert(
    fc.asyncProperty(binary, binary, async (value, name) => {
      const parameters = { 'body:1': value, [name]: value }
      const reply = await send(key, aMessage(template.id, { parameters, to: ['+15555550101', value] }))
      return t.equal(reply.status, 400, JSON.stringify(reply.body))
    }),
    { numRuns: 40 },
  )
  await fc.assert(
    fc.asyncProperty(grapheme, async (value) => {
      const reply = await send(key, aMessage(template.id, { parameters: { 'body:1': value } }))
      if (reply.status !== 201) return t.equal(reply.status, 400, JSON.stringify(reply.body))
      const row = await messageById(database, team.id, reply.body.data[0].id)
      return row?.parameters['body:1'] === value
    }),
    { numRuns: 40 },
  )
})
