/**
 * The API's description (OpenAPI 3.1): a walk over the routes. What a route takes comes from the schemas that validate
 * it, what it answers from components.ts, the words from the route's `about`. Pure.
 * Promises: no route under /v1 is left out, and none says anything twice.
 */
import type { Code } from '../../db/errors.ts'
import { STATUS } from '../errors.ts'
import type { Route } from '../route.ts'
import { EXPLAINED } from './codes.ts'
import { COMPONENTS, type Component } from './components.ts'
import { fieldsOf, type JsonSchema, objectSchemaOf } from './json-schema.ts'

export type OpenApi = ReturnType<typeof openApi>

/** What every route of its kind may answer, beside its own refusals. */
export function refusalsOf(route: Route): Code[] {
  const { access, body, query, path, about } = route
  const own = about?.refusals ?? []
  const inherent: (Code | false)[] = [
    (body !== undefined || query !== undefined || path.includes(':')) && 'bad_request',
    access !== 'public' && 'unauthorized',
    access !== 'public' && 'insufficient_scope',
    body !== undefined && 'payload_too_large',
    body !== undefined && 'unsupported_media_type',
    'internal_error',
    'unavailable',
  ]
  return [...new Set([...own, ...inherent.filter((code) => code !== false)])]
}

const json = (name: Component) => ({
  'application/json': { schema: { $ref: `#/components/schemas/${name}` } },
})

const HEADERS = {
  'X-Request-Id': {
    description:
      'The id of this request, in our log and on what it stored. Your own comes back when it is sane.',
    schema: { type: 'string' },
  },
}

const RATE = {
  'RateLimit-Policy': {
    description: 'The send rate: q sends in w seconds (draft-ietf-httpapi-ratelimit-headers-11).',
    schema: { type: 'string', examples: ['"sends";q=50;w=5'] },
  },
  RateLimit: {
    description: 'r sends are left; t seconds until all are. Only where the send counted.',
    schema: { type: 'string', examples: ['"sends";r=49;t=1'] },
  },
}

const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait before the next try.', schema: { type: 'integer' } },
}

/** The refusals of a route by status, each with its codes. */
function failures(route: Route) {
  const byStatus = Map.groupBy(refusalsOf(route), (code) => STATUS[code])
  return [...byStatus].map(([status, codes]) => [
    String(status),
    {
      description: codes.map((code) => `\`${code}\`: ${EXPLAINED[code].meaning}`).join('\n\n'),
      headers: {
        ...HEADERS,
        ...(status === 429 || status === 503 ? RETRY_AFTER : {}),
        ...(status === 429 ? RATE : {}),
      },
      content: json('Failure'),
    },
  ])
}

const answers = ({ about }: Route) =>
  Object.entries(about?.answers ?? {}).map(([status, { when, body }]) => [
    status,
    {
      description: when,
      headers: { ...HEADERS, ...(about?.rated ? RATE : {}) },
      ...(body ? { content: json(body) } : {}),
    },
  ])

function parameters({ path, query, about }: Route) {
  const notes = about?.notes ?? {}
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: notes[name] ?? '',
    schema: { type: 'string' },
  }))
  const inQuery = (query ? fieldsOf(query.schema, notes) : []).map(({ name, required, schema }) => ({
    name,
    in: 'query',
    required,
    schema,
  }))
  return [...inPath, ...inQuery]
}

/** The schema of a route's body: of one object, or of a batch of them. */
function bodySchema({ body, about }: Route): JsonSchema | null {
  if (!body) return null
  const one = objectSchemaOf(body.schema, about?.notes ?? {})
  if (!body.batch) return one
  const { field, most } = body.batch
  return {
    type: 'object',
    properties: { [field]: { type: 'array', maxItems: most, items: one } },
    required: [field],
  }
}

function operation(route: Route) {
  const { access, about } = route
  if (!about) throw new Error(`${route.method} ${route.path} says nothing about itself`)
  const schema = bodySchema(route)
  const scope = access === 'public' ? null : access.scope
  const sessions = access !== 'public' && access.kinds.includes('session')
  return {
    operationId: about.id,
    tags: [about.group],
    summary: about.summary,
    description: (about.description ?? []).join('\n\n'),
    security:
      access === 'public' ? [] : [{ apiKey: scope ? [scope] : [] }, ...(sessions ? [{ session: [] }] : [])],
    parameters: parameters(route),
    ...(schema
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema, example: about.example } },
          },
        }
      : {}),
    responses: Object.fromEntries([...answers(route), ...failures(route)]),
  }
}

const bearer = (description: string) => ({ type: 'http', scheme: 'bearer', description })

/** The path as OpenAPI writes it. */
export const templated = (path: string): string => path.replace(/:(\w+)/g, '{$1}')

/** The whole document. */
export function openApi(routes: readonly Route[]) {
  const paths: Record<string, Record<string, ReturnType<typeof operation>>> = {}
  for (const route of routes) {
    const path = templated(route.path)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Heliograph',
      version: '1',
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Contacts, transactional email and WhatsApp templates. `null` for an optional field is as good as leaving it out; fields that are not named here are ignored.',
    },
    servers: [{ url: '/' }],
    tags: ['Emails', 'WhatsApp', 'Contacts', 'Plans'].map((name) => ({ name })),
    paths,
    components: {
      schemas: COMPONENTS,
      securitySchemes: {
        apiKey: bearer('An API key, such as hg_…'),
        session: bearer('A session token, such as hgs_…'),
      },
    },
  }
}
