/**
 * Returns an example for a JSON schema: the schema's first example, otherwise a value of its type. Pure. The
 * result is valid if the schema's examples are.
 */
import type { JsonSchema } from './json-schema.ts'

export const EXAMPLE_ID = '01920000-0000-7000-8000-000000000000'

type Schemas = Readonly<Record<string, JsonSchema>>

const FORMATS: Record<string, string> = { uuid: EXAMPLE_ID, 'date-time': '2026-03-01T09:30:00.000Z' }

/** @param schemas the targets of references, by name */
export function buildExample(schema: JsonSchema, schemas: Schemas): unknown {
  const { $ref, examples, properties, items, format, type } = schema
  if (typeof $ref === 'string') return buildExample(schemas[$ref.split('/').at(-1) ?? ''] ?? {}, schemas)
  if (Array.isArray(examples)) return examples[0]
  if (typeof format === 'string') return FORMATS[format]
  if (items) return [buildExample(items, schemas)]
  if (!properties) throw new Error(`a field of type ${type} has no example`)
  return Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, buildExample(field, schemas)]),
  )
}
