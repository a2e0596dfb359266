/**
 * Converts the yup schemas that validate the API's input to JSON schemas. Each building block in
 * db/validation/fields.ts describes itself in its `meta`. This module adds lists, enums and required fields.
 */
import type { AnyObject, ObjectSchema, SchemaDescription } from 'yup'
import type { Described, EitherOf } from '../../db/validation/fields.ts'

export type JsonSchema = Readonly<Record<string, unknown>> & {
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
}

type Description = SchemaDescription & { innerType?: Description; fields?: Record<string, Description> }

/** The keywords of JSON Schema for the limits that yup tests. */
const LENGTH_KEYWORDS: Record<string, string> = { min: 'minItems', max: 'maxItems' }

function schemaOfField(field: Description): JsonSchema {
  const known = (field.meta as Partial<Described> | undefined)?.jsonSchema
  if (known) return field.oneOf.length > 0 ? { ...known, enum: field.oneOf } : known
  if (field.type !== 'array' || !field.innerType)
    throw new Error(`a field of type ${field.type} has no jsonSchema in its meta`)
  const bounds = field.tests.flatMap(({ name, params }) => {
    const bound = LENGTH_KEYWORDS[name ?? '']
    return bound === undefined ? [] : [[bound, params?.[name ?? '']]]
  })
  return { type: 'array', items: schemaOfField(field.innerType), ...Object.fromEntries(bounds) }
}

/** True if a field is only declared so that it can be rejected. */
const isRefused = (schema: JsonSchema): boolean => 'not' in schema

/** Returns the fields that a schema accepts, with their notes as descriptions. */
export function schemaFields(
  schema: Pick<ObjectSchema<AnyObject>, 'describe'>,
  notes: Readonly<Record<string, string>>,
): { name: string; required: boolean; schema: JsonSchema }[] {
  const { fields } = schema.describe() as Description
  return Object.entries(fields ?? {}).flatMap(([name, field]) => {
    const own = schemaOfField(field)
    if (isRefused(own)) return []
    const description = [notes[name], own.description].filter((text) => text !== undefined).join(' ')
    const said = description === '' ? own : { ...own, description }
    return [{ name, required: !field.optional, schema: said }]
  })
}

export function buildObjectSchema(
  schema: Pick<ObjectSchema<AnyObject>, 'describe'>,
  notes: Readonly<Record<string, string>>,
): JsonSchema {
  const fields = schemaFields(schema, notes)
  const required = fields.filter((field) => field.required).map(({ name }) => name)
  const { eitherOf } = ((schema.describe() as Description).meta ?? {}) as Partial<EitherOf>
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    ...(required.length > 0 ? { required } : {}),
    ...(eitherOf ? { anyOf: eitherOf.map((name) => ({ title: `with ${name}`, required: [name] })) } : {}),
  }
}
