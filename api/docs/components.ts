/** What the API answers, as JSON schemas. The tests hold every answer against them. */

import { CONTACT_STATUSES } from '../../db/audience/contacts/contacts.sql.ts'
import { EMAIL_LADDER } from '../../db/channels/email.ts'
import { WHATSAPP_LADDER } from '../../db/channels/whatsapp.ts'
import { CODES } from '../../db/errors.ts'
import { OPERATORS } from '../../db/messages/broadcasts/operators.ts'
import { BROADCAST_STATES } from '../../db/messages/broadcasts/state.ts'
import { BROADCAST_FIGURES, type Figure } from '../../db/stats/daily/broadcasts.sql.ts'
import { EXAMPLE_ID } from './example.ts'
import type { JsonSchema } from './json-schema.ts'
import { count, list, map, orNull, record, said, text, time, uuid } from './parts.ts'

const EXAMPLE_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export type Component =
  | 'Contact'
  | 'ContactPage'
  | 'Email'
  | 'Broadcast'
  | 'BroadcastPage'
  | 'Upload'
  | 'WhatsappMessages'
  | 'Cancelled'
  | 'Moved'
  | 'BatchResult'
  | 'Catalog'
  | 'Failure'

const reference = (name: Component | 'Fault'): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const pageSchema = (name: 'Contact' | 'Broadcast'): JsonSchema =>
  record(
    {
      data: said(list(reference(name)), `The ${name.toLowerCase()}s, newest first.`),
      next_cursor: said(text, 'The `cursor` of the next page; absent on the last one.', '20'),
    },
    ['next_cursor'],
  )

const TIERS = list(
  record(
    {
      emails: said(count, 'Emails a month.', 50_000),
      monthly_cents: said(count, 'The price of a month.', 2_000),
      annual_cents: said(count, 'The price of a year, where there is one.', 20_000),
    },
    ['annual_cents'],
  ),
)

const plan = record(
  {
    key: said(text, 'What the plan is called in calls.', 'pro'),
    kind: said(
      { type: 'string', enum: ['free', 'paid', 'custom'] },
      'Custom plans are sold by talking.',
      'paid',
    ),
    name: said(text, 'Localized.', 'Pro'),
    blurb: said(text, 'Localized.', 'For products that grow'),
    cta: said(text, 'The words on its button, localized.', 'Choose Pro'),
    featured: said({ type: 'boolean' }, 'Whether to put it forward.', true),
    benefits: said(list(text), 'Localized.', ['25 sending domains']),
    email_limit: said(count, 'Emails a month; of free plans.', 5_000),
    contact_limit: said(count, 'Stored contacts; of free plans.', 1_000),
    domains_limit: said(count, 'Sending domains.', 25),
    storage_gb: said(count, 'Bytes of attachments, in GB.', 50),
    send_rate_per_second: said({ type: 'number' }, 'Emails a second.', 10),
    tiers: said({ ...TIERS, type: ['array', 'null'] }, 'Sizes of a paid plan; null for the others.'),
  },
  ['email_limit', 'contact_limit', 'domains_limit', 'storage_gb', 'send_rate_per_second'],
)

/** What a row shows of its time, when that was given. */
const TIMES = {
  scheduled_at: said(time, 'When it is to go, as given; absent when it was to go right away.'),
  expires_at: said(time, 'From when on it is not sent any more; absent when it does not expire.'),
}

