/**
 * Validates JSON objects from outside against yup schemas. Never coerces types. Null means absent, and unknown fields
 * are ignored (DECISIONS: Input). Workers validate items of bulk calls, so this module can't be in api/.
 */
import { type AnyObject, mixed, number, type ObjectSchema, string, ValidationError } from 'yup'
import { type FieldError, REQUIRED, RequestError } from '../errors.ts'
import { LONGEST_NAME, parseAddress, parseMailbox } from './address.ts'
import { EXPIRES_IN, exampleMoment, isMoment, type When } from './moments.ts'
import { codePoints, isPlainMap, isUuid, memberPath, textFault, utf8Bytes } from './strings.ts'
import { isSurelyValid } from './valid.ts'

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the objects in a list, or none if it isn't a list. */
export const objectsIn = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : []

const under = (path: string, member: string): string => (path === '' ? member : `${path}.${member}`)

/**
 * In a schema's `meta`: at least one of these fields must be present and not empty. `insufficient` maps fields that
 * don't count as one of them to the error message, without the field's name.
 */
export type EitherOf = { eitherOf: readonly string[]; insufficient?: Readonly<Record<string, string>> }

/** Returns errors for missing required fields, and for a field that was given instead of them. */
function missingFields<T extends AnyObject>(schema: ObjectSchema<T>, fields: Record<string, unknown>) {
  const names = Object.entries(schema.fields).flatMap(([name, field]) =>
    fields[name] === undefined && 'spec' in field && !field.spec.optional ? [name] : [],
  )
  const { eitherOf = [], insufficient = {} } = (schema.spec.meta ?? {}) as Partial<EitherOf>
  const neither = eitherOf.length > 0 && eitherOf.every((name) => !fields[name])
  const missing = [...names, ...(neither ? [eitherOf.join(' or ')] : [])]
  const given = Object.entries(insufficient).find(([name]) => neither && fields[name])
  return [
    ...missing.map((field) => ({ field, problem: REQUIRED })),
    ...(given ? [{ field: given[0], problem: given[1] }] : []),
  ]
}

/** Cached subsets of schemas. Absent optional fields need no validation. */
const parts = new WeakMap<object, Map<string, unknown>>()
const MAX_PARTS = 200

function partOf<T extends AnyObject>(schema: ObjectSchema<T>, names: readonly string[]) {
  const known = parts.get(schema) ?? new Map<string, unknown>()
  const key = names.join()
  const part = (known.get(key) ?? schema.pick(names as (keyof T)[])) as ObjectSchema<AnyObject>
  if (known.size < MAX_PARTS) parts.set(schema, known.set(key, part))
  return part
}

/**
 * Validates the fields of `value` that the schema has, and returns only them.
 * @param path the path of `value` in the body, or '' for the body itself. @throws RequestError bad_request
 */
export function parse<T extends AnyObject>(schema: ObjectSchema<T>, value: unknown, path = ''): T {
  if (!isObject(value))
    throw new RequestError('bad_request', { field: path || 'The request body', problem: 'must be an object' })
  const known = Object.keys(schema.fields).filter(
    (field) => Object.hasOwn(value, field) && value[field] !== null,
  )
  const fields = Object.fromEntries(known.map((field) => [field, value[field]]))
  const reject = (errors: readonly FieldError[]) =>
    new RequestError(
      'bad_request',
      errors.map(({ field, problem }) => ({ field: under(path, field), problem })),
    )
  const fault = textFault(fields)
  if (fault) throw reject([fault])
  const missing = missingFields(schema, fields)
  if (missing.length > 0) throw reject(missing)
  try {
    const part = partOf(schema, known)
    if (!isSurelyValid(part, fields)) part.validateSync(fields, { strict: true })
    return fields as T
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error
    throw reject([{ field: error.path ?? '', problem: error.message }])
  }
}

/** In a field's `meta`: its JSON schema for the API description (api/docs/json-schema.ts). */
export type Described = { jsonSchema: Readonly<Record<string, unknown>> }

const described = (jsonSchema: Described['jsonSchema']): Described => ({ jsonSchema })

// Building blocks of schemas. Their messages are problems, without the name of the field.

/** A string of `min` to `max` code points. */
export const text = ({ min = 0, max = Number.POSITIVE_INFINITY } = {}) =>
  string()
    .meta(
      described({
        type: 'string',
        ...(min > 0 ? { minLength: min } : {}),
        ...(Number.isFinite(max) ? { maxLength: max } : {}),
      }),
    )
    .typeError('must be a string')
    .test('length', `must have ${min} to ${max} characters`, (value) => {
      if (value === undefined) return true
      const length = codePoints(value)
      return length >= min && length <= max
    })

/** In code points. */
export const LONGEST_SUBJECT = 998

export const subjectLine = () =>
  text({ min: 1, max: LONGEST_SUBJECT }).matches(/^[^\r\n]*$/, 'must be a single line')

/** A string of up to `max` bytes in UTF-8. */
export const bytes = (max: number) =>
  string()
    .meta(described({ type: 'string', description: `At most ${max / 1024 / 1024} MiB in UTF-8.` }))
    .typeError('must be a string')
    .test('bytes', `must be at most ${max} bytes`, (value) => value === undefined || utf8Bytes(value) <= max)

/** A UUID of any version, in either case. */
export const uuid = () =>
  string()
    .meta(described({ type: 'string', format: 'uuid' }))
    .typeError('must be a UUID')
    .test('uuid', 'must be a UUID', (value) => value === undefined || isUuid(value))

