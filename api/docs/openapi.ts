/**
 * Builds the OpenAPI 3.1 document from the routes. Requests come from the schemas that validate them,
 * responses from components.ts, and texts from each route's `about`. Pure. It contains every route under /v1.
 */
import type { Code } from '../../db/errors.ts'
import { VERSION } from '../../db/process/version.ts'
import { STATUS } from '../http/errors.ts'
import type { Described, Group } from './about.ts'
import { EXPLAINED } from './codes.ts'
import { COMPONENTS, type Component } from './components.ts'
import { buildExample, EXAMPLE_ID } from './example.ts'
import { buildObjectSchema, type JsonSchema, schemaFields } from './json-schema.ts'
import { fillExample, type Shown } from './shown.ts'
import { describedWebhooks, WEBHOOK_SCHEMAS } from './webhooks.ts'

/** The groups of operations, in the order of the page. */
export const GROUPS: Readonly<Record<Group, string>> = {
  Emails: 'Transactional email, one at a time or in batches of 100.',
  WhatsApp: 'Messages from templates approved by Meta.',
  Contacts: 'The recipients of a team, by email address, with topics and properties.',
  Broadcasts:
    'One template sent to all contacts of the topics you choose. Create a draft, then start, pause, resume or cancel it.',
  Plans: 'The public catalog of plans.',
}

/** Returns all errors of a route: its own, and those of every route of its kind. */
export function listRefusals(route: Described): Code[] {
  const { access, body, query, path, about, raw } = route
  const inherent: (Code | false | undefined)[] = [
    (body !== undefined || query !== undefined || path.includes(':')) && 'bad_request',
    access !== 'public' && 'unauthorized',
    access !== 'public' && 'insufficient_scope',
    raw && 'bad_request',
    (body !== undefined || raw) && 'payload_too_large',
    (body !== undefined || raw) && 'unsupported_media_type',
    'internal_error',
    'unavailable',
  ]
  return [...new Set([...about.refusals, ...inherent.filter((code) => code !== false && code !== undefined)])]
}

/** Webhooks have no routes, so their operations are separate. */
const WEBHOOKS_TAG = {
  name: 'Webhooks',
  description: 'Events sent to a team’s own server, in the format of Standard Webhooks.',
}

const reference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

const json = (name: Component) => ({
  'application/json': { schema: reference(name), example: buildExample(COMPONENTS[name], COMPONENTS) },
})

const HEADERS = {
  'X-Request-Id': {
    description:
      'The ID of this request, which the service also logs and stores. If you send a valid ID, it is used.',
    schema: { type: 'string', examples: ['0b6f3f4e-6c1d-4a55-9a58-5f0e2f1c7a10'] },
  },
}

const RATE = {
  'RateLimit-Policy': {
    description:
      'The send rate, and the quota of the period if there is one. `q` sends are allowed in `w` seconds (draft-ietf-httpapi-ratelimit-headers-11).',
    schema: { type: 'string', examples: ['"sends";q=50;w=5, "emails";q=50000;w=2678400'] },
  },
  RateLimit: {
    description:
      '`r` sends are left, and all are available again in `t` seconds. Only present if the send was counted, or a limit was reached.',
    schema: { type: 'string', examples: ['"sends";r=49;t=1, "emails";r=12345;t=861200'] },
  },
}

const RETRY_AFTER = {
  'Retry-After': {
    description: 'Seconds to wait before the next attempt.',
    schema: { type: 'integer', examples: [1] },
  },
}

/** Returns the headers of a response by name, with descriptions. */
export const listHeaders = (
  { about }: Pick<Described, 'about'>,
  status: number,
): Readonly<Record<string, { description: string; schema: JsonSchema }>> => ({
  ...HEADERS,
  ...(status === 429 || status === 503 ? RETRY_AFTER : {}),
  ...(status === 402 || (about.rated && (status < 300 || status === 429)) ? RATE : {}),
})

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Same as `idempotency_key` in the body. If both are set, they must match.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*$' },
}

/** Returns the error responses of a route, by status. */
function failures(route: Described) {
  const byStatus = Map.groupBy(listRefusals(route), (code) => STATUS[code])
  return [...byStatus].map(([status, codes]) => [
    String(status),
    {
      description: codes.map((code) => `\`${code}\`: ${EXPLAINED[code].meaning}`).join('\n\n'),
      headers: listHeaders(route, status),
      content: json('Failure'),
    },
  ])
}

