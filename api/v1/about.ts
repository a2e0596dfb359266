/** What the API's description says of endpoints in words. What they take is said by their schemas. */
import type { Code } from '../../db/errors.ts'
import { type About, describedAs, type Group } from '../docs/about.ts'
import { DOMAIN, LATER } from '../docs/shown.ts'
import { MAX_UPLOAD_BYTES } from '../http/read-body.ts'

const EMAIL = { email: 'ana@example.org' }
const NOT_FOUND = ['contact_not_found'] as const
export const SEND = {
  idempotency_key:
    'A replay answers the original row and costs nothing. For a single send, the `Idempotency-Key` header counts as well.',
  template_id: 'A template of the dashboard; it wins over `html`.',
} as const

export const SEND_TIMES = {
  scheduled_at:
    'When it goes, at most 90 days ahead; right away when it is left out. Up to 5 minutes in the past is now, more is refused.',
  expires_in:
    'For how many seconds, from its acceptance or from `scheduled_at`, it is worth sending: later it is not.',
} as const

/** What is said of cancelling and moving what waits for its time. */
export const aboutScheduled = (
  { name, group, noun, article }: { name: string; group: Group; noun: string; article: string },
  refusals: readonly Code[],
) =>
  ({
    cancel: {
      id: `cancel${name}`,
      group,
      summary: `Cancel ${article} ${noun} that waits for its time`,
      description: [
        `The ${noun} is gone as if it had never been sent: its place in the allowance and its idempotency key are free again. Once its time has come it cannot be cancelled any more.`,
      ],
      notes: { id: `The id of the ${noun}.` },
      answers: { 200: { when: 'Cancelled.', body: 'Cancelled' } },
      refusals: [...refusals, 'invalid_state'],
    },
    move: {
      id: `reschedule${name}`,
      group,
      summary: `Move ${article} ${noun} that waits for its time`,
      description: [
        'What expires has as long as before from the new time on.',
        'A call that is not rejected counts in the send rate, on both channels. The time that is stored already changes nothing.',
      ],
      takes: 'NewTime',
      notes: { id: `The id of the ${noun}.`, scheduled_at: SEND_TIMES.scheduled_at },
      example: { scheduled_at: LATER },
      answers: { 200: { when: 'Moved.', body: 'Moved' } },
      refusals: [...refusals, 'invalid_state', 'rate_limited'],
      rated: true,
    },
  }) satisfies Record<'cancel' | 'move', About>

const EMAIL_NOTES = {
  ...SEND,
  ...SEND_TIMES,
  from: '`hello@example.com` or `Acme <hello@example.com>`; its domain must be a verified one of the team.',
  to: 'All of them share one message; each may have a name. At most 50 with `cc` and `bcc`.',
  cc: 'They get the same message, which names them beside `to`.',
  bcc: 'They get the same message, which names them nowhere.',
  html: 'Sent as given.',
  variables: 'Fill the `{{name}}` slots of the template, HTML-escaped. Surplus ones are ignored.',
  text: 'The plain-text alternative. It wins over the template’s. An email without one gets a text made from its HTML when it is sent.',
  headers: 'Custom headers, at most 10, of printable ASCII. Some names are reserved.',
  reply_to: 'Reduced to its bare address.',
  tags: 'For finding it again in the dashboard.',
  attachments: 'At most 20. With a `content_id` a part is shown inline, by `<img src="cid:…">`.',
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
  email: 'Unique in the team, whatever its case.',
  properties: 'Free text by name.',
  topic_ids: 'Topics that the contact subscribes to.',
} as const

const STATUS_STAYS =
  'status and unsubscribed may be sent back as they were read; any other value is refused, since only unsubscribe and resubscribe change them.'

