/** Descriptions of the endpoints for the OpenAPI document and /docs. The schemas of the routes describe most fields. */
import type { Code } from '../../db/errors.ts'
import { type About, describedAs, type Group } from '../docs/about.ts'
import { DOMAIN, LATER } from '../docs/shown.ts'
import { MAX_UPLOAD_BYTES } from '../http/read-body.ts'

const EMAIL = { email: 'ana@example.org' }
const NOT_FOUND = ['contact_not_found'] as const
export const SEND = {
  idempotency_key:
    'A repeated call returns the original message and isn’t counted. For a single send, you can use the `Idempotency-Key` header instead.',
  template_id: 'A template from the dashboard. It is used instead of `html`.',
} as const

const PAST = 'A time up to 5 minutes in the past means now. Earlier times are rejected.'

export const SEND_TIMES = {
  scheduled_at: `When to send it, up to 90 days ahead. Sent immediately if left out. ${PAST}`,
  expires_in:
    'Seconds after `scheduled_at`, or after acceptance if not scheduled, until the message expires.',
} as const

/** Describes how a scheduled message is cancelled and rescheduled. */
export const aboutScheduled = (
  { name, group, noun, article }: { name: string; group: Group; noun: string; article: string },
  refusals: readonly Code[],
) =>
  ({
    cancel: {
      id: `cancel${name}`,
      group,
      summary: `Cancel a scheduled ${noun}`,
      description: [
        `The ${noun} is deleted. It no longer counts towards the quota, and its idempotency key can be used again. After its scheduled time it can no longer be cancelled.`,
      ],
      notes: { id: `The ID of the ${noun}.` },
      answers: { 200: { when: 'Cancelled.', body: 'Cancelled' } },
      refusals: [...refusals, 'invalid_state'],
    },
    move: {
      id: `reschedule${name}`,
      group,
      summary: `Reschedule ${article} ${noun}`,
      description: [
        'Its expiry moves by the same amount.',
        'A successful call counts towards the team’s send rate. Repeating the stored time changes nothing.',
      ],
      takes: 'NewTime',
      notes: { id: `The ID of the ${noun}.`, scheduled_at: `The new time, up to 90 days ahead. ${PAST}` },
      example: { scheduled_at: LATER },
      answers: { 200: { when: 'Rescheduled.', body: 'Moved' } },
      refusals: [...refusals, 'invalid_state', 'rate_limited'],
      rated: true,
    },
  }) satisfies Record<'cancel' | 'move', About>

const EMAIL_NOTES = {
  ...SEND,
  ...SEND_TIMES,
  from: '`hello@example.com` or `Acme <hello@example.com>`. The domain must be a verified domain of the team.',
  to: 'All recipients share one message. Each can have a name. At most 50 in total with `cc` and `bcc`.',
  cc: 'Recipients of copies. All recipients can see them.',
  bcc: 'Recipients of blind copies. No other recipient can see them.',
  html: 'Sent unchanged.',
  variables:
    'Values for the variables of the template, such as `{{name}}`. They are HTML-escaped, and extra variables are ignored.',
  text: 'The plain-text alternative. It is used instead of the template’s. If an email has none, a text is generated from its HTML when it is sent.',
  headers: 'Custom headers, at most 10, of printable ASCII. Some names are reserved.',
  reply_to: 'Stored as the address without a name.',
  tags: 'Labels for finding the email in the dashboard.',
  attachments: 'At most 20. An attachment with a `content_id` is shown inline with `<img src="cid:…">`.',
}

const EMAIL_REFUSALS = [
  'payload_too_large' as const,
  ...(['invalid_from', 'invalid_headers', 'invalid_reply_to', 'from_domain_not_verified'] as const),
  ...(['domain_not_allowed', 'not_found', 'quota_exceeded', 'rate_limited'] as const),
]

const ANEMAIL = {
  from: `Acme <hello@${DOMAIN}>`,
  to: ['Ana <ana@example.org>'],
  subject: 'Your order has shipped',
  html: '<p>It is on its way.</p>',
}

const CONTACT_NOTES = {
  email: 'Unique in the team, ignoring case.',
  properties: 'Text values by name.',
  topic_ids: 'Topics to subscribe the contact to.',
} as const

const STATUS_STAYS =
  'If the body has the fields `status`, `subscribed` or `unsubscribed`, they must match the contact, or the call is rejected. To change the status, use unsubscribe and resubscribe.'

export const BATCH_ANSWER = {
  when: 'The result of each item, in the order of the call.',
  body: 'BatchResult',
} as const

