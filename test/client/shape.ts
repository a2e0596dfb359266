/**
 * The API's description without its words and examples: what a generated client is made of. `api.d.ts` beside this file
 * was made from it:
 *   node test/client/shape.ts > shape.json
 *   npx -y -p typescript@5.9.3 -p openapi-typescript@7.13.0 openapi-typescript shape.json -o test/client/api.d.ts
 *   npx biome check --write test/client
 * and its first line holds the digest that this prints to stderr.
 */
import { createHash } from 'node:crypto'
import { openApi } from '../../api/docs/openapi.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'

const WORDS = ['description', 'summary', 'example', 'examples']

/** Whether a member is words: a field of that name would be a schema, so an object. */
const isWords = (name: string, value: unknown): boolean =>
  WORDS.includes(name) && (typeof value === 'string' || name.startsWith('example'))

/** The description as JSON. OpenAPI asks for a description of each answer: it is empty here. */
export const shape = (): string =>
  JSON.stringify(openApi(V1_ROUTES), (name, value: unknown) => {
    if (name === 'description' && typeof value === 'string') return ''
    return isWords(name, value) ? undefined : value
  })

/** What tells one shape from another. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

if (import.meta.main) {
  process.stdout.write(shape())
  process.stderr.write(`// made from ${digestOf(shape())}\n`)
}
