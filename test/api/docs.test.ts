/** The API's description: valid, complete, true (support/described.ts holds every answer against it), and of use. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import createClient from 'openapi-fetch'
import { Resend } from 'resend'
import t from 'tap'
import { GUIDES } from '../../api/docs/guides.ts'
import { openApi, refusalsOf, templated } from '../../api/docs/openapi.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import { CODES } from '../../db/errors.ts'
import type { paths } from '../client/api.d.ts'
import { digestOf, shape } from '../client/shape.ts'
import { makeTeam, startService } from '../support/service.ts'
import { makeTemplate } from '../support/whatsapp.ts'
import { startWorker } from '../support/worker.ts'

const service = await startService(t)
// Bulk upserts are a worker's.
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })
const team = await makeTeam(service)
const { call, base } = service

const SEND = { from: 'hello@example.com', to: ['ana@example.org'], subject: 'Hello', html: '<p>Hello</p>' }

t.test('GET /openapi.json is valid OpenAPI 3.1, public, and cached by its ETag', async (t) => {
  const { status, headers, body } = await call('GET', '/openapi.json')
  t.equal(status, 200)
  t.equal(body.openapi, '3.1.0')
  const { valid, errors } = await new Validator().validate(body)
  t.ok(valid, JSON.stringify(errors))
  const etag = headers.get('etag') ?? ''
  t.match(headers.get('cache-control'), /^public, max-age=\d+$/)
  t.equal((await call('GET', '/openapi.json', { headers: { 'If-None-Match': etag } })).status, 304)
  t.notMatch(JSON.stringify(body), /"x-/)
})

t.test('no route and no code is undocumented', async (t) => {
  const { paths } = openApi(V1_ROUTES)
  for (const { method, path } of V1_ROUTES)
    t.ok(paths[templated(path)]?.[method.toLowerCase()], `${method} ${path}`)
  const ids = V1_ROUTES.map(({ about }) => about?.id)
  t.equal(new Set(ids).size, V1_ROUTES.length)
  // A wrong method belongs to no operation.
  const described = new Set([...V1_ROUTES.flatMap(refusalsOf), 'method_not_allowed'])
  t.strictSame(
    CODES.filter((code) => !described.has(code)),
    [],
  )
})

t.test('every example works', async (t) => {
  const template = await makeTemplate(service, team.id)
  for (const { method, path, about } of V1_ROUTES) {
    if (!about?.example) continue
    const text = JSON.stringify(about.example).replaceAll('01920000-0000-7000-8000-000000000000', template.id)
    const { status, body } = await call(method, path.replace(':email', 'ana@example.org'), {
      key: team.key,
      body: JSON.parse(text),
    })
    t.ok(status in about.answers, `${method} ${path}: ${status} ${JSON.stringify(body).slice(0, 200)}`)
    for (const item of Array.isArray(body.data) ? body.data : []) t.notOk(item.error, JSON.stringify(item))
  }
})

t.test('GET /docs shows every operation, guide and code, runs no script, and is cached', async (t) => {
  const { status, headers, body: html } = await call('GET', '/docs')
  t.equal(status, 200)
  t.match(headers.get('content-type'), /^text\/html/)
  const policy = headers.get('content-security-policy') ?? ''
  t.match(policy, /^default-src 'none'; style-src 'sha256-/)
  t.notMatch(policy, /unsafe|script-src/)
  t.notMatch(html, /<script|\son\w+=|style="/)
  const ids = new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
  for (const { about } of V1_ROUTES) t.ok(ids.has(about?.id))
  for (const { id } of GUIDES) t.ok(ids.has(id), id)
  for (const code of CODES) t.ok(ids.has(code), code)
  for (const [, target] of html.matchAll(/href="#([^"]+)"/g))
    t.ok(ids.has(target), `#${target} leads somewhere`)
  t.equal(
    (await call('GET', '/docs', { headers: { 'If-None-Match': headers.get('etag') ?? '' } })).status,
    304,
  )
})

t.test('the generated client is that of today’s description', async (t) => {
  const client = await readFile(join(import.meta.dirname, '../client/api.d.ts'), 'utf8')
  t.equal(
    client.split('\n')[0],
    `// made from ${digestOf(shape())}`,
    'generate it again: test/client/shape.ts',
  )
})

t.test('a generated client type-checks, sends an email and reads a refusal', async (t) => {
  const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${team.key}` } })
  const body = { from: 'hello@example.com', to: ['ana@example.org'], subject: 'Hello', html: '<p>Hello</p>' }
  const { data, response } = await client.POST('/v1/emails', { body })
  t.equal(response.status, 201)
  t.match(data, { status: 'queued', to_emails: ['ana@example.org'] })
  const refused = await client.POST('/v1/emails', { body: { ...body, from: 'nobody' } })
  t.equal(refused.error?.error.code, 'invalid_from')
  const page = await client.GET('/v1/contacts', { params: { query: { limit: 1, status: 'subscribed' } } })
  t.ok(Array.isArray(page.data?.data))
})

t.test('the official resend package sends emails and makes contacts here', async (t) => {
  const resend = new Resend(team.key, { baseUrl: `${base}/v1` })
  const sent = await resend.emails.send(
    { from: 'Acme <hello@example.com>', to: ['ana@example.org'], subject: 'Hello', html: '<p>Hello</p>' },
    { idempotencyKey: 'resend-1' },
  )
  t.equal(sent.error, null)
  const again = await call('POST', '/v1/emails', {
    key: team.key,
    body: { ...SEND, idempotency_key: 'resend-1' },
  })
  t.strictSame([again.status, again.body.id], [200, sent.data?.id])
  const made = await resend.contacts.create({ email: 'resend@example.org' })
  t.equal(made.error, null)
  const found = await resend.contacts.get({ email: 'resend@example.org' })
  t.equal(found.error, null)
  t.equal(found.data?.id, made.data?.id)
})
