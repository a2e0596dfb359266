/**
 * Request bodies: limited memory, parsing that doesn't block other requests, and the same result wherever
 * they are parsed.
 */
import { once } from 'node:events'
import { Agent, type ClientRequest, createServer, type IncomingMessage, request } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { createApp, ROUTES } from '../../../api/app.ts'
import { type BodyRoute, createBodies } from '../../../api/http/bodies.ts'
import { BODY_BUDGET, budgetFor, LARGE_BODIES_SHARE, largestBody } from '../../../api/http/body-budget.ts'
import { type BodyShape, parseBody } from '../../../api/http/input.ts'
import { createParser } from '../../../api/http/parser.ts'
import { MAX_BODY_BYTES } from '../../../api/http/read-body.ts'
import { PARSER_THREAD } from '../../../api/v1/routes.ts'
import { portOf } from '../../support/port.ts'
import { anEmail, type Call, caller, listen, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { service, team } = await world(t)
const { call } = service

const MIB = 1024 * 1024
const TEAM = { name: 'a team', isAuthenticated: true }
const SIGNED = { 'X-Hub-Signature-256': `sha256=${'0'.repeat(64)}` }

/** Starts a post whose body doesn't end, on a keep-alive connection. */
function beginUpload(t: Test, url: string, bytes: number): ClientRequest {
  const headers = { ...SIGNED, 'Content-Length': bytes + 1 }
  const agent = new Agent({ keepAlive: true })
  const sent = request(url, { method: 'POST', headers, agent })
  sent.on('error', () => {})
  t.teardown(() => {
    sent.destroy()
    agent.destroy()
  })
  sent.write(Buffer.alloc(bytes))
  return sent
}

t.test('bodies beyond the limit get 503 until others have ended', async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  const bodies = createBodies(parser, {
    ...BODY_BUDGET,
    unauthenticated: 600_000,
    perPath: 300_000,
    patience: 200,
  })
  const base = await listen(t, createApp({ ...service.deps, bodies }))
  const url = `${base}/hooks/whatsapp`
  const stalled = [beginUpload(t, url, 200_000), beginUpload(t, url, 200_000)]
  const [refused] = await Promise.race(
    stalled.map((sent) => once(sent, 'response') as Promise<[IncomingMessage]>),
  )
  t.equal(refused.statusCode, 503)
  t.match(refused.headers['retry-after'], /^\d+$/)
  t.equal(refused.headers.connection, 'close', 'the rest is on its way: nothing can be read behind it')
  t.match(JSON.parse(Buffer.concat(await refused.toArray()).toString()), { error: { code: 'unavailable' } })
  const send = await caller(base)('POST', '/v1/emails', { key: team.key, body: anEmail() })
  t.equal(send.status, 201, 'others have room of their own')
  for (const sent of stalled) sent.destroy()
  const post = () =>
    caller(base)('POST', '/hooks/whatsapp', { raw: new Uint8Array(200_000), headers: SIGNED })
  let { status } = await post()
  while (status === 503) ({ status } = await post())
  t.equal(status, 401)
})

t.test('unauthenticated bodies leave capacity for teams and other hooks', async (t) => {
  const parser = { parse: async () => {}, close: async () => {} }
  const bodies = createBodies(parser, { ...BODY_BUDGET, patience: 200 })
  const server = createServer(async ({ url = '' }, response) => {
    const owner = { name: url, isAuthenticated: url === '/team' }
    const taken = bodies.during(owner, response.req, async ({ bytes }) => (await bytes()).length)
    response.end(await taken.then(String, ({ code }) => code))
  })
  const base = `http://127.0.0.1:${await portOf(t, server)}`
  const send = async (door: string, bytes: number) =>
    (await fetch(`${base}${door}`, { method: 'POST', body: new Uint8Array(bytes) })).text()
  beginUpload(t, `${base}/a`, 3 * MIB)
  await until('it is held', async () => (await send('/a', MIB)) === 'unavailable')
  t.equal(await send('/b', 3 * MIB), String(3 * MIB))
  const doors = ['/b', '/c', '/d', '/e', '/f']
  const strangers = doors.map((door) => beginUpload(t, `${base}${door}`, 3 * MIB))
  const answers = strangers.map((stranger) => once(stranger, 'response') as Promise<[IncomingMessage]>)
  const [refused] = await Promise.race(answers)
  t.equal((await refused.toArray()).toString(), 'unavailable')
  t.equal(await send('/team', MAX_BODY_BYTES), String(MAX_BODY_BYTES))
})