const EMAILS = describedAs('Emails', {
  sendEmail: {
    summary: 'Send one email',
    takes: 'NewEmail',
    takesIdempotencyKey: true,
    description: ['Stores the email and queues it for delivery. Either `html` or `template_id` is required.'],
    notes: EMAIL_NOTES,
    example: { ...ANEMAIL, idempotency_key: 'order-1001-shipped' },
    answers: {
      201: { when: 'Stored and queued.', body: 'Email' },
      200: { when: 'A repeated call. Returns the email stored with this key.', body: 'Email' },
    },
    refusals: EMAIL_REFUSALS,
    rated: true,
  },
  sendEmails: {
    summary: 'Send up to 100 emails',
    takes: 'NewEmail',
    description: [
      'Items are validated independently, except for the quota. If the new emails exceed the quota, nothing is sent.',
    ],
    notes: EMAIL_NOTES,
    example: {
      emails: [
        { ...ANEMAIL, idempotency_key: 'order-1001' },
        { ...ANEMAIL, idempotency_key: 'order-1002' },
      ],
    },
    answers: { 200: BATCH_ANSWER },
    refusals: ['batch_too_large', 'quota_exceeded'],
    rated: true,
  },
  uploadAttachment: {
    summary: 'Upload a file for emails',
    description: [
      `Accepts the raw bytes of a file, up to ${MAX_UPLOAD_BYTES / 1024 ** 2} MiB, with their \`Content-Type\`. Set the name with \`?filename=\` or \`Content-Disposition\`. Emails can refer to the file with \`attachment_id\` for 7 days.`,
    ],
    notes: { filename: 'The name of the file. It is used instead of `Content-Disposition`.' },
    file: { name: 'invoice.txt', type: 'text/plain', text: 'Invoice 1001' },
    answers: { 201: { when: 'Stored.', body: 'Upload' } },
    refusals: ['quota_exceeded'],
  },
})

const CONTACTS = describedAs('Contacts', {
  createContact: {
    summary: 'Create a contact',
    description: ['A new contact is subscribed.', STATUS_STAYS],
    takes: 'NewContact',
    notes: CONTACT_NOTES,
    example: { ...EMAIL, properties: { name: 'Ana' } },
    answers: { 201: { when: 'Created and subscribed.', body: 'Contact' } },
    refusals: ['contact_exists', 'quota_exceeded'],
  },
  listContacts: {
    summary: 'List contacts, newest first',
    notes: {
      limit: 'The size of a page (default: 20).',
      cursor: '`next_cursor` of the previous page.',
      email:
        'A part of the email address, ignoring case. An internationalized domain matches as entered and in ASCII form (`xn--…`).',
    },
    answers: { 200: { when: 'A page. It has `next_cursor` if there are more.', body: 'ContactPage' } },
    refusals: [],
  },
  getContact: {
    summary: 'Read a contact',
    answers: { 200: { when: 'The contact.', body: 'Contact' } },
    refusals: NOT_FOUND,
  },
  changeContact: {
    summary: 'Change a contact',
    description: [STATUS_STAYS],
    takes: 'ContactChange',
    notes: {
      properties: 'They replace all existing properties.',
      topic_ids: 'They replace all existing topics.',
    },
    example: { properties: { name: 'Ana', city: 'Lisbon' } },
    answers: { 200: { when: 'The updated contact.', body: 'Contact' } },
    refusals: NOT_FOUND,
  },
  deleteContact: { summary: 'Delete a contact', answers: { 204: { when: 'Deleted.' } }, refusals: NOT_FOUND },
  upsertContacts: {
    summary: 'Create or change up to 1,000 contacts',
    takes: 'ContactUpsert',
    description: [
      'Contacts are matched by email. For existing contacts, only properties are updated. Items that exceed the quota return `quota_exceeded`.',
    ],
    notes: { properties: 'If set, they replace all existing properties.' },
    example: { contacts: [{ ...EMAIL, properties: { name: 'Ana' } }, { email: 'ben@example.org' }] },
    answers: { 200: BATCH_ANSWER },
    refusals: ['batch_too_large', 'quota_exceeded'],
  },
  unsubscribeContact: {
    summary: 'Unsubscribe a contact',
    answers: {
      200: { when: 'The unsubscribed contact. Repeating the call changes nothing.', body: 'Contact' },
    },
    refusals: NOT_FOUND,
  },
  resubscribeContact: {
    summary: 'Subscribe a contact again',
    answers: { 200: { when: 'The subscribed contact.', body: 'Contact' } },
    refusals: ['contact_not_found', 'contact_suppressed'],
  },
  unsubscribeEmail: {
    summary: 'Unsubscribe an address in one call',
    takes: 'Unsubscription',
    notes: { topic_ids: 'If set, the contact only leaves these topics, and its status doesn’t change.' },
    example: EMAIL,
    answers: { 204: { when: 'Unsubscribed.' } },
    refusals: NOT_FOUND,
  },
})

const PLANS = describedAs('Plans', {
  listPlans: {
    summary: 'Read the catalog of plans',
    notes: { locale: '`en` or `fr`. Other values mean `en`.' },
    answers: {
      200: { when: 'The catalog, cached for a minute.', body: 'Catalog' },
      304: { when: 'Not changed since the ETag in `If-None-Match`.' },
    },
    refusals: [],
  },
})

export const ABOUT = { ...EMAILS, ...CONTACTS, ...PLANS }
