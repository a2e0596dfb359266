/**
 * Describes the webhooks that teams receive, as OpenAPI's `webhooks`, with a schema for each type. Pure. The
 * tests validate every webhook against them.
 */

import { CONTACT_STATUSES } from '../../db/audience/contacts/contacts.sql.ts'
import { CAUSES } from '../../db/audience/contacts/effect.ts'
import { EMAIL_LADDER } from '../../db/channels/email.ts'
import { rankOf, TEST_TYPE, WEBHOOK_TYPES } from '../../db/channels/events/webhook-types.ts'
import { WHATSAPP_LADDER } from '../../db/channels/whatsapp.ts'
import { AUDIENCE, STATS_SCHEMA } from './components.ts'
import { buildExample } from './example.ts'
import type { JsonSchema } from './json-schema.ts'
import { count, list, nullable, oneOf, orNull, record, said, text, time, uuid } from './parts.ts'

type WebhookName = (typeof WEBHOOK_TYPES)[number] | typeof TEST_TYPE

const NAMES: readonly WebhookName[] = [...WEBHOOK_TYPES, TEST_TYPE]

const DETAIL = said(
  text,
  'The response of the provider, or our reason. At most 1,000 characters.',
  '250 2.0.0 OK',
)
const percent: JsonSchema = { type: 'number', minimum: 0, maximum: 100 }
const KEY = said(orNull(text), 'The idempotency key of the send, if any.', 'order-1001')
const REQUEUED = nullable(
  time,
  'When the message was last requeued. Ranks then restart, so of two events about one message, the one with the later requeued_at is current.',
)
const rank = (ladder: readonly string[]): JsonSchema =>
  said(
    { type: 'integer', minimum: 0, maximum: ladder.length - 1 },
    'Among events about one message with the same requeued_at, the one with the highest rank is current.',
    1,
  )

const CONTACT = {
  contact_id: said(uuid, 'The contact.'),
  email: said(text, 'As first entered.', 'ana@example.org'),
  status: said(oneOf(CONTACT_STATUSES), 'The current status.', 'unsubscribed'),
  suppression: said(
    { type: ['string', 'null'], enum: ['bounced', 'complained', null] },
    'Why the address is suppressed, if it is.',
    null,
  ),
  detail: said(text, 'The reason. Often empty.', ''),
}

/** A recipient who opts out of a team's marketing on WhatsApp, or in again. */
const OPT_OUT = {
  to: said(text, 'The recipient’s number.', '+15555550101'),
  at: said(time, 'When the recipient opted out or in.'),
  by: said(
    text,
    'How: `user_preferences` (in the WhatsApp app), `131050` (Meta’s error for a recipient who stopped marketing messages), `text` or `button` (a reply with a stop or start word), `cli` (the command line), or the email address of the user who did it.',
    'text',
  ),
}

/** An address whose suppression starts or ends. */
const ADDRESS = {
  ...CONTACT,
  contact_id: said(orNull(uuid), 'The contact. null if the address isn’t a contact.'),
  status: said(
    { type: ['string', 'null'], enum: [...CONTACT_STATUSES, null] },
    'The contact’s current status. null if the address isn’t a contact.',
    'bounced',
  ),
}

