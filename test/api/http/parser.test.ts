/** Parsing a body blocks no other request, and has the same result in a thread. */
import { createServer } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { ROUTES } from '../../../api/app.ts'
import { type BodyRoute, createBodies } from '../../../api/http/bodies.ts'
import { type BodyShape, parseBody } from '../../../api/http/input.ts'
import { createParser } from '../../../api/http/parser.ts'
import { PARSER_THREAD } from '../../../api/v1/routes.ts'
import { portOf } from '../../support/port.ts'
import { anEmail, type Call, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { call, team } = await world(t)

const TEAM = { name: 'a team', isAuthenticated: true }

/** Large enough to be parsed in the thread. */
const LARGE = 'x'.repeat(600_000)

t.test('only large and heavy bodies are parsed in the thread', async (t) => {
  const bodies = createBodies({ parse: async () => 'in the thread', close: async () => {} })
  const shape = { read: () => 'here', batch: null } as unknown as BodyShape<unknown>
  const server = createServer(async (request, response) => {
    const route = {
      method: 'POST',
      path: '/',
      body: shape,
      ...(request.url === '/heavy' ? { heavy: true } : {}),
    }
    response.end(await bodies.during(TEAM, request, ({ parsed }) => parsed(route as BodyRoute)))
  })
  const url = `http://127.0.0.1:${await portOf(t, server)}`
  const where = async (path: string, bytes: number) => {
    const headers = { 'Content-Type': 'application/json', Connection: 'close' }
    const body = JSON.stringify('x'.repeat(bytes))
    return (await fetch(url + path, { method: 'POST', headers, body })).text()
  }
  t.equal(await where('/', 500_000), 'here')
  t.equal(await where('/', 600_000), 'in the thread')
  t.equal(await where('/heavy', 5_000), 'here')
  t.equal(await where('/heavy', 20_000), 'in the thread')
})

t.test('routes with batches are declared heavy', (t) => {
  const many = ROUTES.filter(({ body }) => body?.batch)
  t.ok(many.length >= 3)
  const light = many.filter(({ heavy }) => !heavy).map(({ path }) => path)
  t.strictSame(light, [])
  t.end()
})

t.test('a large batch is validated like a small one', async (t) => {
  const emails = [
    anEmail(),
    anEmail({ from: 'nobody' }),
    anEmail({ to: [] }),
    anEmail({ headers: { Date: 'today' } }),
    anEmail({ subject: 'a\u0000b' }),
    anEmail({ from: 'a@unknown.test' }),
    5,
    null,
  ]
  const judged = async (padding: object) => {
    const { status, body } = await call('POST', '/v1/emails/batch', {
      key: team.key,
      body: { emails, ...padding },
    })
    t.equal(status, 200)
    return body.data.map((item: { id?: string; error?: object }) => item.error ?? 'accepted')
  }
  const large = await judged({ padding: LARGE })
  t.strictSame(large, await judged({}))
  t.equal(large[0], 'accepted')
  t.match(large.slice(1), [
    { code: 'invalid_from' },
    { code: 'bad_request' },
    { code: 'invalid_headers' },
    { code: 'bad_request' },
    { code: 'from_domain_not_verified' },
    { code: 'bad_request' },
    { code: 'bad_request' },
  ])
})

t.test('large calls return the same errors as small ones', async (t) => {
  const bodies: [string, string, object | string][] = [
    ['/v1/emails/batch', 'batch_too_large', { emails: Array.from({ length: 101 }, () => ({})) }],
    ['/v1/contacts/bulk', 'batch_too_large', { contacts: Array.from({ length: 1001 }, () => ({})) }],
    ['/v1/emails', 'invalid_reply_to', anEmail({ reply_to: 'nobody' })],
    ['/v1/contacts', 'bad_request', { email: 'nobody' }],
    ['/v1/contacts', 'bad_request', '{"email": nobody'],
    ['/v1/contacts', 'bad_request', '[]'],
    ['/v1/whatsapp/messages', 'invalid_phone', { template_id: crypto.randomUUID(), to: ['1'] }],
  ]
  for (const [path, code, body] of bodies) {
    const small = typeof body === 'string' ? body : JSON.stringify(body)
    const replies: Awaited<ReturnType<Call>>[] = []
    for (const raw of [small, small + ' '.repeat(LARGE.length)]) {
      const headers = { 'Content-Type': 'application/json' }
      replies.push(await call('POST', path, { key: team.key, raw, headers }))
    }
    t.equal(replies[0]?.body.error.code, code, path)
    t.strictSame(replies[1]?.body, replies[0]?.body)
  }
})

t.test('a large send is stored unchanged', async (t) => {
  // Characters that are counted outside of strings, but not in them.
  const html = `<p>é 漢 😀 ${'"[{,\\'.repeat(200_000)}</p>`
  const { status, body } = await call('POST', '/v1/emails', { key: team.key, body: anEmail({ html }) })
  t.equal(status, 201)
  t.equal(body.html, html)
})

t.test('rejects a body with too many strings before parsing', (t) => {
  const shape = { read: () => 'parsed' } as unknown as BodyShape<unknown>
  const parsed = (unit: string, count: number, last: string) => () =>
    parseBody(shape, Buffer.from(`[${`${unit},`.repeat(count - 1)}${unit}${last}`))
  for (const unit of ['""', '[]', '{}']) {
    const refusal = /at most 300,000 strings, arrays and objects/
    // The list around them also counts.
    t.equal(parsed(unit, 299_999, ' ]')(), 'parsed')
    t.throws(parsed(unit, 300_000, ' ]'), { code: 'payload_too_large', message: refusal })
    t.throws(parsed(unit, 300_000, ''), { code: 'payload_too_large' }, 'before it is known to be broken')
  }
  t.equal(parsed('1', 3_000_000, ']')(), 'parsed')
  t.throws(parsed('1', 3_000_001, ']'), { code: 'payload_too_large', message: /at most 3,000,000 values/ })
  t.end()
})

t.test('a body with millions of values doesn’t block other requests', async (t) => {
  const raw = `{"email":"a@example.com","properties":[${'1,'.repeat(2_900_000)}1]}`
  const headers = { 'Content-Type': 'application/json' }
  let answered = false
  const junk = call('POST', '/v1/contacts', { key: team.key, raw, headers }).finally(() => {
    answered = true
  })
  let others = 0
  for (; !answered; others += 1) t.equal((await call('GET', '/health')).status, 200)
  t.equal((await junk).body.error.code, 'bad_request')
  // If it blocked other requests, only a few would be answered before it had arrived.
  t.ok(others > 30, `${others} answers meanwhile`)
})

t.test('a body that hangs the thread only fails itself', async (t) => {
  const parser = createParser(new URL('../../support/stuck-parser.ts', import.meta.url), { timeLimit: 5_000 })
  t.teardown(parser.close)
  const parse = (path: string) => parser.parse({ method: 'POST', path }, Buffer.from('{}'))
  const asked = ['/hang', '/fine', '/exit', '/fine', '/hoard', '/fine', '/throw', '/fine'].map(parse)
  const settled = await Promise.allSettled(asked)
  t.match(settled, [
    { reason: { code: 'unavailable' } },
    { value: '/fine' },
    { reason: { code: 'unavailable' } },
    { value: '/fine' },
    { reason: { code: 'unavailable' } },
    { value: '/fine' },
    { reason: { message: 'a fault of ours' } },
    { value: '/fine' },
  ])
})

t.test('deserializes a large batch with pauses for other requests', async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  const variables = Object.fromEntries(Array.from({ length: 1_400 }, (_, index) => [`k${index}`, '']))
  const emails = Array.from({ length: 100 }, () => anEmail({ template_id: crypto.randomUUID(), variables }))
  const body = JSON.stringify({ emails })
  const { now } = performance
  t.teardown(() => {
    performance.now = now
  })
  // Each look at the clock lasts as long as a slice, so another request must get its turn between two items.
  let looks = 0
  performance.now = () => 4 * ++looks
  let isDone = false
  const call = { method: 'POST', path: '/v1/emails/batch' }
  const parsing = parser.parse(call, Buffer.from(body)).finally(() => {
    isDone = true
  })
  let most = 0
  for (let seen = looks; !isDone; seen = looks) {
    await setImmediate()
    most = Math.max(most, looks - seen)
  }
  t.match(await parsing, { length: 100, 99: { send: { variables: { k1399: /^$/ } } } })
  t.ok(looks >= 200, `it looked ${looks} times`)
  t.ok(most <= 4, `${most} in one turn`)
})
