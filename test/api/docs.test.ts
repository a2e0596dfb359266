/**
 * The API's description: valid, complete, correct (support/described.ts validates every response) and usable.
 */
import { delimiter, dirname, join } from 'node:path'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import spectralCore from '@stoplight/spectral-core'
import spectralRulesets from '@stoplight/spectral-rulesets'
import openapiTypes from 'openapi-typescript'
import { EXPLAINED } from '../../api/docs/codes.ts'
import { COMPONENTS } from '../../api/docs/components.ts'
import { GUIDES } from '../../api/docs/guides.ts'
import type { JsonSchema } from '../../api/docs/json-schema.ts'
import { listRefusals, openApi } from '../../api/docs/openapi.ts'
import { createDocs } from '../../api/docs/routes.ts'
import { WEBHOOK_SCHEMAS } from '../../api/docs/webhooks.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import { TEST_TYPE, WEBHOOK_TYPES } from '../../db/channels/events/webhook-types.ts'
import { CODES } from '../../db/errors.ts'
import { assertIs, assertWebhook } from '../support/described.ts'
import { bareEnvironment } from '../support/environment.ts'
import { MODULES, ROOT } from '../support/program.ts'
import { runProgram } from '../support/programs.ts'
import { world } from '../support/service.ts'
import t from '../support/tap.ts'
import { startWorker } from '../support/worker.ts'

const { service, team } = await world(t)
// A worker processes bulk upserts.
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })
const { call, base } = service

