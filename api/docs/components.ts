/** The responses of the API as JSON schemas. The tests validate every response against them. */

import { CONTACT_STATUSES } from '../../db/audience/contacts/contacts.sql.ts'
import { EMAIL_LADDER } from '../../db/channels/email.ts'
import { WHATSAPP_LADDER } from '../../db/channels/whatsapp.ts'
import { CODES } from '../../db/errors.ts'
import { OPERATORS } from '../../db/messages/broadcasts/operators.ts'
import { BROADCAST_STATES } from '../../db/messages/broadcasts/state.ts'
import { BROADCAST_STATS, type BroadcastStat } from '../../db/stats/daily/broadcasts.sql.ts'
import { EXAMPLE_ID } from './example.ts'
import type { JsonSchema } from './json-schema.ts'
import { count, list, map, nullable, oneOf, orNull, record, said, text, time, uuid } from './parts.ts'

const EXAMPLE_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const reference = (name: 'Contact' | 'Broadcast' | 'Fault'): JsonSchema => ({
  $ref: `#/components/schemas/${name}`,
})

const pageSchema = (name: 'Contact' | 'Broadcast'): JsonSchema =>
  record(
    {
      data: said(list(reference(name)), `The ${name.toLowerCase()}s, newest first.`),
      next_cursor: said(text, 'The `cursor` of the next page. Absent on the last page.', '20'),
    },
    ['next_cursor'],
  )

const TIERS = list(
  record(
    {
      emails: said(count, 'Emails per month.', 50_000),
      monthly_cents: said(count, 'The price per month.', 2_000),
      annual_cents: said(count, 'The price per year, if there is one.', 20_000),
    },
    ['annual_cents'],
  ),
)

const plan = record(
  {
    key: said(text, 'The identifier of the plan.', 'pro'),
    kind: said(oneOf(['free', 'paid', 'custom']), 'Custom plans are sold by the sales team.', 'paid'),
    name: said(text, 'Localized.', 'Pro'),
    blurb: said(text, 'Localized.', 'For products that grow'),
    cta: said(text, 'The text of its button, localized.', 'Choose Pro'),
    featured: said({ type: 'boolean' }, 'True if a pricing page should highlight the plan.', true),
    benefits: said(list(text), 'Localized.', ['25 sending domains']),
    email_limit: said(count, 'Emails per month, for free plans.', 5_000),
    contact_limit: said(count, 'Stored contacts, for free plans.', 1_000),
    domains_limit: said(count, 'Sending domains.', 25),
    storage_gb: said(count, 'Storage for attachments, in GB.', 50),
    send_rate_per_second: said({ type: 'number' }, 'Emails per second.', 10),
    tiers: said(
      { ...TIERS, type: ['array', 'null'] },
      'The prices of a paid plan by number of emails. null for other plans.',
    ),
  },
  ['email_limit', 'contact_limit', 'domains_limit', 'storage_gb', 'send_rate_per_second'],
)

/** The times of a message, if they were set. */
const TIMES = {
  scheduled_at: said(time, 'When it is scheduled, as given. Absent if it wasn’t scheduled.'),
  expires_at: said(time, 'When it expires. It isn’t sent after this time. Absent if it doesn’t expire.'),
}

