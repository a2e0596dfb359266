/** What all endpoints share: paths, methods, credentials, request IDs and internal errors. */
import { request } from 'node:http'
import { pino } from 'pino'
import { createApp } from '../../../api/app.ts'
import { revokeKey } from '../../../db/accounts/credentials/credentials.sql.ts'
import { makeCredential } from '../../../db/accounts/credentials/token.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import { openPool } from '../../support/pool.ts'
import { keyIdOf } from '../../support/rows.ts'
import { anEmail, caller, listen, makeKey, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, team } = await world(t)
const { call } = service

/** Sends a request line that fetch would reject. */
const rawRequest = async (method: string, path: string, headers: Record<string, string> = {}) =>
  await new Promise<{ status: number; allow: string | undefined; body: string }>((resolve, reject) => {
    const { hostname, port } = new URL(service.base)
    const sent = request({ hostname, port, method, path, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          allow: response.headers.allow,
          body: Buffer.concat(chunks).toString(),
        }),
      )
    })
    sent.once('error', reject)
    sent.end()
  })

t.test('an unknown path is 404 not_found, with or without credentials', async (t) => {
  for (const path of ['/v1', '/v1/nothing', '/v2/emails', '/v1/emails/x/y', '//', '/v1/%zz']) {
    const { status, body } = await call('GET', path, { key: team.key })
    t.equal(`${status} ${body.error?.code}`, '404 not_found', path)
    t.strictSame(Object.keys(body), ['error'])
    t.strictSame(Object.keys(body.error), ['code', 'message'])
  }
})

t.test('a method that a path lacks is 405 with Allow, before authentication', async (t) => {
  for (const [path, own] of [
    ['/health', 'GET, HEAD'],
    ['/v1/contacts', 'GET, HEAD, POST'],
    ['/v1/contacts/a@example.org', 'DELETE, GET, HEAD, PATCH'],
    // Not the path of a contact or an email.
    ['/v1/contacts/bulk', 'POST'],
    ['/v1/emails/batch', 'POST'],
    ['/v1/emails/x/cancel', 'POST'],
  ] as const)
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'LINK']) {
      if (own.includes(method)) continue
      const { status, allow, body } = await rawRequest(method, path)
      t.equal(`${status} ${JSON.parse(body).error.code}`, '405 method_not_allowed', `${method} ${path}`)
      t.equal(allow?.split(', ').sort().join(', '), own, path)
    }
})

t.test('all invalid credentials return the same error', async (t) => {
  const revoked = await makeKey(service, team.id)
  await revokeKey(service.database, team.id, await keyIdOf(service, revoked), new Date())
  const expired = await makeKey(service, team.id, { expires_at: new Date(Date.now() - 1) })
  const wrong = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Basic abc',
    team.key,
    `Bearer ${team.key}x`,
    `Bearer ${makeCredential('key')}`,
    `Bearer ${makeCredential('session')}`,
    `Bearer ${revoked}`,
    `Bearer ${expired}`,
    `Bearer ${team.key} ${team.key}`,
  ]
  const bodies = new Set<string>()
  for (const authorization of wrong) {
    const headers = authorization === undefined ? {} : { Authorization: authorization }
    const reply = await call('POST', '/v1/emails', { headers, body: {} })
    t.equal(reply.status, 401, `${authorization}`)
    t.equal(reply.headers.get('www-authenticate'), 'Bearer')
    bodies.add(JSON.stringify(reply.body))
  }
  t.equal(bodies.size, 1)
  t.match([...bodies][0], /"code":"unauthorized"/)
})