t.test('at most two rejected bodies are drained at a time', async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  const bodies = createBodies(parser)
  const coming = new Set<IncomingMessage>()
  const server = createServer(async (request, response) => {
    coming.add(request)
    await bodies.during(TEAM, request, ({ bytes }) => bytes(1_000)).catch(() => {})
    response.end(String(coming.delete(request)))
  })
  const url = `http://127.0.0.1:${await portOf(t, server)}`
  const uploads = Array.from({ length: 6 }, () => beginUpload(t, url, 8_000_000))
  await until('all have come', () => coming.size === 6)
  let most = 0
  const answered = uploads.map(async (sent) => {
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    return answer.statusCode
  })
  for (const sent of uploads) sent.end(Buffer.alloc(1))
  await until('all are answered', () => {
    const read = [...coming].filter(({ readableFlowing }) => readableFlowing === true)
    most = Math.max(most, read.length)
    return coming.size === 0
  })
  t.strictSame(await Promise.all(answered), [200, 200, 200, 200, 200, 200])
  t.ok(most <= 2, `${most} at once`)
})

t.test('POST /hooks/whatsapp reads at most 3 MiB', async (t) => {
  const post = (size: number) =>
    call('POST', '/hooks/whatsapp', { raw: new Uint8Array(size), headers: SIGNED })
  t.equal((await post(3 * 1024 * 1024)).status, 401)
  t.equal((await post(3 * 1024 * 1024 + 1)).status, 413)
})

t.test('POST /hooks/ses reads nothing while no topic is configured', async (t) => {
  const headers = { 'Content-Type': 'text/plain', 'Content-Length': 1000 }
  const sent = request(`${service.base}/hooks/ses`, { method: 'POST', headers, agent: false })
  t.teardown(() => sent.destroy())
  sent.on('error', () => {})
  sent.flushHeaders()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 401)
})

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
  t.strictSame(
    many.filter(({ heavy }) => !heavy).map(({ path }) => path),
    [],
  )
  t.end()
})

t.test('a large body waits for capacity while small ones pass', async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  const bodies = createBodies(parser, {
    ...BODY_BUDGET,
    unauthenticated: 800_000,
    perPath: 400_000,
    total: 400_000,
    patience: 60_000,
  })
  const base = await listen(t, createApp({ ...service.deps, bodies }))
  const stalled = beginUpload(t, `${base}/hooks/whatsapp`, 300_000)
  await until('it is held', async () => {
    const { status } = await caller(base)('POST', '/hooks/whatsapp', {
      raw: new Uint8Array(10),
      headers: SIGNED,
    })
    return status === 401
  })
  const send = (html: string) =>
    caller(base)('POST', '/v1/emails', { key: team.key, body: anEmail({ html }) })
  let answered = false
  const large = send('x'.repeat(100_000)).finally(() => {
    answered = true
  })
  for (let each = 0; each < 5; each += 1) t.equal((await send('<p>Hi</p>')).status, 201)
  t.notOk(answered, 'there is no room for it')
  stalled.destroy()
  t.equal((await large).status, 201)
})

t.test('a bulk call releases capacity while it waits for workers', async (t) => {
  const parser = createParser(PARSER_THREAD)
  t.teardown(parser.close)
  // Otherwise the calls would wait for the start of the thread.
  await parser.parse({ method: 'POST', path: '/v1/contacts/bulk' }, Buffer.from('{"contacts":[]}'))
  const bodies = createBodies(parser, { ...BODY_BUDGET, perOwner: 120_000, patience: 2_500 })
  const base = await listen(t, createApp({ ...service.deps, bodies, upsertWait: 6_000 }))
  const contacts = Array.from({ length: 1_000 }, (_, at) => ({ email: `${'x'.repeat(60)}${at}@example.com` }))
  const upsert = () => caller(base)('POST', '/v1/contacts/bulk', { key: team.key, body: { contacts } })
  for (const { status, body } of await Promise.all([upsert(), upsert(), upsert()])) {
    t.equal(status, 503)
    t.match(body.error.message, /still being processed/)
  }
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

t.test('with any memory limit, each limit fits the largest body', (t) => {
  for (let limit = 100e6; limit <= 600e6; limit += 10e6) {
    const { perOwner, unauthenticated, perPath, total } = budgetFor(limit)
    const largest = largestBody(budgetFor(limit))
    t.ok(largest >= 3.5 * MIB && largest <= perOwner * LARGE_BODIES_SHARE)
    t.ok(unauthenticated + largest <= total * LARGE_BODIES_SHARE, 'unauthenticated bodies leave room for it')
    t.ok(Math.min(perPath, unauthenticated) * LARGE_BODIES_SHARE >= 3 * MIB, 'the largest post of a hook')
  }
  t.strictSame(budgetFor(Number.POSITIVE_INFINITY), BODY_BUDGET)
  t.equal(largestBody(BODY_BUDGET), MAX_BODY_BYTES)
  t.end()
})