/** A client's idempotency key for a send (DECISIONS: Sizes). */
export const idempotencyKey = () =>
  text({ min: 1, max: 255 })
    .meta(described({ type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*$' }))
    .matches(/^[\x20-\x7e]*$/, 'must be printable ASCII')

/** An unsupported field of other services. Ignoring it would change the message (DECISIONS: Unknown fields). */
export const unsupported = (words = 'is not supported', isAbsent = (_value: unknown): boolean => false) =>
  mixed()
    .meta(described({ not: {} }))
    .test('unsupported', words, (value) => value === undefined || isAbsent(value))

/** Other services' spellings of our fields. Ignoring them would change the call's effect. */
export const otherSpellings = <T extends Readonly<Record<string, string>>>(ours: T) =>
  Object.fromEntries(
    Object.entries(ours).map(([theirs, name]) => [
      theirs,
      unsupported(`is called ${name} here. Use that name`),
    ]),
  ) as { [theirs in keyof T]: ReturnType<typeof unsupported> }

/** Like `unsupported`, but accepts an empty list. */
const unsupportedList = () => unsupported(undefined, (value) => Array.isArray(value) && value.length === 0)

export const noCopies = () => ({ cc: unsupportedList(), bcc: unsupportedList() })

export const noFiles = () => ({ attachments: unsupportedList() })

/** @param clock for the example, which is a future time. */
const aTime = (clock: () => Date) => () =>
  `must be an RFC 3339 time with a time zone, such as ${exampleMoment(clock())}`

/** An RFC 3339 time with a time zone. */
export const time = (clock: () => Date) =>
  text()
    .meta(described({ type: 'string', format: 'date-time' }))
    .typeError(aTime(clock))
    .test('time', aTime(clock), (value) => value === undefined || isMoment(value))

const SECONDS = `must be a whole number of seconds from ${EXPIRES_IN.min} to ${EXPIRES_IN.max}`

/** The fields that schedule a send and let it expire. Other services' names for them are rejected. */
export const sendTimes = (clock: () => Date) => ({
  scheduled_at: time(clock),
  expires_in: number()
    .meta(described({ type: 'integer', minimum: EXPIRES_IN.min, maximum: EXPIRES_IN.max }))
    .typeError(SECONDS)
    .integer(SECONDS)
    .min(EXPIRES_IN.min, SECONDS)
    .max(EXPIRES_IN.max, SECONDS),
  send_at: unsupported('is called scheduled_at here. Use that name for the time to send at'),
  ...otherSpellings({ scheduledAt: 'scheduled_at', sendAt: 'scheduled_at', templateId: 'template_id' }),
})

/** The schedule of a send, or {} without one. */
export const whenOf = (send: {
  scheduled_at?: string | undefined
  expires_in?: number | undefined
}): { when?: When } =>
  send.scheduled_at === undefined && send.expires_in === undefined
    ? {}
    : { when: { scheduled_at: send.scheduled_at ?? null, expires_in: send.expires_in ?? null } }

export const address = () =>
  string()
    .meta(described({ type: 'string', maxLength: 254, examples: ['someone@example.org'] }))
    .typeError('must be a string')
    .test(
      'address',
      'must be an email address',
      (value) => value === undefined || parseAddress(value) !== null,
    )

/** One email address, with or without a name. */
export const mailbox = () =>
  string()
    .meta(described({ type: 'string', examples: ['Someone <someone@example.org>'] }))
    .typeError('must be a string')
    .test('mailbox', 'must be an email address', (value) => {
      if (value === undefined) return true
      const parsed = parseMailbox(value)
      return parsed !== null && codePoints(parsed.name ?? '') <= LONGEST_NAME
    })

const MAX_IDS = 1_000

/** A list of UUIDs. A single test checks all of them, because yup is slow for each item. */
export const uuids = () =>
  mixed<string[]>()
    .meta(described({ type: 'array', maxItems: MAX_IDS, items: { type: 'string', format: 'uuid' } }))
    .test('uuids', 'must be an array of UUIDs', (value, { path, createError }) => {
      if (value === undefined) return true
      if (!Array.isArray(value)) return false
      if (value.length > MAX_IDS) return createError({ message: `must have at most ${MAX_IDS} items` })
      const odd = value.findIndex((id) => typeof id !== 'string' || !isUuid(id))
      return odd < 0 || createError({ path: `${path}[${odd}]`, message: 'must be a UUID' })
    })

/** A map of strings with a limit on its keys. Every key is allowed, even `__proto__`. */
export const stringMap = (most = Number.POSITIVE_INFINITY) =>
  mixed<Record<string, string>>()
    .meta(
      described({
        type: 'object',
        additionalProperties: { type: 'string' },
        ...(Number.isFinite(most) ? { maxProperties: most } : {}),
      }),
    )
    .test(
      'most',
      `must have at most ${most} keys`,
      (value) => !isObject(value) || Object.keys(value).length <= most,
    )
    .test('map', 'must be an object whose values are strings', (value, { path, createError }) => {
      if (value === undefined || isPlainMap(value)) return true
      const [key] = isObject(value)
        ? (Object.entries(value).find(([, text]) => typeof text !== 'string') ?? [])
        : []
      return key === undefined
        ? false
        : createError({ path: memberPath(path, key), message: 'must be a string' })
    })