export const BATCH_ANSWER = {
  when: 'What became of each item, in the order of the call.',
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
      200: { when: 'A replay: the email that was stored under this key.', body: 'Email' },
    },
    refusals: EMAIL_REFUSALS,
    rated: true,
  },
  sendEmails: {
    summary: 'Send up to 100 emails',
    takes: 'NewEmail',
    description: [
      'Each item is judged by itself, but for the allowance: when the new emails would not all fit, nothing is sent.',
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
      `Takes the raw bytes of a file, at most ${MAX_UPLOAD_BYTES / 1024 ** 2} MiB, with their \`Content-Type\`. Its name comes by \`?filename=\` or \`Content-Disposition\`. For 7 days emails can refer to it by \`attachment_id\`.`,
    ],
    notes: { filename: 'The name of the file; it wins over `Content-Disposition`.' },
    file: { name: 'invoice.txt', type: 'text/plain', text: 'Invoice 1001' },
    answers: { 201: { when: 'Stored.', body: 'Upload' } },
    refusals: ['quota_exceeded'],
  },
})

const CONTACTS = describedAs('Contacts', {
  createContact: {
    summary: 'Create a contact',
    description: [STATUS_STAYS],
    takes: 'NewContact',
    notes: CONTACT_NOTES,
    example: { ...EMAIL, properties: { name: 'Ana' } },
    answers: { 201: { when: 'Created, subscribed.', body: 'Contact' } },
    refusals: ['contact_exists', 'quota_exceeded'],
  },
  listContacts: {
    summary: 'List contacts, newest first',
    notes: {
      limit: 'The size of a page; 20 when left out.',
      cursor: '`next_cursor` of the page before.',
      email: 'A part of the email, whatever its case, as it was given or in ASCII form.',
    },
    answers: { 200: { when: 'A page; `next_cursor` is there while more follow.', body: 'ContactPage' } },
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
    notes: { properties: 'Replace the whole map.', topic_ids: 'Replace the topics.' },
    example: { properties: { name: 'Ana', city: 'Lisbon' } },
    answers: { 200: { when: 'The contact as it is now.', body: 'Contact' } },
    refusals: NOT_FOUND,
  },
  deleteContact: { summary: 'Delete a contact', answers: { 204: { when: 'Deleted.' } }, refusals: NOT_FOUND },
  upsertContacts: {
    summary: 'Create or change up to 1,000 contacts',
    takes: 'ContactUpsert',
    description: [
      'Keyed on email. Of contacts that exist only properties are written. Items that do not fit the allowance come back as `quota_exceeded`.',
    ],
    notes: { properties: 'Replace the whole map when given.' },
    example: { contacts: [{ ...EMAIL, properties: { name: 'Ana' } }, { email: 'ben@example.org' }] },
    answers: { 200: BATCH_ANSWER },
    refusals: ['batch_too_large', 'quota_exceeded'],
  },
  unsubscribeContact: {
    summary: 'Unsubscribe a contact',
    answers: { 200: { when: 'The contact, unsubscribed. Repeating it changes nothing.', body: 'Contact' } },
    refusals: NOT_FOUND,
  },
  resubscribeContact: {
    summary: 'Subscribe a contact again',
    answers: { 200: { when: 'The contact, subscribed.', body: 'Contact' } },
    refusals: ['contact_not_found', 'contact_suppressed'],
  },
  unsubscribeEmail: {
    summary: 'Unsubscribe an address in one call',
    takes: 'Unsubscription',
    notes: { topic_ids: 'Leave these topics only; the status stays.' },
    example: EMAIL,
    answers: { 204: { when: 'Unsubscribed.' } },
    refusals: NOT_FOUND,
  },
})

const PLANS = describedAs('Plans', {
  listPlans: {
    summary: 'Read the catalog of plans',
    notes: { locale: '`en` or `fr`; `en` for any other.' },
    answers: {
      200: { when: 'The catalog, cached for a minute.', body: 'Catalog' },
      304: { when: 'Not changed since the ETag that `If-None-Match` names.' },
    },
    refusals: [],
  },
})

export const ABOUT = { ...EMAILS, ...CONTACTS, ...PLANS }
