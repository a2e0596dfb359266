/** The bodies of POST /v1/whatsapp/messages and /batch. */
import { array, type InferType, object } from 'yup'
import { REQUIRED, RequestError, resultOrError } from '../../db/errors.ts'
import type { WhatsappItem } from '../../db/messages/whatsapp/accept.ts'
import {
  idempotencyKey,
  noCopies,
  parse,
  sendTimes,
  stringMap,
  text,
  uuid,
  whenOf,
} from '../../db/validation/fields.ts'
import { normalisePhone, type Phone } from '../../db/validation/phone.ts'
import { defineBatch, json } from '../http/input.ts'

const BATCH_LIMIT = 100

/** The body of a send, and each item of a batch. Duplicates count towards the 50 numbers. */
const sendSchema = object({
  template_id: uuid().required(REQUIRED),
  to: array(text().defined('must be a string').nonNullable('must be a string'))
    .typeError('must be an array of phone numbers')
    .required(REQUIRED)
    .min(1, 'must have at least 1 number')
    .max(50, 'must have at most 50 numbers'),
  parameters: stringMap(),
  idempotency_key: idempotencyKey(),
  ...noCopies(),
  ...sendTimes(() => new Date()),
})

type SendBody = InferType<typeof sendSchema>

/** Returns the numbers in E.164 format, without duplicates. @throws RequestError invalid_phone for the first bad one */
function parsePhones(numbers: readonly string[], path: string): Phone[] {
  const phones = numbers.map((number, index) => {
    const phone = normalisePhone(number)
    if (phone) return phone
    const problem = 'must be a phone number in E.164 format, such as +15551234567'
    throw new RequestError('invalid_phone', { field: `${path}to[${index}]`, problem })
  })
  return [...new Map(phones.map((phone) => [phone.e164, phone])).values()]
}

/** More than any template has variables. If there are more, at least one of the first is unknown. */
const MAX_PARAMETERS = 1_000

/** Shortens parameters that are rejected anyway. */
function limitParameters(parameters: Record<string, string>): Record<string, string> {
  const given = Object.entries(parameters)
  return given.length <= MAX_PARAMETERS ? parameters : Object.fromEntries(given.slice(0, MAX_PARAMETERS + 1))
}

/** Builds an item. Its fields are valid by themselves. @throws RequestError invalid_phone */
export function buildItem(send: SendBody, path = ''): WhatsappItem {
  return {
    path,
    template_id: send.template_id.toLowerCase(),
    to: parsePhones(send.to, path),
    parameters: limitParameters(send.parameters ?? {}),
    idempotency_key: send.idempotency_key ?? null,
    ...whenOf(send),
  }
}

/** In a batch, writes an error about a recipient in the form that clients parse: `to[<n>]: <code>: <detail>`. */
function recipientError(error: RequestError, path: string): RequestError {
  const [{ field, problem } = { field: '', problem: '' }] = error.fields
  if (!field.startsWith(`${path}to[`)) return error
  return new RequestError(error.code, `${field.slice(path.length)}: ${error.code}: ${problem}`)
}

/** Reads an item of a batch. @throws RequestError bad_request, invalid_phone */
function parseBatchItem(value: unknown, at: string): WhatsappItem {
  const path = `${at}.`
  const item = resultOrError(() => buildItem(parse(sendSchema, value, at), path))
  if (item instanceof RequestError) throw recipientError(item, path)
  return item
}

export const messageBody = json(sendSchema)
export const messagesBody = defineBatch(
  { field: 'messages', most: BATCH_LIMIT, schema: sendSchema },
  parseBatchItem,
)
