/** What the API's description says of the calls of broadcasts in words; about.ts has the others. */
import { MAX_JSON_BYTES } from '../../db/messages/broadcasts/fields.ts'
import { describedAs } from '../docs/about.ts'
import { DOMAIN } from '../docs/shown.ts'

const ID = { id: 'The id of the broadcast.' }

const AT_MOST = `At most ${MAX_JSON_BYTES / 1_024} KiB as JSON.`

const NOTES = {
  name: 'What people call it; recipients never see it.',
  template_id: 'A template of the dashboard that has the slot `{{unsubscribe_url}}`.',
  from: '`hello@example.com` or `Acme <hello@example.com>`; its domain must be verified when it starts.',
  reply_to: 'Reduced to its bare address.',
  subject: 'May have `{{name}}` slots, as the template has.',
  topic_ids: 'It goes to subscribed contacts that have at least one of these topics.',
  exclude_topic_ids: 'Contacts with one of these get nothing.',
  where: `All must hold. \`eq\`, \`ne\`, \`contains\`, \`gt\` and \`lt\` take a string, \`in\` an array of strings, \`exists\` and \`missing\` none. \`gt\` and \`lt\` compare numbers when both sides are decimal, else text. ${AT_MOST}`,
  variables: `Fill slots that a contact’s properties leave empty. A contact with an empty slot is skipped. ${AT_MOST}`,
  headers: 'Custom headers, at most 10, of printable ASCII. `List-Unsubscribe` is set for each recipient.',
  tags: 'Of each of its emails.',
  rate_per_minute: 'How many emails a minute it sends at most, spread evenly.',
  send_at:
    'When it begins, at most 90 days ahead; right away when it is left out. More than 5 minutes in the past is refused.',
  idempotency_key: 'A replay answers the broadcast that was stored under this key.',
}

const EXAMPLE = {
  name: 'Spring news',
  template_id: '$TEMPLATE_ID',
  from: `Acme <news@${DOMAIN}>`,
  subject: 'News for {{name}}',
  topic_ids: ['$TOPIC_ID'],
  where: [{ property: 'name', op: 'exists' }],
  variables: { name: 'you' },
}

const INPUT = [
  'invalid_from',
  'invalid_headers',
  'invalid_reply_to',
  'domain_not_allowed',
  'not_found',
] as const
const CHANGE = ['not_found', 'domain_not_allowed', 'invalid_state'] as const

export const ABOUT_BROADCASTS = describedAs('Broadcasts', {
  createBroadcast: {
    summary: 'Create a draft',
    takes: 'NewBroadcast',
    description: ['Stores a draft. Nothing is sent until it is started.'],
    notes: NOTES,
    example: EXAMPLE,
    answers: {
      201: { when: 'Stored as a draft.', body: 'Broadcast' },
      200: { when: 'A replay: the broadcast that was stored under this key.', body: 'Broadcast' },
    },
    refusals: INPUT,
  },
  listBroadcasts: {
    summary: 'List broadcasts',
    notes: { limit: 'How many at most; 20 when left out.', cursor: 'The `next_cursor` of the page before.' },
    answers: { 200: { when: 'A page, newest first.', body: 'BroadcastPage' } },
    refusals: [],
  },
  getBroadcast: {
    summary: 'Read a broadcast with its stats',
    notes: ID,
    answers: { 200: { when: 'The broadcast.', body: 'Broadcast' } },
    refusals: ['not_found'],
  },
  changeBroadcast: {
    summary: 'Change a draft',
    takes: 'BroadcastChange',
    description: ['Fields that are left out stay as they are.'],
    notes: { ...NOTES, ...ID },
    example: { name: 'Summer news' },
    answers: { 200: { when: 'Changed.', body: 'Broadcast' } },
    refusals: [...INPUT, 'invalid_state'],
  },
  deleteBroadcast: {
    summary: 'Delete a draft',
    notes: ID,
    answers: { 204: { when: 'Deleted.' } },
    refusals: CHANGE,
  },
  testBroadcast: {
    summary: 'Send it to up to 5 addresses as a test',
    takes: 'BroadcastTest',
    description: [
      'Tests are ordinary emails and count in no figure of the broadcast. Once it is scheduled or started, they show the version of its template that was fixed then.',
    ],
    notes: {
      ...ID,
      to: 'Up to 5 addresses.',
      contact: 'The contact whose properties fill the slots; without one, slots show their names.',
    },
    example: { to: ['ana@example.org'] },
    answers: { 200: { when: 'Queued, one email for each address.', body: 'BatchResult' } },
    refusals: [...CHANGE, 'contact_not_found', 'from_domain_not_verified', 'quota_exceeded'],
  },
  sendBroadcast: {
    summary: 'Start or schedule a draft',
    takes: 'BroadcastSend',
    description: [
      'A start that is refused names everything that is missing: a verified domain, the public address, the slot `{{unsubscribe_url}}`, an audience, a quota that holds all of it.',
    ],
    notes: { ...ID, send_at: 'When it begins; it wins over the broadcast’s own.' },
    example: {},
    answers: { 202: { when: 'Started, or scheduled.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
  pauseBroadcast: {
    summary: 'Pause it',
    description: ['Emails that are being sent still go; the others wait.'],
    notes: ID,
    answers: { 200: { when: 'Paused.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
  resumeBroadcast: {
    summary: 'Resume it',
    notes: ID,
    answers: { 200: { when: 'Being sent again.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
  cancelBroadcast: {
    summary: 'Cancel it for good',
    description: ['Emails that wait are withdrawn, and give their places in the quota back.'],
    notes: ID,
    answers: { 200: { when: 'Cancelled.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
})