t.test('GET /openapi.json is public, cached and valid OpenAPI 3.1', async (t) => {
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

t.test('Spectral and Redocly find no problem with their recommended rules', async (t) => {
  const text = JSON.stringify(openApi(V1_ROUTES, 'https://heliograph.test/'))
  const spectral = new spectralCore.Spectral()
  spectral.setRuleset({ extends: [[spectralRulesets.oas as never, 'recommended']] })
  const redocly = await createConfig({ extends: ['recommended'] })
  const found = await lintFromString({ source: text, config: redocly, absoluteRef: 'openapi.json' })
  t.strictSame(
    [
      ...(await spectral.run(text)).map(({ code, path }) => `${code} ${path.join('.')}`),
      ...found.map(({ ruleId, location: [at] }) => `${ruleId} ${at?.pointer}`),
    ],
    [],
  )
})

/** Returns every schema in a schema, with its path. */
function schemasIn(schema: JsonSchema, at: string): [at: string, schema: JsonSchema][] {
  const { properties = {}, items } = schema
  const inside = Object.entries(properties).flatMap(([name, field]) => schemasIn(field, `${at}.${name}`))
  return [[at, schema], ...inside, ...(items ? schemasIn(items, `${at}[]`) : [])]
}

type Answer = { content?: Record<string, { schema: { $ref: string }; example: unknown }> }
t.test('bodies have names, fields have descriptions, and responses have examples', async (t) => {
  const { paths, components, servers } = openApi(V1_ROUTES, 'https://heliograph.test/')
  t.strictSame(servers, [{ url: 'https://heliograph.test' }])
  t.strictSame(openApi(V1_ROUTES).servers, [{ url: '/' }])
  const fields = Object.entries({ ...COMPONENTS, ...WEBHOOK_SCHEMAS })
    .flatMap(([name, schema]) => schemasIn(schema, name))
    .filter(([at, schema]) => /\.\w+$/.test(at) && schema.$ref === undefined)
  t.ok(fields.length > 50)
  for (const [at, { description }] of fields) t.ok(description, at)
  const operations = Object.values(paths).flatMap((path) => Object.values(path))
  for (const { operationId, requestBody, responses } of operations) {
    const content = (requestBody?.content ?? {}) as Record<string, { schema: { $ref?: string } }>
    const body = content['application/json']?.schema.$ref?.split('/').at(-1) ?? 'Email'
    t.ok(body in components.schemas, `${operationId}: ${body}`)
    for (const answer of Object.values(responses)) {
      const { schema, example } = (answer as Answer).content?.['application/json'] ?? {}
      if (schema) assertIs(schema.$ref, example)
    }
  }
})

t.test('every webhook type has a schema and a valid example', async (t) => {
  const { webhooks } = openApi(V1_ROUTES)
  t.strictSame(Object.keys(webhooks), [...WEBHOOK_TYPES, TEST_TYPE])
  for (const [type, { post }] of Object.entries(webhooks)) {
    const { example } = post.requestBody.content['application/json']
    assertWebhook(example)
    t.match(example, { type })
    t.throws(() => assertWebhook({ ...(example as object), more: 1 }), /additional/)
  }
})

t.test('webhook examples about a message have its rank', async (t) => {
  const { webhooks } = openApi(V1_ROUTES)
  const examples = Object.entries(webhooks).map(
    ([type, { post }]) => [type, post.requestBody.content['application/json'].example] as const,
  )
  const ranks = examples.flatMap(([type, example]) => {
    const { data } = example as { data: { rank?: number } }
    return data.rank === undefined ? [] : [[type, data.rank]]
  })
  t.match(Object.fromEntries(ranks), {
    ...{ 'email.sent': 1, 'email.delivered': 2, 'email.opened': 3, 'email.clicked': 4, 'email.bounced': 5 },
    ...{ 'email.complained': 6, 'email.failed': 0, 'whatsapp.failed': 2, 'whatsapp.read': 4 },
  })
})

t.test('only single sends have Idempotency-Key', async (t) => {
  const { paths } = openApi(V1_ROUTES)
  const keyed = Object.entries(paths).filter(([, methods]) =>
    Object.values(methods).some(({ parameters }) =>
      parameters.some(({ name }) => name === 'Idempotency-Key'),
    ),
  )
  t.strictSame(keyed.map(([path]) => path).sort(), ['/v1/emails', '/v1/whatsapp/messages'])
  const bare: string[] = []
  JSON.stringify(openApi(V1_ROUTES), (name, value) => {
    const words = name === 'description' && typeof value === 'string' ? value.split('`') : []
    if (words.some((part, index) => index % 2 === 0 && /[<{]/.test(part))) bare.push(value)
    return value
  })
  t.strictSame(bare, [])
})

t.test('lists of topics and contacts’ properties have limits', async (t) => {
  const { schemas } = openApi(V1_ROUTES).components as unknown as {
    schemas: Record<string, { properties: Record<string, JsonSchema> }>
  }
  for (const name of ['NewBroadcast', 'BroadcastChange']) {
    t.match(schemas[name]?.properties.topic_ids, { minItems: 1, maxItems: 20 }, name)
    t.match(schemas[name]?.properties.exclude_topic_ids, { minItems: undefined, maxItems: 20 }, name)
  }
  for (const name of ['NewContact', 'ContactChange', 'ContactUpsert'])
    t.match(schemas[name]?.properties.properties, {
      maxProperties: 100,
      propertyNames: { maxLength: 128 },
      additionalProperties: { type: 'string', maxLength: 2_048 },
    })
})

t.test('shared error codes are explained for each group', async (t) => {
  const { not_found, invalid_state } = EXPLAINED
  for (const { meaning } of [not_found, invalid_state])
    for (const thing of [/broadcast/, /message/]) t.match(meaning, thing)
  t.match(not_found.meaning, /upload/)
  const { body } = await call('GET', '/v1/contact', { key: team.key })
  t.notMatch(JSON.stringify([body, not_found]), /nearest|did you mean/)
})

t.test('every route and code is documented', async (t) => {
  const { paths } = openApi(V1_ROUTES)
  for (const { method, path } of V1_ROUTES)
    t.ok(paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()], `${method} ${path}`)
  const ids = V1_ROUTES.map(({ about }) => about?.id)
  t.equal(new Set(ids).size, V1_ROUTES.length)
  // No operation has a wrong method.
  const described = new Set([...V1_ROUTES.flatMap(listRefusals), 'method_not_allowed'])
  t.equal(CODES.filter((code) => !described.has(code)).join(), '')
})

t.test('GET /docs has all operations, guides and codes', async (t) => {
  const { status, headers, body: html } = await call('GET', '/docs')
  t.equal(status, 200)
  t.match(headers.get('content-type'), /^text\/html/)
  const policy = headers.get('content-security-policy') ?? ''
  t.match(policy, /^default-src 'none'; style-src 'sha256-/)
  t.match(policy, /; script-src 'sha256-[\w+/=]+';/)
  t.notMatch(policy, /unsafe/)
  t.equal(html.split('<script').length, 2)
  t.notMatch(html, /<script\s|\son\w+=|style="/)
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

t.test('GET / redirects browsers, and lists paths for programs', async (t) => {
  const { status, headers } = await call('GET', '/', { headers: { Accept: 'text/html,*/*;q=0.8' } })
  t.strictSame([status, headers.get('location')], [302, '/docs'])
  const { body } = await call('GET', '/')
  t.strictSame(body, {
    name: 'Heliograph',
    api: '/v1',
    docs: '/docs',
    openapi: '/openapi.json',
    dashboard: '/dashboard',
  })
})

/** Returns the links to this service in a document. */
const linksIn = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
t.test('GET /llms.txt lists each guide, which exists as Markdown', async (t) => {
  const home = 'http://localhost:3000'
  const { status, headers, body: list } = await call('GET', '/llms.txt')
  t.equal(status, 200)
  t.match(headers.get('content-type'), /^text\/plain/)
  t.match(list, /^# Heliograph API\n\n> .+\n/)
  for (const { id, title } of GUIDES) t.match(list, `- [${title}](${home}/docs/${id}.md): `)
  for (const line of list.split('\n').filter((each: string) => each.startsWith('- [')))
    t.match(line, /\): (?:[^|#`]|`[^`]*`)+\.$/)
  const { body: page } = await call('GET', '/docs')
  const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
  const texts = [list]
  for (const { id, title } of GUIDES) {
    const guide = await call('GET', `/docs/${id}.md`)
    t.equal(guide.status, 200, id)
    t.match(guide.headers.get('content-type'), /^text\/markdown/)
    t.ok(guide.body.startsWith(`# ${title}\n`), id)
    t.notMatch(guide.body, /\{\{(home|domain|later|day_later|\w+_mib)\}\}/, id)
    texts.push(guide.body)
  }
  const own = [...new Set(texts.flatMap(linksIn))].filter(
    (link) => !/^https:|^http:\/\/(?!localhost)/.test(link),
  )
  t.ok(own.length > GUIDES.length)
  for (const link of own) {
    const { pathname, hash } = new URL(link)
    t.ok((await call('GET', pathname)).status < 400, link)
    if (hash) t.ok(ids.has(hash.slice(1)), link)
  }
  const etag = headers.get('etag') ?? ''
  t.equal((await call('GET', '/llms.txt', { headers: { 'If-None-Match': etag } })).status, 304)
  for (const [former, name] of [
    ['what-became-of-it', 'delivery-status'],
    ['when', 'scheduling'],
  ]) {
    const renamed = await call('GET', `/docs/${former}.md`)
    t.strictSame([renamed.status, renamed.headers.get('location')], [308, `/docs/${name}.md`])
  }
  const unknown = await call('GET', '/docs/nothing.md')
  t.strictSame([unknown.status, unknown.body.error.code], [404, 'not_found'])
})

t.test('a guide as Markdown has its samples and examples', async (t) => {
  const { body: batches } = await call('GET', '/docs/batches.md')
  t.match(batches, /\n## Python\n\n```\nemails = \[/)
  const { body: webhooks } = await call('GET', '/docs/webhooks.md')
  for (const type of WEBHOOK_TYPES) t.match(webhooks, `\n## ${type}\n\n\`\`\`\n{\n  "type": "${type}"`)
})

t.test('GET /postman.json has every call, and /docs links to it', async (t) => {
  const { status, headers, body } = await call('GET', '/postman.json')
  t.equal(status, 200)
  t.match(headers.get('content-type'), /^application\/json/)
  const items = (body.item as { item: { name: string }[] }[]).flatMap(({ item }) => item)
  t.strictSame(items.map(({ name }) => name).sort(), V1_ROUTES.map(({ about }) => about?.summary).sort())
  const { body: page } = await call('GET', '/docs')
  for (const path of ['/postman.json', '/openapi.json', '/llms.txt']) t.match(page, `href="${path}"`)
})

t.test('the page shows responses with headers, and this service’s address', async (t) => {
  const { body: html } = await call('GET', '/docs')
  t.match(html, 'export HELIOGRAPH_URL&#x3D;http://localhost:3000\n')
  const wire = /HTTP\/1.1 201 Created\nX-Request-Id: .+\nRateLimit-Policy: .+\nRateLimit: .+\n\n\{\n/
  t.match(html, wire)
  const own = createDocs(V1_ROUTES, { publicUrl: 'https://mail.test/', port: 3000, domain: 'example.com' })
  t.match((await own.page()).body, 'export HELIOGRAPH_URL&#x3D;https://mail.test\n')
})

t.test('a generated client type-checks, sends, and reads an error', async (t) => {
  const calls = join(ROOT, 'test/client/calls.ts')
  const directory = t.testdir({
    'api.d.ts': await openapiTypes(openApi(V1_ROUTES) as never),
    'tsconfig.json': JSON.stringify({
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: { rootDirs: [dirname(calls), '.'] },
      include: [],
      files: [calls],
    }),
  })
  const checked = await runProgram(join(MODULES, '.bin/tsc'), ['--project', directory], {
    env: { ...bareEnvironment(), PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) },
  }).catch((error: { stdout: string }) => error)
  t.equal(checked.stdout, '')
  const env = { ...bareEnvironment(), HELIOGRAPH_URL: base, HELIOGRAPH_KEY: team.key }
  const { stdout } = await runProgram(process.execPath, [calls], { env })
  t.match(JSON.parse(stdout), {
    ...{ sent: 201, status: 'queued', to_emails: ['ana@example.org'] },
    ...{ cc_emails: ['ben@example.org'], bcc_emails: ['archive@example.com'] },
    ...{ code: 'invalid_from', contacts: Number },
  })
})
