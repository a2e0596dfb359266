// POST /v1/whatsapp/messages/batch: each item has its own result, in order.

import { type Reply, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import {
  aMessage,
  aTemplate,
  type Json,
  makeTemplate,
  numbers,
  rowsOf,
  setLimit,
  whatsappClient,
} from '../support/whatsapp.ts'

const PATH = '/v1/whatsapp/messages/batch'
const UNKNOWN = '0190a000-0000-7000-8000-000000000000'

const service = await startService(t)
const { call } = service
const { usedBy, sender: open } = whatsappClient(service)

const sendBatch = async (key: string, messages: unknown): Promise<Reply> =>
  await call('POST', PATH, { key, body: { messages } })

async function sender(whatsapp_limit = 10_000) {
  const { team, key, template } = await open()
  await setLimit(service, team.id, whatsapp_limit)
  return { team, key, id: template.id }
}

const codesOf = ({ body }: Reply): (string | undefined)[] =>
  body.data.map((item: { error?: { code: string } }) => item.error?.code)

t.test('returns one item per message, with its first ID', async (t) => {
  const { team, key, id } = await sender()
  const { status, body } = await sendBatch(key, [
    aMessage(id, { to: numbers(3) }),
    aMessage(id, { to: numbers(2, 10) }),
  ])
  t.equal(status, 200)
  const rows = await rowsOf(service, team.id)
  t.same(body, {
    data: [
      { index: 0, id: rows[0]?.id },
      { index: 1, id: rows[3]?.id },
    ],
  })
  const recipients = rows.map((row) => row.recipient)
  t.same(recipients, [...numbers(3), ...numbers(2, 10)])
})

t.test('an item has an ID or its own error', async (t) => {
  const { team, key, id } = await sender()
  const unsupported = await makeTemplate(service, team.id, aTemplate({ header: { format: 'GIF' } }))
  const paused = await makeTemplate(service, team.id, aTemplate({}, { status: 'PAUSED' }))
  const reply = await sendBatch(key, [
    aMessage(id),
    aMessage(id, { to: ['+15555550101', '12'] }),
    aMessage(UNKNOWN),
    aMessage(paused.id),
    aMessage(unsupported.id),
    aMessage(id, { parameters: {} }),
    aMessage(id, { to: [] }),
    'no object',
    aMessage(id, { to: numbers(2) }),
  ])
  t.equal(reply.status, 200)
  t.same(codesOf(reply), [
    undefined,
    'invalid_phone',
    'not_found',
    'template_disabled',
    'template_unsupported',
    'invalid_params',
    'bad_request',
    'bad_request',
    undefined,
  ])
  for (const [index, item] of reply.body.data.entries()) {
    t.equal(item.index, index)
    t.same(Object.keys(item), ['index', item.error ? 'error' : 'id'])
  }
  t.equal((await rowsOf(service, team.id)).length, 3)
})

t.test('an error about a recipient is to[<n>]: <code>: <detail>', async (t) => {
  const { key, id } = await sender()
  const { body } = await sendBatch(key, [
    aMessage(id, { to: ['+15555550101', '+15555550102', 'nobody', ''] }),
    aMessage(id, { to: ['+15555550101', 5] }),
    aMessage(id, { to: ['+1555555\u0000'] }),
  ])
  for (const item of body.data) t.same(Object.keys(item), ['index', 'error'])
  t.same(
    body.data.map((item: Json) => item.error),
    [
      {
        code: 'invalid_phone',
        message: 'to[2]: invalid_phone: must be a phone number in E.164 format, such as +15551234567',
      },
      { code: 'bad_request', message: 'to[1]: bad_request: must be a string' },
      { code: 'bad_request', message: 'to[0]: bad_request: must not contain NUL characters' },
    ],
  )
})

t.test('a repeated key is a replay, even with an invalid item', async (t) => {
  const { team, key, id } = await sender()
  const twins = [
    aMessage(UNKNOWN, { idempotency_key: 'a' }),
    aMessage(id, { idempotency_key: 'a' }),
    aMessage(UNKNOWN, { idempotency_key: 'a' }),
  ]
  const { body } = await sendBatch(key, twins)
  const [first, second, third] = body.data
  t.equal(first.error?.code, 'not_found', 'a refused item binds no key')
  t.match(second.id, /-/)
  t.equal(third.id, second.id)
  t.equal(await usedBy(team.id), 1)
})

t.test('accepts 100 items of 50 recipients in one call', async (t) => {
  const { team, key, id } = await sender()
  const messages = Array.from({ length: 100 }, (_, index) => aMessage(id, { to: numbers(50, index * 50) }))
  const { status, body } = await sendBatch(key, messages)
  t.equal(status, 200)
  t.equal(new Set(body.data.map((item: Json) => item.id)).size, 100)
  t.equal(await usedBy(team.id), 5_000)
  t.equal((await rowsOf(service, team.id)).length, 5_000)
})

t.test('a batch that exceeds the quota is rejected completely', async (t) => {
  const { team, key, id } = await sender(5)
  const reply = await sendBatch(key, [aMessage(id, { to: numbers(3) }), aMessage(id, { to: numbers(3, 10) })])
  t.equal(reply.status, 402)
  t.equal(reply.body.error.code, 'quota_exceeded')
  t.equal(await usedBy(team.id), 0)
  t.same(await rowsOf(service, team.id), [])
  t.equal((await sendBatch(key, [aMessage(id, { to: numbers(5) })])).status, 200)
})

t.test('rejected items, replays and repeated keys don’t use the quota', async (t) => {
  const { team, key, id } = await sender(4)
  const stored = aMessage(id, { to: numbers(2), idempotency_key: 'stored' })
  const first = await sendBatch(key, [stored])
  const fresh = aMessage(id, { to: numbers(2, 10), idempotency_key: 'fresh' })
  const reply = await sendBatch(key, [stored, aMessage(UNKNOWN, { to: numbers(9) }), fresh, fresh, stored])
  t.equal(reply.status, 200)
  t.same(codesOf(reply), [undefined, 'not_found', undefined, undefined, undefined])
  const ids = reply.body.data.map((item: Json) => item.id)
  t.equal(ids[0], first.body.data[0].id)
  t.equal(ids[4], ids[0])
  t.equal(ids[3], ids[2], 'one key twice in a batch gives one id')
  t.equal(await usedBy(team.id), 4)
  t.equal((await sendBatch(key, [stored, fresh])).status, 200, 'replays pass a full allowance')
  t.equal((await sendBatch(key, [stored, aMessage(id)])).status, 402)
})

t.test('a repeated recipient is charged once', async (t) => {
  const { team, key, id } = await sender(1)
  t.equal((await sendBatch(key, [aMessage(id, { to: ['+15555550101', '+1 555 555 0101'] })])).status, 200)
  t.equal(await usedBy(team.id), 1)
})

t.test('single sends and batches share their keys', async (t) => {
  const { key, id } = await sender()
  const body = aMessage(id, { to: numbers(2), idempotency_key: 'one space' })
  const single = await call('POST', '/v1/whatsapp/messages', { key, body })
  const batch = await sendBatch(key, [body])
  t.equal(batch.body.data[0].id, single.body.data[0].id)
  const other = aMessage(id, { idempotency_key: 'batch first' })
  const { body: first } = await sendBatch(key, [other])
  const replay = await call('POST', '/v1/whatsapp/messages', { key, body: other })
  t.equal(replay.status, 200)
  t.equal(replay.body.data[0].id, first.data[0].id)
})

t.test('concurrent batches and sends never exceed the quota', async (t) => {
  const { team, key, id } = await sender(30)
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0
        ? sendBatch(key, [aMessage(id, { to: numbers(4, index * 4) }), aMessage(id)])
        : call('POST', '/v1/whatsapp/messages', { key, body: aMessage(id, { to: numbers(3) }) }),
    ),
  )
  for (const { status } of replies) t.ok([200, 201, 402].includes(status))
  const used = await usedBy(team.id)
  t.ok(used <= 30 && used > 25, `${used} of 30`)
  t.equal((await rowsOf(service, team.id)).length, used)
})

t.test('text that can’t be stored only fails its item', async (t) => {
  const { key, id } = await sender()
  const reply = await sendBatch(key, [aMessage(id, { parameters: { 'body:1': 'a\0b' } }), aMessage(id)])
  t.same(codesOf(reply), ['bad_request', undefined])
  t.match(reply.body.data[0].error.message, /^messages\[0\]\.parameters/)
})
