/**
 * The fields of a broadcast as a yup schema, for the API and for CLI files. Errors have the same order as those of a
 * send. Checks a subject's variables and each condition, and looks nothing up.
 */
import { array, type InferType, mixed, number, object } from 'yup'
import { type FieldError, REQUIRED, RequestError } from '../../errors.ts'
import { formatMailbox } from '../../validation/address.ts'
import {
  type Described,
  idempotencyKey,
  isObject,
  noCopies,
  noFiles,
  otherSpellings,
  parse,
  stringMap,
  subjectLine,
  text,
  time,
  unsupported,
  uuid,
  uuids,
} from '../../validation/fields.ts'
import { headersFault, NONE_RESERVED, type Reserved, reservedFault } from '../../validation/headers.ts'
import { pick } from '../../validation/keys.ts'
import { compileTemplate, TemplateFault } from '../../validation/slots.ts'
import { codePoints, MAX_VARIABLES, utf8Bytes } from '../../validation/strings.ts'
import { parseReplyTo, parseSender } from '../emails/item.ts'
import type { BroadcastFields, Condition } from './broadcasts.sql.ts'
import { OPERATORS } from './operators.ts'

const MAX_TOPICS = 20
export const MAX_CONDITIONS = 10
const MAX_VALUES = 100
/** Length of a name, in code points. */
export const LONGEST_BROADCAST_NAME = 255
const MAX_RATE = 1_000_000
const NO_RATE = `must be a whole number from 1 to ${MAX_RATE}`
const MAX_CONDITION_LENGTH = { property: 128, value: 2_048 }

/** Maximum size of `variables` and `where` as JSON, each. A list page contains those of 100 broadcasts. */
export const MAX_JSON_BYTES = 256 * 1024

/** True if a map or a list is small enough for a list page. */
const isSmall = (value: unknown): boolean =>
  value === undefined || utf8Bytes(JSON.stringify(value)) <= MAX_JSON_BYTES
const TOO_LARGE = `must be at most ${MAX_JSON_BYTES} bytes of JSON`

const isText = (value: unknown, max: number): value is string =>
  typeof value === 'string' && codePoints(value) <= max

/** Returns the error of a condition, or null. @param path its path in the request */
function conditionFault(given: unknown, path: string): FieldError | null {
  const fault = (part: string, problem: string) => ({ field: `${path}.${part}`, problem })
  if (!isObject(given)) return { field: path, problem: 'must be an object with property, op and value' }
  const { property, op, value } = given
  if (!isText(property, MAX_CONDITION_LENGTH.property) || property === '')
    return fault('property', `must be a string of 1 to ${MAX_CONDITION_LENGTH.property} characters`)
  if (!OPERATORS.some((each) => each === op)) return fault('op', `must be one of ${OPERATORS.join(', ')}`)
  if (op === 'exists' || op === 'missing')
    return value === undefined || value === null
      ? null
      : fault('value', `must be left out. The operator ${op} has no value`)
  if (op === 'in') {
    const fits =
      Array.isArray(value) &&
      value.length > 0 &&
      value.length <= MAX_VALUES &&
      value.every((each) => isText(each, MAX_CONDITION_LENGTH.value))
    return fits
      ? null
      : fault(
          'value',
          `must be an array of 1 to ${MAX_VALUES} strings of at most ${MAX_CONDITION_LENGTH.value} characters`,
        )
  }
  return isText(value, MAX_CONDITION_LENGTH.value)
    ? null
    : fault('value', `must be a string of at most ${MAX_CONDITION_LENGTH.value} characters`)
}

const conditions = () =>
  mixed<Condition[]>()
    .meta({
      jsonSchema: {
        type: 'array',
        maxItems: MAX_CONDITIONS,
        items: {
          type: 'object',
          properties: {
            property: { type: 'string', minLength: 1, maxLength: MAX_CONDITION_LENGTH.property },
            op: { type: 'string', enum: OPERATORS },
            value: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
          },
          required: ['property', 'op'],
        },
      },
    } satisfies Described)
    .test('conditions', 'must be an array of conditions', (value, { path, createError }) => {
      if (value === undefined) return true
      if (!Array.isArray(value)) return false
      if (value.length > MAX_CONDITIONS)
        return createError({ message: `must have at most ${MAX_CONDITIONS} conditions` })
      const [fault] = value.flatMap((each, index) => conditionFault(each, `${path}[${index}]`) ?? [])
      return !fault || createError({ path: fault.field, message: () => fault.problem })
    })

const topics = (min: number) =>
  uuids()
    .meta({
      jsonSchema: {
        type: 'array',
        ...(min > 0 ? { minItems: min } : {}),
        maxItems: MAX_TOPICS,
        items: { type: 'string', format: 'uuid' },
      },
    } satisfies Described)
    .test('most', `must have at most ${MAX_TOPICS} topics`, (value) => (value?.length ?? 0) <= MAX_TOPICS)
    .test('least', 'must have at least 1 topic', (value) => value === undefined || value.length >= min)