const EMAIL = record(
  {
    id: said(uuid, 'The same in every replay.'),
    team_id: said(uuid, 'The team that sent it.'),
    domain_id: said(uuid, 'The verified domain of `from`.'),
    template_id: said(orNull(uuid), 'null for one sent with `html`.', null),
    from_address: said(text, '`from`, normalized.', 'Acme <hello@example.com>'),
    to_emails: said(list(text), '`to`, in its order.', ['ana@example.org']),
    cc_emails: said(list(text), '`cc`, in its order; absent when there is none.', ['ben@example.org']),
    bcc_emails: said(list(text), '`bcc`, in its order; absent when there is none.', ['archive@example.com']),
    subject: said(text, 'The subject, as given.', 'Your order has shipped'),
    html: said(text, 'The HTML with its variables filled in.', '<p>It is on its way.</p>'),
    size_kb: said({ type: 'number' }, 'The size of the HTML in kilobytes.', 0.02),
    tags: said(list(text), 'As given.', ['receipt']),
    status: said({ type: 'string', enum: EMAIL_LADDER }, 'How far it has come.', 'queued'),
    idempotency_key: said(orNull(text), 'The key it was stored under, if any.', 'order-1001-shipped'),
    created_at: said(time, 'When it was accepted.'),
    requeued_at: said(orNull(time), 'When it was last queued again.', null),
    provider_message_id: said(orNull(text), 'The provider’s id, once it was handed over.', null),
    broadcast_id: said(orNull(uuid), 'The broadcast that it is part of.', null),
    contact_id: said(
      orNull(uuid),
      'The contact, when its only recipient, of all three lists, is a stored one.',
      null,
    ),
    unsubscribe_token: said(
      orNull(text),
      'What its unsubscribe link ends with, when it has a contact.',
      null,
    ),
    body_text: said(text, 'The plain text; empty when there is none.', ''),
    headers: said(orNull(map), 'Custom headers, as accepted.', null),
    reply_to: said(text, 'The bare address; empty when there is none.', 'support@example.com'),
    attachments: said(
      list(
        record({
          filename: said(text, 'As given.', 'invoice.pdf'),
          content_type: said(text, 'As given, or by the ending of the name.', 'application/pdf'),
          size: said(count, 'In bytes, decoded.', 48_213),
          content_id: said(orNull(text), 'What the html refers to it by; null: it is attached.', null),
          sha256: said(text, 'Of its bytes, in lower-case hex.', EXAMPLE_SHA256),
        }),
      ),
      'What it carries; absent when nothing.',
    ),
    ...TIMES,
  },
  ['cc_emails', 'bcc_emails', 'attachments', ...Object.keys(TIMES)],
)

const CONDITION = record(
  {
    property: said(text, 'The name of the property.', 'country'),
    op: said({ type: 'string', enum: OPERATORS }, 'How it is compared.', 'eq'),
    value: said(
      { type: ['string', 'array'], items: text },
      'What it is compared with, where there is one.',
      'FR',
    ),
  },
  ['value'],
)

const FIGURE_WORDS: Readonly<Partial<Record<Figure, string>>> = {
  made: 'Emails that were made for contacts.',
  skipped: 'Contacts that were picked and get none.',
}

export const STATS_SCHEMA = said(
  record(
    Object.fromEntries(
      BROADCAST_FIGURES.map((figure) => [
        figure,
        said(count, FIGURE_WORDS[figure] ?? `Emails that are ${figure} now.`, 0),
      ]),
    ),
  ),
  'How many emails it made, and how they stand now.',
)

const BROADCAST = record({
  id: said(uuid, 'Stays the same whatever else changes.'),
  team_id: said(uuid, 'The team that sends it.'),
  name: said(text, 'What people call it.', 'Spring news'),
  state: said({ type: 'string', enum: BROADCAST_STATES }, 'Where it stands.', 'draft'),
  state_reason: said(
    orNull(text),
    'Why it is paused, when nobody paused it: `overdue`, `quota_exceeded`, `bounces`, `complaints`, `restored`.',
    null,
  ),
  template_id: said(uuid, 'Its template.'),
  from: said(text, 'The sender, normalized.', 'Acme <news@example.com>'),
  reply_to: said(text, 'The bare address; empty when there is none.', ''),
  subject: said(text, 'With its slots.', 'News for {{name}}'),
  topic_ids: said(
    list(uuid),
    'The topics that it goes to. Of a draft that is still being written on the dashboard there may be none.',
  ),
  exclude_topic_ids: said(list(uuid), 'The topics whose contacts get nothing.'),
  where: said(list(CONDITION), 'What properties must be.'),
  variables: said(map, 'Defaults for slots.', { name: 'you' }),
  headers: said(orNull(map), 'Custom headers, as accepted.', null),
  tags: said(list(text), 'Of each of its emails.', ['news']),
  rate_per_minute: said({ type: ['integer', 'null'], minimum: 1 }, 'The most that it sends a minute.', null),
  send_at: said(orNull(time), 'When it begins, if not right away.', null),
  idempotency_key: said(orNull(text), 'The key it was stored under, if any.', null),
  audience: said({ type: ['integer', 'null'], minimum: 0 }, 'How many contacts fitted when it began.', null),
  stats: STATS_SCHEMA,
  created_at: said(time, 'When it was created.'),
  updated_at: said(time, 'When it was changed last.'),
  started_at: said(orNull(time), 'When it began.', null),
  ended_at: said(orNull(time), 'When it was sent or cancelled.', null),
})