const EMAIL = record(
  {
    id: said(uuid, 'The ID of the email. Repeated calls return the same ID.'),
    team_id: said(uuid, 'The team that sent it.'),
    domain_id: said(uuid, 'The verified domain of `from`.'),
    template_id: nullable(uuid, 'null if it was sent with `html`.'),
    from_address: said(text, '`from`, normalized.', 'Acme <hello@example.com>'),
    to_emails: said(list(text), '`to`, in the order given.', ['ana@example.org']),
    cc_emails: said(list(text), '`cc`, in the order given. Absent if empty.', ['ben@example.org']),
    bcc_emails: said(list(text), '`bcc`, in the order given. Absent if empty.', ['archive@example.com']),
    subject: said(text, 'The subject, as given.', 'Your order has shipped'),
    html: said(text, 'The HTML with its variables filled in.', '<p>It is on its way.</p>'),
    size_kb: said({ type: 'number' }, 'The size of the HTML in kilobytes.', 0.02),
    tags: said(list(text), 'As given.', ['receipt']),
    status: said(oneOf(EMAIL_LADDER), 'The current status.', 'queued'),
    idempotency_key: said(orNull(text), 'The key it was stored under, if any.', 'order-1001-shipped'),
    created_at: said(time, 'When it was accepted.'),
    requeued_at: nullable(time, 'When it was last requeued.'),
    provider_message_id: nullable(text, 'The provider’s ID, set once the provider accepts the message.'),
    broadcast_id: nullable(uuid, 'The broadcast that it is part of.'),
    contact_id: nullable(
      uuid,
      'The contact, if the only recipient of `to`, `cc` and `bcc` is a stored contact.',
    ),
    unsubscribe_token: nullable(text, 'The last part of its unsubscribe link, if it has a contact.'),
    body_text: said(
      text,
      'The plain text, as given. Empty if none was given, even if a text is generated from the HTML when it is sent.',
      '',
    ),
    headers: nullable(map, 'Custom headers, as accepted.'),
    reply_to: said(text, 'The address without a name. Empty if not set.', 'support@example.com'),
    attachments: said(
      list(
        record({
          filename: said(text, 'As given.', 'invoice.pdf'),
          content_type: said(text, 'As given, or based on the file extension.', 'application/pdf'),
          size: said(count, 'In bytes, decoded.', 48_213),
          content_id: nullable(text, 'The ID that the HTML uses for it. null for ordinary attachments.'),
          sha256: said(text, 'SHA-256 of its bytes, in lower-case hex.', EXAMPLE_SHA256),
        }),
      ),
      'Its attachments. Absent if there are none.',
    ),
    ...TIMES,
  },
  ['cc_emails', 'bcc_emails', 'attachments', ...Object.keys(TIMES)],
)

const CONDITION = record(
  {
    property: said(text, 'The name of the property.', 'country'),
    op: said(oneOf(OPERATORS), 'The comparison.', 'eq'),
    value: said(
      { type: ['string', 'array'], items: text },
      'The value to compare with, if the comparison has one.',
      'FR',
    ),
  },
  ['value'],
)

const STAT_WORDS: Readonly<Partial<Record<BroadcastStat, string>>> = {
  made: 'Emails created for contacts.',
  skipped: 'Contacts that were skipped.',
}

export const STATS_SCHEMA = said(
  record(
    Object.fromEntries(
      BROADCAST_STATS.map((figure) => [
        figure,
        said(count, STAT_WORDS[figure] ?? `Emails whose current status is \`${figure}\`.`, 0),
      ]),
    ),
  ),
  'The number of emails it created, by their current status.',
)

export const AUDIENCE =
  'The number of matching contacts when it started. Once it is sent, contacts that left the audience in the meantime don’t count.'

const BROADCAST = record({
  id: said(uuid, 'Never changes.'),
  team_id: said(uuid, 'The team that sends it.'),
  name: said(text, 'The display name.', 'Spring news'),
  state: said(oneOf(BROADCAST_STATES), 'The current state.', 'draft'),
  state_reason: nullable(
    text,
    'Why it was paused automatically: `overdue`, `quota_exceeded`, `bounces`, `complaints`, `team_bounces`, `team_complaints`, `restored`, `from_domain_not_verified`, `topic_gone`, `no_audience`. After `team_bounces` or `team_complaints`, only an owner or operator can resume it. This API can’t.',
  ),
  template_id: said(uuid, 'Its template.'),
  from: said(text, 'The sender, normalized.', 'Acme <news@example.com>'),
  reply_to: said(text, 'The address without a name. Empty if not set.', ''),
  subject: said(text, 'Including its variables.', 'News for {{name}}'),
  topic_ids: said(
    list(uuid),
    'Contacts of these topics receive it. Can be empty for a draft from the dashboard.',
  ),
  exclude_topic_ids: said(list(uuid), 'Contacts of these topics don’t receive it.'),
  where: said(list(CONDITION), 'Conditions for the properties of contacts.'),
  variables: said(map, 'Default values for variables.', { name: 'you' }),
  headers: nullable(map, 'Custom headers, as accepted.'),
  tags: said(list(text), 'The tags of each of its emails.', ['news']),
  rate_per_minute: said(
    { type: ['integer', 'null'], minimum: 1 },
    'The maximum number of emails per minute.',
    null,
  ),
  send_at: nullable(time, 'When it is scheduled to start, if it is scheduled.'),
  idempotency_key: nullable(text, 'The key it was stored under, if any.'),
  audience: said(orNull(count), AUDIENCE, null),
  stats: STATS_SCHEMA,
  created_at: said(time, 'When it was created.'),
  updated_at: said(time, 'When it was last changed.'),
  started_at: nullable(time, 'When it started.'),
  ended_at: nullable(time, 'When it was sent or cancelled.'),
})

