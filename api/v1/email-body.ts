/** The bodies of POST /v1/emails and /v1/emails/batch. */
import { array, type InferType, object } from 'yup'
import { invalidField, REQUIRED } from '../../db/errors.ts'
import {
  bytes,
  type EitherOf,
  idempotencyKey,
  mailbox,
  otherSpellings,
  parse,
  sendTimes,
  stringMap,
  subjectLine,
  text,
  uuid,
} from '../../db/validation/fields.ts'
import { LARGEST_PART, MAX_VARIABLES } from '../../db/validation/strings.ts'
import { defineBatch, jsonAs } from '../http/input.ts'
import { type Attached, attachments, readAttachments } from './attachment-shape.ts'

const BATCH_LIMIT = 100

/** Clients of other services send objects with a name and a value. */
const A_TAG = 'must be a string, such as "receipt"'

/** The most recipients of an email in to, cc and bcc, counting duplicates. */
const MAX_RECIPIENTS = 50

const mailboxes = () =>
  array(mailbox().required('must be an email address'))
    .typeError('must be an array of email addresses, such as ["name@example.com"]')
    .max(MAX_RECIPIENTS, `must have at most ${MAX_RECIPIENTS} recipients`)

/** The body of a send, and each item of a batch. */
const sendSchema = object({
  from: text().required(REQUIRED),
  to: mailboxes().required(REQUIRED).min(1, 'must have at least 1 recipient'),
  cc: mailboxes(),
  bcc: mailboxes(),
  subject: subjectLine().required(REQUIRED),
  html: bytes(LARGEST_PART),
  template_id: uuid(),
  variables: stringMap(MAX_VARIABLES),
  text: bytes(LARGEST_PART),
  headers: stringMap(),
  reply_to: text().typeError('must be a string with one address'),
  tags: array(text({ max: 128 }).typeError(A_TAG).defined(A_TAG).nonNullable(A_TAG))
    .typeError('must be an array of strings')
    .max(20, 'must have at most 20 tags'),
  idempotency_key: idempotencyKey(),
  attachments: attachments(),
  ...sendTimes(() => new Date()),
  ...otherSpellings({ replyTo: 'reply_to' }),
}).meta({
  eitherOf: ['html', 'template_id'],
  insufficient: { text: 'is only sent alongside html' },
} satisfies EitherOf)

type SendBody = InferType<typeof sendSchema>

/** A send whose shape is valid. `path` is its path in a batch, such as `emails[3].`. */
export type EmailDraft = { path: string; send: Omit<SendBody, 'attachments'>; attached: readonly Attached[] }

/** Counts the recipients and decodes the attachments. @throws RequestError bad_request */
function toDraft({ attachments: list = [], ...send }: SendBody, path = ''): EmailDraft {
  if (send.to.length + (send.cc?.length ?? 0) + (send.bcc?.length ?? 0) > MAX_RECIPIENTS)
    throw invalidField(`${path}to, cc and bcc`, `must have at most ${MAX_RECIPIENTS} recipients in total`)
  return { path, send, attached: readAttachments(list) }
}

export const emailBody = jsonAs(sendSchema, (value) => toDraft(parse(sendSchema, value)))
export const emailsBody = defineBatch(
  { field: 'emails', most: BATCH_LIMIT, schema: sendSchema },
  (value, at) => toDraft(parse(sendSchema, value, at), `${at}.`),
)