const CONTACT = record({
  id: said(uuid, 'Stays the same whatever else changes.'),
  email: said(text, 'As it was first given.', 'ana@example.org'),
  status: said(
    { type: 'string', enum: CONTACT_STATUSES },
    '`bounced` and `complained` are set by delivery reports alone.',
    'subscribed',
  ),
  properties: said(map, 'Yours, by name; `{}` when there are none.', { name: 'Ana' }),
  subscribed_topic_ids: said(list(uuid), 'The topics that it subscribes to.', []),
  created_at: said(time, 'When it was created.'),
  updated_at: said(time, 'When it last changed.'),
})

export const COMPONENTS: Readonly<Record<Component | 'Fault', JsonSchema>> = {
  Contact: CONTACT,
  ContactPage: pageSchema('Contact'),
  Email: EMAIL,
  Broadcast: BROADCAST,
  BroadcastPage: pageSchema('Broadcast'),
  Upload: record({
    id: said(uuid, 'For `attachment_id`.'),
    filename: said(text, 'As given.', 'invoice.pdf'),
    content_type: said(text, 'As given, or by the ending of the name.', 'application/pdf'),
    size: said(count, 'In bytes.', 48_213),
    sha256: said(text, 'Of its bytes, in lower-case hex.', EXAMPLE_SHA256),
    expires_at: said(time, 'Until when new emails can refer to it.'),
  }),
  WhatsappMessages: record({
    data: said(
      list(
        record(
          {
            id: said(uuid, 'The message.'),
            to: said(text, 'Its only recipient.', '+15555550101'),
            status: said({ type: 'string', enum: WHATSAPP_LADDER }, 'How far it has come.', 'queued'),
            ...TIMES,
          },
          Object.keys(TIMES),
        ),
      ),
      'A message for each number.',
    ),
  }),
  Cancelled: record({ id: said(uuid, 'What was cancelled.') }),
  Moved: record({ id: said(uuid, 'What was moved.'), scheduled_at: said(time, 'When it goes.') }),
  BatchResult: record({
    data: said(
      list({
        ...record(
          {
            index: said(count, 'The item’s place in the call, from 0.', 0),
            id: said(uuid, 'There when it was accepted.'),
            error: reference('Fault'),
          },
          ['id', 'error'],
        ),
        description: 'Either `id` or `error`.',
        examples: [{ index: 0, id: EXAMPLE_ID }],
      }),
      'An outcome for each item, in the order of the call.',
    ),
  }),
  Catalog: record({
    free_allowances: said(
      record({
        emails: said(count, 'Emails a month.', 5_000),
        contacts: said(count, 'Stored contacts.', 1_000),
      }),
      'What the free plan includes.',
    ),
    overage_per_1000_cents: said(orNull(count), 'The price of 1,000 more emails, where a plan has one.', 90),
    plans: said(list(plan), 'In the order of the catalog.'),
    contacts_tiers: said(
      list(
        record({
          contacts: said(count, 'Stored contacts.', 10_000),
          monthly_cents: said(count, 'The price of a month.', 1_500),
        }),
      ),
      'Sizes of marketing contacts, for paid plans.',
    ),
  }),
  Fault: said(
    record({
      code: said({ type: 'string', enum: CODES }, 'For programs: explained at /docs#codes.', 'bad_request'),
      message: said(text, 'For people: it names the field, and what it must be.', 'subject is required'),
    }),
    'Why a call, or an item of it, was refused.',
  ),
  Failure: record({ error: reference('Fault') }),
}