/** The data of webhooks by subject, and by type if a type has more than its subject. */
const DATA: Readonly<Record<string, JsonSchema>> = {
  email: record(
    {
      email_id: said(uuid, 'The email.'),
      broadcast_id: nullable(uuid, 'The broadcast it is part of, if any.'),
      from: said(text, 'The sender, normalized.', 'Acme <hello@example.com>'),
      to: said(list(text), 'Recipients, excluding cc and bcc.', ['ana@example.org']),
      cc: said(list(text), 'Recipients of copies. Absent if there are none.', ['ben@example.org']),
      bcc: said(list(text), 'Recipients of blind copies. Absent if there are none.', ['archive@example.com']),
      recipient: said(
        orNull(text),
        'The recipient the event is about. null if it is about all recipients.',
        'ana@example.org',
      ),
      subject: said(text, 'The subject, as sent.', 'Hello'),
      tags: said(list(text), 'The tags, as given.', ['welcome']),
      template_id: nullable(uuid, 'Its template, if any.'),
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
    recipient: said(text, 'Same as `to`.', '+15555550101'),
    template_id: said(uuid, 'Its template.'),
    idempotency_key: KEY,
    requeued_at: REQUEUED,
    rank: rank(WHATSAPP_LADDER),
    detail: DETAIL,
  }),
  'whatsapp.opted_out': record(OPT_OUT),
  'whatsapp.opted_in': record(OPT_OUT),
  'whatsapp_template.category_changed': record({
    template_id: said(uuid, 'The template.'),
    name: said(text, 'Its name at Meta.', 'order_ready'),
    language: said(text, 'Its language.', 'en_US'),
    from: said(text, 'Its category before.', 'UTILITY'),
    to: said(text, 'Its category now. It decides what a message costs.', 'MARKETING'),
  }),
  contact: record(CONTACT),
  'contact.suppressed': record({
    ...ADDRESS,
    cause: said(oneOf(CAUSES), 'Why the address is suppressed.', 'bounce'),
    email_id: said(orNull(uuid), 'The email that caused it. null if the address was added manually.'),
    detail: said(text, 'The response of the server, or the reason.', '550 5.1.1 no such user'),
  }),
  'contact.released': record({
    ...ADDRESS,
    detail: said(
      text,
      'The reason, or “delivered” if a delivery followed the soft bounces that caused the suppression.',
      'delivered',
    ),
  }),
  'contact.topics_left': record({
    ...CONTACT,
    topic_ids: said(
      list(uuid),
      'The topics that the contact left by an unsubscribe link or the unsubscribe call.',
    ),
  }),
  broadcast: record({
    broadcast_id: said(uuid, 'The broadcast.'),
    name: said(text, 'The display name.', 'Spring news'),
    from: said(text, 'The sender of its emails.', 'Acme <hello@example.com>'),
    subject: said(text, 'The subject of its emails.', 'Hello'),
    tags: said(list(text), 'The tags of its emails.', ['news']),
    template_id: said(uuid, 'Its template.'),
    idempotency_key: KEY,
    audience: said(orNull(count), AUDIENCE, 1_200),
    stats: STATS_SCHEMA,
    detail: said(text, 'Why it was paused automatically.', ''),
  }),
  domain: record({
    domain_id: said(uuid, 'The sending domain.'),
    name: said(text, 'Its name.', 'mail.example.com'),
    host: said(text, 'The name of its DKIM record.', 'hg4k7w2q._domainkey.mail.example.com'),
    value: said(text, 'The value of its DKIM record.', 'v=DKIM1; k=rsa; p=MIIB…'),
    state: said(
      oneOf(['missing', 'different']),
      '`missing` without a record, `different` if it has another value.',
      'missing',
    ),
    missing_since: said(time, 'When it was first missing.'),
    detail: said(
      text,
      'A description of the problem.',
      'the DKIM record hg4k7w2q._domainkey.mail.example.com is missing',
    ),
  }),
  team: record({
    bounce_percent: said(percent, 'The share of the emails sent in 24 hours that bounced hard.', 6.25),
    complaint_percent: said(percent, 'The share that was reported as spam.', 0.02),
    sent: said(count, 'The number of emails sent.', 4_800),
    paused: said(
      { type: 'boolean' },
      'True if these shares paused the team’s broadcasts and batches. False for a warning.',
      false,
    ),
  }),
  webhook: record({
    endpoint_id: said(uuid, 'The tested webhook.'),
    detail: said(text, 'The text “a test”.', 'a test'),
  }),
}

const titled = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

const joined = (name: string): string => name.split(/[._]/).map(titled).join('')

/** Returns the name of a schema of data, by its subject or type. */
const dataName = (name: string): string => `${joined(name)}Event`

const schemaName = (type: WebhookName): string => `${joined(type)}Webhook`

const buildSchema = (type: WebhookName): JsonSchema =>
  record({
    type: said(oneOf([type]), 'What happened.', type),
    timestamp: said(time, 'When it happened.'),
    data: { $ref: `#/components/schemas/${dataName(type in DATA ? type : (type.split('.')[0] ?? ''))}` },
  })

export const WEBHOOK_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(Object.entries(DATA).map(([name, schema]) => [dataName(name), schema])),
  ...Object.fromEntries(NAMES.map((type) => [schemaName(type), buildSchema(type)])),
}

/** Returns the reference to a type's schema, or undefined if it has none. */
export const webhookReference = (type: string): string | undefined => {
  const known = NAMES.find((name) => name === type)
  return known && `#/components/schemas/${schemaName(known)}`
}

const header = (name: string, description: string, example: string) => ({
  ...{ name, in: 'header', required: true, description },
  schema: { type: 'string', examples: [example] },
})

const HEADERS = [
  header(
    'webhook-id',
    'The same in every attempt to deliver this event.',
    '01920000-0000-7000-8000-000000000000',
  ),
  header('webhook-timestamp', 'The time of this attempt, in seconds.', '1795350896'),
  header(
    'webhook-signature',
    '`v1,` and the HMAC-SHA256 of ID, timestamp and body with the secret. For 24 hours after the secret is rotated, there are two, separated by a space.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
]

const ANSWERS = {
  '2XX': { description: 'Accepted. Other responses are retried.' },
  '410': { description: 'Your server no longer wants events. The webhook is disabled.' },
}

/** The details of examples that aren't deliveries, mostly responses of providers. */
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

/** Returns an example of a type. If it is about a message, it has the type's own rank and detail. */
function exampleOfType(type: WebhookName): unknown {
  const example = buildExample(buildSchema(type), WEBHOOK_SCHEMAS) as { data: object }
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
          description: 'Sent to each webhook of the team with this event type.',
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