const CONTACT = record({
  id: said(uuid, 'Never changes.'),
  email: said(text, 'As first entered.', 'ana@example.org'),
  status: said(oneOf(CONTACT_STATUSES), 'The API can’t set `bounced` and `complained`.', 'subscribed'),
  properties: said(map, 'Your own properties by name. `{}` if there are none.', { name: 'Ana' }),
  subscribed_topic_ids: said(list(uuid), 'The topics the contact is subscribed to.', []),
  created_at: said(time, 'When it was created.'),
  updated_at: said(time, 'When it last changed.'),
})

/** A response of the API. */
export type Component = Exclude<keyof typeof COMPONENTS, 'Fault'>

export const COMPONENTS = {
  Contact: CONTACT,
  ContactPage: pageSchema('Contact'),
  Email: EMAIL,
  Broadcast: BROADCAST,
  BroadcastPage: pageSchema('Broadcast'),
  Upload: record({
    id: said(uuid, 'The `attachment_id` for emails.'),
    filename: said(text, 'As given.', 'invoice.pdf'),
    content_type: said(text, 'As given, or based on the file extension.', 'application/pdf'),
    size: said(count, 'In bytes.', 48_213),
    sha256: said(text, 'SHA-256 of its bytes, in lower-case hex.', EXAMPLE_SHA256),
    expires_at: said(time, 'New emails can refer to it until this time.'),
  }),
  WhatsappMessages: record({
    data: said(
      list(
        record(
          {
            id: said(uuid, 'The message.'),
            to: said(text, 'Its only recipient.', '+15555550101'),
            status: said(oneOf(WHATSAPP_LADDER), 'The current status.', 'queued'),
            ...TIMES,
          },
          Object.keys(TIMES),
        ),
      ),
      'One message per number.',
    ),
  }),
  Cancelled: record({ id: said(uuid, 'The ID of the cancelled message.') }),
  Moved: record({
    id: said(uuid, 'The ID of the rescheduled message.'),
    scheduled_at: said(time, 'The new scheduled time.'),
  }),
  BatchResult: record({
    data: said(
      list({
        ...record(
          {
            index: said(count, 'The item’s position in the call, from 0.', 0),
            id: said(uuid, 'Present if the item was accepted.'),
            error: reference('Fault'),
          },
          ['id', 'error'],
        ),
        description: 'Either `id` or `error`.',
        examples: [{ index: 0, id: EXAMPLE_ID }],
      }),
      'One result per item, in the order of the call.',
    ),
  }),
  Catalog: record({
    free_allowances: said(
      record({
        emails: said(count, 'Emails per month.', 5_000),
        contacts: said(count, 'Stored contacts.', 1_000),
      }),
      'What the free plan includes.',
    ),
    overage_per_1000_cents: said(
      orNull(count),
      'The price of 1,000 additional emails, if a plan has one.',
      90,
    ),
    plans: said(list(plan), 'In the order of the catalog.'),
    contacts_tiers: said(
      list(
        record({
          contacts: said(count, 'Stored contacts.', 10_000),
          monthly_cents: said(count, 'The price per month.', 1_500),
        }),
      ),
      'The prices by number of marketing contacts, for paid plans.',
    ),
  }),
  Fault: said(
    record({
      code: said(oneOf(CODES), 'For programs. Explained at /docs#codes.', 'bad_request'),
      message: said(text, 'For people. Names the field and what is wrong with it.', 'subject is required.'),
    }),
    'Why a call, or an item in it, was rejected.',
  ),
  Failure: record({ error: reference('Fault') }),
} satisfies Record<string, JsonSchema>
