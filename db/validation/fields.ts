/**
 * Validates JSON objects from outside, field by field, by yup schema, or `bad_request`.
 * Promises: types are never coerced, null means absent, unknown fields are left alone, and the message names the
 * field with its path (DECISIONS: Input). It is here and not in api/ because workers validate items of bulk calls.
 * Must not know any resource.
 */
import { type AnyObject, mixed, number, type ObjectSchema, string, ValidationError } from 'yup'
import { type FieldError, REQUIRED, RequestError } from '../errors.ts'
import { LONGEST_NAME, parseAddress, parseMailbox } from './address.ts'
import { EXPIRES_IN, exampleMoment, isMoment, type When } from './moments.ts'
import { codePoints, isPlainMap, isUuid, memberPath, textFault, utf8Bytes } from './strings.ts'
import { isSurelyValid } from './valid.ts'

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const under = (path: string, member: string): string => (path === '' ? member : `${path}.${member}`)

/**
 * Of a schema's `meta`: one of these fields has to be there, and not empty. `insufficient`: what to say to one who gave
 * another field for them, without its name.
 */
export type EitherOf = { eitherOf: readonly string[]; insufficient?: Readonly<Record<string, string>> }

/** The fields that must be there and are not, and the one that was given instead of them. */
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

/** The schema of some fields of another one, made once: what is absent and optional needs no validation. */
const parts = new WeakMap<object, Map<string, unknown>>()
const MAX_PARTS = 200

function partOf<T extends AnyObject>(
  schema: ObjectSchema<T>,
  names: readonly string[],
): ObjectSchema<AnyObject> {
  const known = parts.get(schema) ?? new Map<string, unknown>()
  const key = names.join()
  const part = (known.get(key) ?? schema.pick(names as (keyof T)[])) as ObjectSchema<AnyObject>
  if (known.size < MAX_PARTS) parts.set(schema, known.set(key, part))
  return part
}

/**
 * The fields of `value` that the schema knows, validated.
 * @param path where the value lies in the body, '' for the body itself.
 * @throws RequestError bad_request
 */
export function parse<T extends AnyObject>(schema: ObjectSchema<T>, value: unknown, path = ''): T {
  if (!isObject(value))
    throw new RequestError('bad_request', { field: path || 'the body', problem: 'must be an object' })
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

/** What a building block says of itself to the API's description (api/docs/json-schema.ts), as a JSON schema. */
export type Described = { jsonSchema: Readonly<Record<string, unknown>> }

const described = (jsonSchema: Described['jsonSchema']): Described => ({ jsonSchema })

// The building blocks of schemas. Their messages are problems, without the field.

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

/** Of a subject, in code points. */
export const LONGEST_SUBJECT = 998

/** The subject of an email: one line. */
export const subjectLine = () =>
  text({ min: 1, max: LONGEST_SUBJECT }).matches(/^[^\r\n]*$/, 'must be a single line')

/** A string of at most `max` bytes in UTF-8. */
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

/** A client's own key for a send (DECISIONS: Sizes). */
export const idempotencyKey = () =>
  text({ min: 1, max: 255 })
    .meta(described({ type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]*$' }))
    .matches(/^[\x20-\x7e]*$/, 'must be printable ASCII')

/** What a peer takes and we do not: refused, for a send without it would be another one (DECISIONS: Unknown fields). */
export const unsupported = (words = 'is not supported', isAbsent = (_value: unknown): boolean => false) =>
  mixed()
    .meta(described({ not: {} }))
    .test('unsupported', words, (value) => value === undefined || isAbsent(value))

/** Our fields by other services' spellings, which are rejected: without the field it would be another call. */
export const otherSpellings = <T extends Readonly<Record<string, string>>>(ours: T) =>
  Object.fromEntries(
    Object.entries(ours).map(([theirs, name]) => [
      theirs,
      unsupported(`is called ${name} here. Use that name`),
    ]),
  ) as { [theirs in keyof T]: ReturnType<typeof unsupported> }

/** As `unsupported`, for a list: an empty one asks for nothing. */
const unsupportedList = () => unsupported(undefined, (value) => Array.isArray(value) && value.length === 0)

/** Copies of a message to others. */
export const noCopies = () => ({ cc: unsupportedList(), bcc: unsupportedList() })

/** Files that go with a message. */
export const noFiles = () => ({ attachments: unsupportedList() })

/** @param clock for an example of a time that is to come. */
const aTime = (clock: () => Date) => () =>
  `must be an RFC 3339 time with a time zone, such as ${exampleMoment(clock())}`

/** A time with its zone (RFC 3339). */
export const time = (clock: () => Date) =>
  text()
    .meta(described({ type: 'string', format: 'date-time' }))
    .typeError(aTime(clock))
    .test('time', aTime(clock), (value) => value === undefined || isMoment(value))

const SECONDS = `must be a whole number of seconds from ${EXPIRES_IN.min} to ${EXPIRES_IN.max}`

/** When a send goes, and until when. Peers call the time by either name. */
export const sendTimes = (clock: () => Date) => ({
  scheduled_at: time(clock),
  expires_in: number()
    .meta(described({ type: 'integer', minimum: EXPIRES_IN.min, maximum: EXPIRES_IN.max }))
    .typeError(SECONDS)
    .integer(SECONDS)
    .min(EXPIRES_IN.min, SECONDS)
    .max(EXPIRES_IN.max, SECONDS),
  send_at: unsupported('is not a field of a send. Use scheduled_at for the time to send at'),
  ...otherSpellings({ scheduledAt: 'scheduled_at', sendAt: 'scheduled_at', templateId: 'template_id' }),
})

/** What a send says of its time; nothing when it says nothing. */
export const whenOf = (send: {
  scheduled_at?: string | undefined
  expires_in?: number | undefined
}): { when?: When } =>
  send.scheduled_at === undefined && send.expires_in === undefined
    ? {}
    : { when: { scheduled_at: send.scheduled_at ?? null, expires_in: send.expires_in ?? null } }

/** One bare email address. */
export const address = () =>
  string()
    .meta(described({ type: 'string', maxLength: 254, examples: ['someone@example.org'] }))
    .typeError('must be a string')
    .test(
      'address',
      'must be an email address',
      (value) => value === undefined || parseAddress(value) !== null,
    )

/** One email address, bare or behind a name. */
export const mailbox = () =>
  string()
    .meta(described({ type: 'string', examples: ['Someone <someone@example.org>'] }))
    .typeError('must be a string')
    .test('mailbox', 'must be an email address', (value) => {
      if (value === undefined) return true
      const parsed = parseMailbox(value)
      return parsed !== null && codePoints(parsed.name ?? '') <= LONGEST_NAME
    })

/** How many ids a list may hold. */
const MAX_IDS = 1_000

/** A list of UUIDs. One test for all of them: yup takes its time with each. */
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

/** A map of string to string, with a limit on its keys; any key is an ordinary one, `__proto__` too. */
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
