/**
 * What a team's own server is sent, as OpenAPI's `webhooks`: a schema for each type. Pure.
 * Promises: no type is left out. The tests hold every webhook that they see against them.
 */

import { CONTACT_STATUSES } from '../../db/audience/contacts/contacts.sql.ts'
import { CAUSES } from '../../db/audience/contacts/effect.ts'
import { EMAIL_LADDER } from '../../db/channels/email.ts'
import { rankOf, TEST_TYPE, WEBHOOK_TYPES } from '../../db/channels/events/webhook-types.ts'
import { WHATSAPP_LADDER } from '../../db/channels/whatsapp.ts'
import { STATS_SCHEMA } from './components.ts'
import { exampleOf } from './example.ts'
import type { JsonSchema } from './json-schema.ts'
import { list, orNull, record, said, text, time, uuid } from './parts.ts'

type WebhookName = (typeof WEBHOOK_TYPES)[number] | typeof TEST_TYPE

const NAMES: readonly WebhookName[] = [...WEBHOOK_TYPES, TEST_TYPE]

const DETAIL = said(text, 'The provider’s words, or ours; at most 1,000 characters.', '250 2.0.0 OK')
const KEY = said(orNull(text), 'The idempotency key of the send, if any.', 'order-1001')
const REQUEUED = said(
  orNull(time),
  'When the message was last requeued. After that it starts again, and the latest value wins over all ranks.',
  null,
)
const rank = (ladder: readonly string[]): JsonSchema =>
  said(
    { type: 'integer', minimum: 0, maximum: ladder.length - 1 },
    'Of the events about one message with the same requeued_at, the highest is its latest state.',
    1,
  )

const CONTACT = {
  contact_id: said(uuid, 'The contact.'),
  email: said(text, 'As it was first given.', 'ana@example.org'),
  status: said({ type: 'string', enum: CONTACT_STATUSES }, 'What it is by now.', 'unsubscribed'),
  suppression: said(
    { type: ['string', 'null'], enum: ['bounced', 'complained', null] },
    'Why nothing is sent to it, if so.',
    null,
  ),
  detail: said(text, 'Why, in words; often empty.', ''),
}

/** An address whose suppression begins or ends. */
const ADDRESS = {
  ...CONTACT,
  contact_id: said(orNull(uuid), 'The contact; null if the address is no contact.'),
  status: said(
    { type: ['string', 'null'], enum: [...CONTACT_STATUSES, null] },
    'The contact’s status by now; null if the address is no contact.',
    'bounced',
  ),
}

/** The data of each subject's webhooks, and of types that say more than their subject's. */
const DATA: Readonly<Record<string, JsonSchema>> = {
  email: record(
    {
      email_id: said(uuid, 'The email.'),
      broadcast_id: said(orNull(uuid), 'The broadcast that it is of, if any.', null),
      from: said(text, 'The sender, normalized.', 'Acme <hello@example.com>'),
      to: said(list(text), 'Its recipients, but for the copies.', ['ana@example.org']),
      cc: said(list(text), 'Who got a copy; absent when nobody.', ['ben@example.org']),
      bcc: said(list(text), 'Who got one unseen; absent when nobody.', ['archive@example.com']),
      recipient: said(orNull(text), 'Whom it is about; null: all of them.', 'ana@example.org'),
      subject: said(text, 'As it was sent.', 'Hello'),
      tags: said(list(text), 'As they were given.', ['welcome']),
      template_id: said(orNull(uuid), 'Its template, if any.', null),
      idempotency_key: KEY,
      requeued_at: REQUEUED,
      rank: rank(EMAIL_LADDER),
      detail: DETAIL,
    },
    ['cc', 'bcc'],
  ),
  whatsapp: record({
    message_id: said(uuid, 'The message.'),
    to: said(text, 'Its only recipient.', '+15555550101'),
    recipient: said(text, 'The same.', '+15555550101'),
    template_id: said(uuid, 'Its template.'),
    idempotency_key: KEY,
    requeued_at: REQUEUED,
    rank: rank(WHATSAPP_LADDER),
    detail: DETAIL,
  }),
  contact: record(CONTACT),
  'contact.suppressed': record({
    ...ADDRESS,
    cause: said({ type: 'string', enum: CAUSES }, 'Why the address is suppressed.', 'bounce'),
    email_id: said(orNull(uuid), 'The email that it comes from; null if the address was added manually.'),
    detail: said(text, 'The response of the server, or the reason.', '550 5.1.1 no such user'),
  }),
  'contact.released': record({
    ...ADDRESS,
    detail: said(text, 'The reason, or “delivered” if a delivery ended soft bounces.', 'delivered'),
  }),
  'contact.topics_left': record({
    ...CONTACT,
    topic_ids: said(
      list(uuid),
      'The topics that its person has left, by a link or the one-shot unsubscribe.',
    ),
  }),
  broadcast: record({
    broadcast_id: said(uuid, 'The broadcast.'),
    name: said(text, 'What people call it.', 'Spring news'),
    from: said(text, 'The sender of its emails.', 'Acme <hello@example.com>'),
    subject: said(text, 'The subject of its emails.', 'Hello'),
    tags: said(list(text), 'The tags of its emails.', ['news']),
    template_id: said(uuid, 'Its template.'),
    idempotency_key: KEY,
    audience: said(
      { type: ['integer', 'null'], minimum: 0 },
      'How many contacts fitted when it began.',
      1_200,
    ),
    stats: STATS_SCHEMA,
    detail: said(text, 'Why it is paused, when nobody paused it.', ''),
  }),
  domain: record({
    domain_id: said(uuid, 'The sending domain.'),
    name: said(text, 'Its name.', 'mail.example.com'),
    host: said(text, 'Where its DKIM record belongs.', 'hg4k7w2q._domainkey.mail.example.com'),
    value: said(text, 'What belongs there.', 'v=DKIM1; k=rsa; p=MIIB…'),
    state: said(
      { type: 'string', enum: ['missing', 'different'] },
      'What is there: nothing, or something else.',
      'missing',
    ),
    missing_since: said(time, 'When it was missed first.'),
    detail: said(
      text,
      'The same in words.',
      'the DKIM record hg4k7w2q._domainkey.mail.example.com is missing',
    ),
  }),
  webhook: record({
    endpoint_id: said(uuid, 'The webhook that is tested.'),
    detail: said(text, 'Says that it is a test.', 'a test'),
  }),
}

