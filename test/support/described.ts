/**
 * Checks the API's responses against its own description. The first undescribed response (a status, a code, a
 * shape) fails its test.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { COMPONENTS, type Component } from '../../api/docs/components.ts'
import { listRefusals } from '../../api/docs/openapi.ts'
import { WEBHOOK_SCHEMAS, webhookReference } from '../../api/docs/webhooks.ts'
import type { V1Route } from '../../api/v1/deps.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import type { Code } from '../../db/errors.ts'

// Without validation against the meta-schema, because nearly every test file loads this and would compile it.
// docs.test.ts validates `components`.
const ajv = new Ajv2020({ strict: false, validateSchema: false })
// The package is CommonJS, so its default export is the module itself.
;(formats as unknown as { default: (ajv: Ajv2020) => void }).default(ajv)
ajv.addSchema({ $id: 'api', components: { schemas: { ...COMPONENTS, ...WEBHOOK_SCHEMAS } } })

const check = (name: Component, body: unknown, at: string): void => {
  const validate = ajv.getSchema(`api#/components/schemas/${name}`)
  if (!validate) throw new Error(`there is no schema ${name}`)
  if (!validate(body)) throw new Error(`${at} is no ${name}: ${ajv.errorsText(validate.errors)}`)
}

/**
 * Asserts that a value matches a schema of the description. @param reference such as
 * `#/components/schemas/Email`. @throws Error
 */
export const assertIs = (reference: string, body: unknown): void =>
  check(reference.split('/').at(-1) as Component, body, 'the value')

/** @throws Error if the description has no such webhook. */
export function assertWebhook(body: unknown): void {
  const { type } = body as { type: string }
  const known = webhookReference(type)
  if (known === undefined) throw new Error(`${type} is not described`)
  check(known.split('/').at(-1) as Component, body, `webhook ${type}`)
}

const patterns = V1_ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace(/:\w+/g, '[^/]+')}$`),
}))

/** Prefers a literal route. /v1/contacts/bulk isn't a contact's path. */
function routeOf(method: string, path: string): V1Route | undefined {
  const known = patterns.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route)
  const literal = known.filter((route) => route.path === path)
  return (literal.length > 0 ? literal : known).find((route) => route.method === method)
}

/** @throws Error if the description has no such response. */
export function assertDescribed(
  method: string,
  path: string,
  { status, headers, body }: { status: number; headers: Headers; body: unknown },
): void {
  const [bare = ''] = path.split('?')
  if (!bare.startsWith('/v1')) return
  const at = `${method} ${bare}: ${status}`
  const route = routeOf(method, bare)
  const answer = route?.about?.answers[status]
  if (answer) {
    if (answer.body) check(answer.body, body, at)
    else if (body !== '') throw new Error(`${at} has a body`)
    return
  }
  check('Failure', body, at)
  // Retry-After only belongs to errors that a retry can solve.
  if (status !== 429 && status < 500 && headers.has('retry-after')) throw new Error(`${at} has Retry-After`)
  const { code } = (body as { error: { code: Code } }).error
  if (route && !listRefusals(route).includes(code)) throw new Error(`${at} ${code} is not described`)
}
