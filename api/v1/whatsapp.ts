/**
 * POST /v1/whatsapp/messages and /batch: template messages. Owns the shape of a send and the
 * refusals that need nothing but the body; the rest is db/messages/whatsapp/accept.ts, for one item and for a hundred
 * alike.
 */
import { array, type InferType, object } from 'yup'
import { REQUIRED, RequestError, resultOrError } from '../../db/errors.ts'
import {
  acceptWhatsapp,
  type WhatsappCall,
  type WhatsappItem,
  type WhatsappOutcome,
} from '../../db/messages/whatsapp/accept.ts'
import { messagesOfRequest, type SentRow } from '../../db/messages/whatsapp/messages.sql.ts'
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
import { givenTimes } from '../../db/validation/moments.ts'
import { normalisePhone, type Phone } from '../../db/validation/phone.ts'
import { keyOnly, keyOrSession, type Principal } from '../http/auth.ts'
import { tracing } from '../http/errors.ts'
import { batchOf, json } from '../http/input.ts'
import { countSends } from '../sends/count.ts'
import { aboutScheduled } from './about.ts'
import { ABOUT_WHATSAPP } from './about-whatsapp.ts'
import { acceptEach, type BatchItem, batchAnswer } from './batch.ts'
import { teamRoute, type V1Deps, type V1Route } from './deps.ts'
import { withIdempotencyKey } from './idempotency-key.ts'
import { scheduledRoutes } from './scheduled.ts'

const BATCH_LIMIT = 100

/** The body of a send, and each item of a batch. The 50 are counted as given, before repeats collapse. */
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

/** The numbers in E.164 form, each once, in order. @throws RequestError invalid_phone naming the first bad one. */
function phonesOf(numbers: readonly string[], path: string): Phone[] {
  const phones = numbers.map((number, index) => {
    const phone = normalisePhone(number)
    if (phone) return phone
    const problem = 'must be a phone number in E.164 format, such as +15551234567'
    throw new RequestError('invalid_phone', { field: `${path}to[${index}]`, problem })
  })
  return [...new Map(phones.map((phone) => [phone.e164, phone])).values()]
}

/** More than any template has slots: beyond this, some of the first are unknown as well. */
const MAX_PARAMETERS = 1_000

/** Parameters that are refused anyway need not travel further in full. */
function enoughOf(parameters: Record<string, string>): Record<string, string> {
  const given = Object.entries(parameters)
  return given.length <= MAX_PARAMETERS ? parameters : Object.fromEntries(given.slice(0, MAX_PARAMETERS + 1))
}

/** An item whose fields are valid by themselves. @throws RequestError invalid_phone */
function itemOf(send: SendBody, path = ''): WhatsappItem {
  return {
    path,
    template_id: send.template_id.toLowerCase(),
    to: phonesOf(send.to, path),
    parameters: enoughOf(send.parameters ?? {}),
    idempotency_key: send.idempotency_key ?? null,
    ...whenOf(send),
  }
}

/** In a batch, an error about one recipient has the form that clients parse: `to[<n>]: <code>: <detail>`. */
function recipientError(error: RequestError, path: string): RequestError {
  const [{ field, problem } = { field: '', problem: '' }] = error.fields
  if (!field.startsWith(`${path}to[`)) return error
  return new RequestError(error.code, `${field.slice(path.length)}: ${error.code}: ${problem}`)
}

/** An item of a batch. @throws RequestError bad_request, invalid_phone */
function toBatchItem(value: unknown, at: string): WhatsappItem {
  const path = `${at}.`
  const item = resultOrError(() => itemOf(parse(sendSchema, value, at), path))
  if (item instanceof RequestError) throw recipientError(item, path)
  return item
}

/** The rows of a call, as the API shows them. */
const presentMessages = (rows: readonly SentRow[]) => ({
  data: rows.map(({ id, recipient, status, ...times }) => ({
    ...{ id, to: recipient, status },
    ...givenTimes(times),
  })),
})

/** Accepts a batch in a transaction of its own. */
async function acceptBatch({ database, queue, metrics }: V1Deps, call: WhatsappCall) {
  const outcomes = await database.transaction((tx) => acceptWhatsapp({ tx, queue }, call))
  return countSends(metrics, 'whatsapp', outcomes)
}

async function rowsOf(
  { database }: V1Deps,
  { team_id }: Principal,
  outcome: WhatsappOutcome,
): Promise<readonly SentRow[]> {
  if (outcome.kind === 'refused') throw outcome.refusal
  if (outcome.kind === 'stored') return outcome.rows
  return messagesOfRequest(database, team_id, outcome.request_id)
}

const batchItemOf = (outcome: WhatsappOutcome): BatchItem =>
  outcome.kind === 'refused' ? outcome.refusal : outcome.first_id

export const whatsappRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/whatsapp/messages',
    about: ABOUT_WHATSAPP.sendWhatsapp,
    access: keyOrSession('whatsapp:send'),
    body: json(sendSchema),
    async handle({ id, body, headers, principal }, deps) {
      const { team_id } = principal
      const items = [itemOf(withIdempotencyKey(body, headers))]
      const outcomes = await deps.accepts.whatsapp({ team_id, items, http_request_id: id })
      const [outcome] = countSends(deps.metrics, 'whatsapp', outcomes)
      if (!outcome) throw new Error('one item must have one outcome')
      const rows = await rowsOf(deps, principal, outcome)
      const trace = tracing(rows.map(({ id }) => id))
      return { status: outcome.kind === 'stored' ? 201 : 200, body: presentMessages(rows), trace }
    },
  }),
  teamRoute({
    method: 'POST',
    path: '/v1/whatsapp/messages/batch',
    about: ABOUT_WHATSAPP.sendWhatsapps,
    access: keyOnly('whatsapp:send'),
    heavy: true,
    body: batchOf({ field: 'messages', most: BATCH_LIMIT, schema: sendSchema }, toBatchItem),
    async handle({ id, body, principal: { team_id } }, deps) {
      const accept = (items: readonly WhatsappItem[]) =>
        acceptBatch(deps, { team_id, items, http_request_id: id, batch: true })
      const items = await acceptEach(body, accept, batchItemOf)
      return batchAnswer(items, deps.metrics)
    },
  }),
  ...scheduledRoutes({
    channel: 'whatsapp',
    path: '/v1/whatsapp/messages',
    access: keyOrSession('whatsapp:send'),
    about: aboutScheduled({ name: 'Whatsapp', group: 'WhatsApp', noun: 'message', article: 'a' }, [
      'not_found',
    ]),
  }),
]
