/** What the API answers, as JSON schemas (contract §2, §4.4). The tests hold every answer against them. */
import { CONTACT_STATUSES } from '../../db/contacts/contacts.sql.ts'
import { EMAIL_LADDER } from '../../db/emails/status.ts'
import { CODES } from '../../db/errors.ts'
import { WHATSAPP_LADDER } from '../../db/whatsapp/status.ts'
import type { JsonSchema } from './json-schema.ts'

const text = { type: 'string' }
const uuid = { type: 'string', format: 'uuid' }
const time = { type: 'string', format: 'date-time' }
const count = { type: 'integer', minimum: 0 }
const orNull = ({ type, ...rest }: { type: string }) => ({ type: [type, 'null'], ...rest })
const list = (items: JsonSchema) => ({ type: 'array', items })
const map = { type: 'object', additionalProperties: text }

/** An object with these fields and no others, all of them there but for the optional ones. */
const record = (fields: Record<string, JsonSchema>, optional: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties: fields,
  required: Object.keys(fields).filter((name) => !optional.includes(name)),
  additionalProperties: false,
})

export type Component =
  | 'Contact'
  | 'ContactPage'
  | 'Email'
  | 'WhatsappMessages'
  | 'BatchResult'
  | 'Catalog'
  | 'Failure'

const reference = (name: Component | 'Fault'): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const plan = record(
  {
    key: text,
    kind: { type: 'string', enum: ['free', 'paid', 'custom'] },
    name: text,
    blurb: text,
    cta: text,
    featured: { type: 'boolean' },
    benefits: list(text),
    email_limit: count,
    contact_limit: count,
    domains_limit: count,
    storage_gb: count,
    send_rate_per_second: { type: 'number' },
    tiers: {
      type: ['array', 'null'],
      items: record({ emails: count, monthly_cents: count, annual_cents: count }, ['annual_cents']),
    },
  },
  ['email_limit', 'contact_limit', 'domains_limit', 'storage_gb', 'send_rate_per_second'],
)

/** Every schema that an answer refers to. */
export const COMPONENTS: Readonly<Record<Component | 'Fault', JsonSchema>> = {
  Contact: record({
    id: uuid,
    email: text,
    status: { type: 'string', enum: CONTACT_STATUSES },
    properties: map,
    subscribed_topic_ids: list(uuid),
    created_at: time,
    updated_at: time,
  }),
  ContactPage: record({ data: list(reference('Contact')), next_cursor: text }, ['next_cursor']),
  Email: record({
    id: uuid,
    team_id: uuid,
    domain_id: uuid,
    template_id: orNull(uuid),
    from_address: text,
    to_emails: list(text),
    subject: text,
    html: text,
    size_kb: { type: 'number' },
    tags: list(text),
    status: { type: 'string', enum: EMAIL_LADDER },
    idempotency_key: orNull(text),
    created_at: time,
    requeued_at: orNull(time),
    provider_message_id: orNull(text),
    broadcast_id: orNull(uuid),
    contact_id: orNull(uuid),
    unsubscribe_token: orNull(text),
    body_text: text,
    headers: orNull(map),
    reply_to: text,
  }),
  WhatsappMessages: record({
    data: list(record({ id: uuid, to: text, status: { type: 'string', enum: WHATSAPP_LADDER } })),
  }),
  BatchResult: record({
    data: list({
      ...record({ index: count, id: uuid, error: reference('Fault') }, ['id', 'error']),
      description: 'Either id or error.',
    }),
  }),
  Catalog: record({
    free_allowances: record({ emails: count, contacts: count }),
    overage_per_1000_cents: orNull(count),
    plans: list(plan),
    contacts_tiers: list(record({ contacts: count, monthly_cents: count })),
  }),
  Fault: record({ code: { type: 'string', enum: CODES }, message: text }),
  Failure: record({ error: reference('Fault') }),
}