const answers = (route: Described) =>
  Object.entries(route.about.answers).map(([status, { when, body }]) => [
    status,
    {
      description: when,
      headers: listHeaders(route, Number(status)),
      ...(body ? { content: json(body) } : {}),
    },
  ])

function parameters({ path, query, about }: Described) {
  const { notes = {}, takesIdempotencyKey } = about
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: notes[name] ?? '',
    schema: { type: 'string' },
  }))
  const inQuery = (query ? schemaFields(query.schema, notes) : []).map(({ name, required, schema }) => ({
    name,
    in: 'query',
    required,
    schema,
  }))
  return [...inPath, ...inQuery, ...(takesIdempotencyKey ? [IDEMPOTENCY_KEY] : [])]
}

/** Returns the schemas of a route's body by name: one for an object, and one for a batch if it accepts batches. */
function bodySchemas({ body, about }: Described): Record<string, JsonSchema> {
  if (!body) return {}
  const { takes, notes = {}, id } = about
  if (takes === undefined) throw new Error(`the body of ${id} has no name`)
  const one = { [takes]: buildObjectSchema(body.schema, notes) }
  if (!body.batch) return one
  const { field, most } = body.batch
  const items = { type: 'array', maxItems: most, items: reference(takes) }
  return { ...one, [`${takes}Batch`]: { type: 'object', properties: { [field]: items }, required: [field] } }
}

export function whoMayCall({ access }: Described): string {
  if (access === 'public') return 'No credentials needed.'
  const who = access.kinds.includes('session') ? 'an API key or a session token' : 'an API key'
  if (access.session_scope)
    return 'Needs an API key with any scope, or a session token of a member who can change contacts.'
  return access.scope ? `Needs ${who} with the scope \`${access.scope}\`.` : `Needs ${who} with any scope.`
}

function operation(route: Described, shown: Shown) {
  const { access, about } = route
  // The last one is the complete body.
  const body = Object.keys(bodySchemas(route)).at(-1)
  const sessions = access !== 'public' && access.kinds.includes('session')
  return {
    operationId: about.id,
    tags: [about.group],
    summary: about.summary,
    description: [...(about.description ?? []), whoMayCall(route)].join('\n\n'),
    security: access === 'public' ? [] : [{ apiKey: [] }, ...(sessions ? [{ session: [] }] : [])],
    parameters: parameters(route),
    ...(body
      ? {
          requestBody: {
            required: !route.body?.optional,
            content: {
              'application/json': {
                schema: reference(body),
                example: fillExample(about.example, shown, () => EXAMPLE_ID),
              },
            },
          },
        }
      : {}),
    ...(route.raw ? { requestBody: RAW } : {}),
    responses: Object.fromEntries([...answers(route), ...failures(route)]),
  }
}

const RAW = {
  required: true,
  description: 'The bytes of the file, with its Content-Type.',
  content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
}

const bearer = (description: string) => ({ type: 'http', scheme: 'bearer', description })

/** Builds the document. @param home the service's URL. If it is null, URLs are relative to the document */
export function openApi(
  routes: readonly Described[],
  home: string | null = null,
  shown: Shown = { home: '', domain: 'example.com', now: new Date() },
) {
  const paths: Record<string, Record<string, ReturnType<typeof operation>>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, shown) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Heliograph',
      version: VERSION,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The operator of this service' },
      description:
        'Contacts, transactional email and WhatsApp templates. `null` for an optional field is the same as leaving it out. Unknown fields are ignored.',
    },
    servers: [{ url: home?.replace(/\/$/, '') ?? '/' }],
    tags: [...Object.entries(GROUPS).map(([name, description]) => ({ name, description })), WEBHOOKS_TAG],
    paths,
    webhooks: describedWebhooks(),
    components: {
      schemas: { ...COMPONENTS, ...WEBHOOK_SCHEMAS, ...Object.assign({}, ...routes.map(bodySchemas)) },
      securitySchemes: {
        apiKey: bearer('An API key, such as hg_…'),
        session: bearer('A session token, such as hgs_…'),
      },
    },
  }
}