const name = () => text({ min: 1, max: LONGEST_BROADCAST_NAME })

const subject = () =>
  subjectLine().test('slots', 'contains an invalid variable', (value, { createError }) => {
    const fault = value === undefined ? null : slotsFault(value)
    return fault === null || createError({ message: () => fault })
  })

function slotsFault(value: string): string | null {
  try {
    compileTemplate(value)
    return null
  } catch (error) {
    if (error instanceof TemplateFault) return `is not a valid template: ${error.message}`
    throw error
  }
}

/** The start time. Its only name is `send_at`. */
export const ownTime = () => ({
  send_at: time(() => new Date()),
  scheduled_at: unsupported('is called send_at here. Use that name for the time to start at'),
  expires_in: unsupported(),
  ...otherSpellings({ scheduledAt: 'send_at', sendAt: 'send_at' }),
})

export const changeSchema = object({
  ...noCopies(),
  ...noFiles(),
  name: name(),
  template_id: uuid(),
  from: text(),
  reply_to: text().typeError('must be a string with one address'),
  subject: subject(),
  topic_ids: topics(1),
  exclude_topic_ids: topics(0),
  where: conditions().test('bytes', TOO_LARGE, isSmall),
  variables: stringMap(MAX_VARIABLES).test('bytes', TOO_LARGE, isSmall),
  headers: stringMap(),
  tags: array(text({ max: 128 }).defined('must be a string'))
    .typeError('must be an array of strings')
    .max(20, 'must have at most 20 tags'),
  rate_per_minute: number()
    .meta({ jsonSchema: { type: 'integer', minimum: 1, maximum: MAX_RATE } } satisfies Described)
    .typeError(NO_RATE)
    .integer(NO_RATE)
    .min(1, NO_RATE)
    .max(MAX_RATE, NO_RATE),
  ...ownTime(),
  ...otherSpellings({ templateId: 'template_id', replyTo: 'reply_to', topicIds: 'topic_ids' }),
})

export const newSchema = changeSchema.shape({
  name: name().required(REQUIRED),
  template_id: uuid().required(REQUIRED),
  from: text().required(REQUIRED),
  subject: subject().required(REQUIRED),
  topic_ids: topics(1).required(REQUIRED),
  idempotency_key: idempotencyKey(),
})

type Change = InferType<typeof changeSchema>

const distinct = (ids: readonly string[]): string[] => [...new Set(ids.map((id) => id.toLowerCase()))]

/** A header that the service sets itself in each email of a broadcast. */
const OWN_HEADER = /^list-unsubscribe(-post)?$/i

function ownHeaders(headers: Record<string, string>, reserved: Reserved): Record<string, string> {
  const own = Object.keys(headers).find((name) => OWN_HEADER.test(name))
  const fault =
    headersFault(headers) ??
    (own === undefined
      ? reservedFault(headers, reserved)
      : { field: `headers.${own}`, problem: "can't be set. Broadcasts set this header themselves" })
  if (fault !== null) throw new RequestError('invalid_headers', fault)
  return headers
}

export type GivenFields = Partial<BroadcastFields>

const present = (fields: Record<string, unknown>): GivenFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/**
 * @param reserved the operator's headers. @throws RequestError invalid_from, invalid_headers, invalid_reply_to, in this
 * order.
 */
export function toFields(body: Change, reserved = NONE_RESERVED): GivenFields {
  const from_address = body.from === undefined ? undefined : formatMailbox(parseSender(body.from))
  const headers = body.headers === undefined ? undefined : ownHeaders(body.headers, reserved)
  return present({
    name: body.name,
    template_id: body.template_id?.toLowerCase(),
    from_address,
    reply_to: body.reply_to === undefined ? undefined : parseReplyTo(body.reply_to),
    subject: body.subject,
    topic_ids: body.topic_ids && distinct(body.topic_ids),
    exclude_topic_ids: body.exclude_topic_ids && distinct(body.exclude_topic_ids),
    conditions: body.where?.map(({ property, op, value }) =>
      value === undefined || value === null ? { property, op } : { property, op, value },
    ),
    variables: body.variables,
    headers,
    ...pick(body, 'tags', 'rate_per_minute', 'send_at'),
  })
}

/** A change of a draft. @throws RequestError bad_request, invalid_from, invalid_headers, invalid_reply_to. */
export const readChange = (value: unknown): GivenFields => toFields(parse(changeSchema, value))

export type NewBroadcast = { fields: GivenFields; idempotency_key: string | null }

/** @throws RequestError invalid_from, invalid_headers, invalid_reply_to, in this order. */
export const toNew = (body: InferType<typeof newSchema>, reserved = NONE_RESERVED): NewBroadcast => ({
  fields: toFields(body, reserved),
  idempotency_key: body.idempotency_key ?? null,
})

/** @throws RequestError bad_request, invalid_from, invalid_headers, invalid_reply_to. */
export const readNew = (value: unknown): NewBroadcast => toNew(parse(newSchema, value))
