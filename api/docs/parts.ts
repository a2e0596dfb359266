/** The building blocks for the schemas of responses and webhooks. Pure. */
import type { JsonSchema } from './json-schema.ts'

export const text = { type: 'string' }
export const uuid = { type: 'string', format: 'uuid' }
export const time = { type: 'string', format: 'date-time' }
export const count = { type: 'integer', minimum: 0 }
export const oneOf = (values: readonly string[]) => ({ type: 'string', enum: values })
export const orNull = ({ type, ...rest }: { type: string }) => ({ type: [type, 'null'], ...rest })
export const list = (items: JsonSchema) => ({ type: 'array', items })
export const map = { type: 'object', additionalProperties: text }

/** Adds a description and an optional example to a schema. */
export const said = (schema: JsonSchema, description: string, example?: unknown): JsonSchema => ({
  ...schema,
  description,
  ...(example === undefined ? {} : { examples: [example] }),
})

/** A field that can be null, as in its example. */
export const nullable = (schema: { type: string }, description: string): JsonSchema =>
  said(orNull(schema), description, null)

/** An object with these fields and no others. All are required except the optional ones. */
export const record = (fields: Record<string, JsonSchema>, optional: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties: fields,
  required: Object.keys(fields).filter((name) => !optional.includes(name)),
  additionalProperties: false,
})