t.test('each response has X-Request-Id, the client’s if it is valid', async (t) => {
  t.match((await call('GET', '/health')).headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
  t.equal(
    (await call('GET', '/nope', { headers: { 'X-Request-Id': 'mine-1' } })).headers.get('x-request-id'),
    'mine-1',
  )
  const odd = await call('GET', '/nope', { headers: { 'X-Request-Id': 'a b<script>' } })
  t.match(odd.headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
})

t.test('an unavailable database is 503 except for /health', async (t) => {
  const proxy = await startDatabaseProxy(t, service.url)
  const away = await openPool(t, proxy.url)
  proxy.cut()
  const offline = caller(await listen(t, createApp({ ...service.deps, database: away })))
  for (const [method, path] of [
    ['POST', '/v1/emails'],
    ['GET', '/v1/plans'],
    ['GET', '/ready'],
  ] as const) {
    const { status, headers, body } = await offline(
      method,
      path,
      method === 'POST' ? { key: team.key, body: {} } : {},
    )
    t.equal(`${status} ${body.error?.code}`, '503 unavailable', path)
    t.match(headers.get('retry-after'), /^\d+$/)
  }
  t.equal((await offline('GET', '/health')).status, 200)
})

t.test('an internal error only shows the request ID', async (t) => {
  const broken = caller(
    await listen(
      t,
      createApp(service.deps, [
        {
          method: 'GET',
          path: '/broken',
          access: 'public',
          handle: async () => {
            throw new Error('a secret detail')
          },
        },
      ]),
    ),
  )
  const { status, headers, body } = await broken('GET', '/broken')
  t.equal(status, 500)
  t.equal(body.error.code, 'internal_error')
  t.match(body.error.message, headers.get('x-request-id') ?? 'none')
  t.notMatch(JSON.stringify(body), /secret detail/)
})

t.test('serializes lists by item, with pauses for other requests', async (t) => {
  let [turns, counting] = [0, true]
  const seen: number[] = []
  const item = (at: number) => ({
    toJSON() {
      // Longer than a slice.
      for (const end = performance.now() + 6; performance.now() < end; );
      seen.push(turns)
      return { at }
    },
  })
  const count = (): void => {
    turns += 1
    if (counting) setImmediate(count)
  }
  const handle = async () => ({ status: 200, body: { data: [0, 1, 2, 3].map(item), next_cursor: '4' } })
  const route = { method: 'GET', path: '/list', access: 'public', handle } as const
  const list = caller(await listen(t, createApp(service.deps, [route])))
  count()
  const { headers, body } = await list('GET', '/list')
  counting = false
  t.strictSame(body, { data: [{ at: 0 }, { at: 1 }, { at: 2 }, { at: 3 }], next_cursor: '4' })
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal(new Set(seen).size, 4)
})

t.test('a client can read the 413 for an oversized body', async (t) => {
  const length = 10 * 1024 * 1024 + 1
  for (let round = 0; round < 5; round++) {
    const { status, body, headers } = await call('POST', '/v1/emails', {
      key: team.key,
      raw: new Uint8Array(length),
      headers: { 'Content-Type': 'application/json' },
    })
    t.equal(`${status} ${body.error?.code}`, '413 payload_too_large')
    t.equal(headers.get('connection'), 'close')
  }
})

t.test('paths are case-sensitive and have no trailing slash', async (t) => {
  for (const path of ['/v1/Contacts', '/v1/contacts/', '/V1/plans', '/v1/plans/'])
    t.equal((await call('GET', path, { key: team.key })).body.error?.code, 'not_found', path)
})

t.test('an absolute URL is reduced to its path', async (t) => {
  for (const origin of [
    'http://x',
    'https://user:word@x:80',
    'http://[::1]',
    'http://[::1',
    'http://x:y',
    'http://',
  ]) {
    const { status, body } = await rawRequest('GET', `${origin}/v1/plans?locale=fr`)
    t.equal(status, 200, origin)
    t.match(body, /"Gratuit"/, origin)
  }
  for (const path of ['http://[::1', 'http://', 'http://x?a=/b'])
    t.match(await rawRequest('GET', path), { status: 200, body: /"Heliograph"/ }, path)
  t.match(await rawRequest('POST', 'http://[/v1/plans'), { status: 405, body: /method_not_allowed/ })
})

t.test('a query that isn’t UTF-8 is bad_request', async (t) => {
  for (const query of ['email=%ed%a0%80', 'email=%zz', 'status=%ff', 'email=%00', 'limit=1&limit=2']) {
    const { body } = await call('GET', `/v1/contacts?${query}`, { key: team.key })
    t.equal(body.error?.code, 'bad_request', query)
  }
  t.equal((await call('GET', '/v1/contacts?other=%zz', { key: team.key })).status, 200)
})

t.test('JSON in a charset other than UTF-8 is 415', async (t) => {
  const post = async (type: string) =>
    (await call('POST', '/v1/emails', { key: team.key, raw: '{}', headers: { 'Content-Type': type } })).status
  t.equal(await post('application/json; charset=utf-16'), 415)
  t.equal(await post('application/json;charset="UTF-8"'), 400)
})

t.test('a request without a route is logged without its path', async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  const logged = caller(await listen(t, createApp({ ...service.deps, log })))
  await logged('POST', '/v1/contacts/someone@example.org', { key: team.key, body: {} })
  await logged('GET', '/v1/contact/someone@example.org', { key: team.key })
  await logged('GET', '/v1/contacts/someone@example.org', { key: team.key })
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { method: 'POST', route: 'none', status: 405 },
      { method: 'GET', route: 'none', status: 404 },
      { method: 'GET', route: '/v1/contacts/:email', status: 404 },
    ],
  )
  t.notMatch(lines.join(''), 'someone@example.org')
})

t.test("the log has a request's caller and result, no content", async (t) => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  const logged = caller(await listen(t, createApp({ ...service.deps, log })))
  const headers = { 'X-Request-Id': 'traced-1' }
  const sent = await logged('POST', '/v1/emails', { key: team.key, body: anEmail(), headers })
  await logged('POST', '/v1/emails', { key: team.key, body: {} })
  const emails = [anEmail(), anEmail({ from: 'a@unknown.test' }), anEmail({ from: 'a@unknown.test' }), {}]
  const batch = await logged('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  const whose = { team_id: team.id, key: team.key.slice(0, 10) }
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { ...whose, request_id: 'traced-1', status: 201, ids: [sent.body.id] },
      { ...whose, status: 400, code: 'bad_request' },
      {
        ...whose,
        status: 200,
        accepted: 1,
        refused: 3,
        code: 'from_domain_not_verified',
        ids: [batch.body.data[0].id],
      },
    ],
  )
  t.notMatch(lines.join(''), /example\.|unknown\.test/)
  t.notMatch(lines.join(''), team.key)
})