const titled = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

const joined = (name: string): string => name.split(/[._]/).map(titled).join('')

/** The name of data among the schemas: of a subject's, or of a type's own. */
const dataName = (name: string): string => `${joined(name)}Event`

const schemaName = (type: WebhookName): string => `${joined(type)}Webhook`

const schemaOf = (type: WebhookName): JsonSchema =>
  record({
    type: said({ type: 'string', enum: [type] }, 'What happened.', type),
    timestamp: said(time, 'When it happened.'),
    data: { $ref: `#/components/schemas/${dataName(type in DATA ? type : (type.split('.')[0] ?? ''))}` },
  })

export const WEBHOOK_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(Object.entries(DATA).map(([name, schema]) => [dataName(name), schema])),
  ...Object.fromEntries(NAMES.map((type) => [schemaName(type), schemaOf(type)])),
}

/** Where the schema of a type is; undefined for a type without one. */
export const webhookReference = (type: string): string | undefined => {
  const known = NAMES.find((name) => name === type)
  return known && `#/components/schemas/${schemaName(known)}`
}

const header = (name: string, description: string, example: string) => ({
  ...{ name, in: 'header', required: true, description },
  schema: { type: 'string', examples: [example] },
})

const HEADERS = [
  header('webhook-id', 'The same on every delivery of this message.', '01920000-0000-7000-8000-000000000000'),
  header('webhook-timestamp', 'When this try was made, in seconds.', '1795350896'),
  header(
    'webhook-signature',
    '`v1,` and the HMAC-SHA256 of id, timestamp and body by the secret; two while it is rotated.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
]

const ANSWERS = {
  '2XX': { description: 'Taken. Anything else is tried again.' },
  '410': { description: 'Nothing more is wanted: the webhook is disabled.' },
}

/** The provider's words for what is no delivery. */
const WORDS: Readonly<Record<string, string>> = {
  'email.delivery_delayed': '451 4.7.1 try again later',
  'email.bounced': '550 5.1.1 no such user',
  'email.complained': '',
  'email.suppressed': 'bounced on 2026-11-28: 550 5.1.1 no such user',
  'email.opened': '',
  'email.clicked': '',
  'email.failed': '451 4.7.1 try again later',
  'whatsapp.failed': '131026 Message undeliverable',
}

/** An example of a type, with its own rung and words where it is about a message. */
function exampleOfType(type: WebhookName): unknown {
  const example = exampleOf(schemaOf(type), WEBHOOK_SCHEMAS) as { data: object }
  if (!('rank' in example.data)) return example
  const [subject = '', kind = ''] = type.split('.')
  const own = {
    rank: rankOf({ subject, kind }),
    detail: WORDS[type] ?? (subject === 'email' ? '250 2.0.0 OK' : ''),
  }
  return { ...example, data: { ...example.data, ...own } }
}

export const webhookExamples = () => NAMES.map((type) => ({ type, body: exampleOfType(type) }))

export const describedWebhooks = () =>
  Object.fromEntries(
    NAMES.map((type) => [
      type,
      {
        post: {
          operationId: `on${schemaName(type)}`,
          tags: ['Webhooks'],
          summary: `Notifies of ${type}`,
          description: 'Sent to each webhook of the team that wants this type.',
          security: [],
          parameters: HEADERS,
          requestBody: {
            required: true,
            content: {
              'application/json': { schema: { $ref: webhookReference(type) }, example: exampleOfType(type) },
            },
          },
          responses: ANSWERS,
        },
      },
    ]),
  )
