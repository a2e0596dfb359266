/** Limits for the memory of request bodies. */
import { once } from 'node:events'
import { Agent, type ClientRequest, createServer, type IncomingMessage, request } from 'node:http'
import { createApp } from '../../../api/app.ts'
import { createBodies } from '../../../api/http/bodies.ts'
import { BODY_BUDGET } from '../../../api/http/body-budget.ts'
import { createParser } from '../../../api/http/parser.ts'
import { MAX_BODY_BYTES } from '../../../api/http/read-body.ts'
import { PARSER_THREAD } from '../../../api/v1/routes.ts'
import { portOf } from '../../support/port.ts'
import { anEmail, caller, listen, world } from '../../support/service.ts'
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
