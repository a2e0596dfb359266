/** The descriptions of the broadcast endpoints. */
import { MAX_JSON_BYTES } from '../../db/messages/broadcasts/fields.ts'
import { describedAs } from '../docs/about.ts'
import { DOMAIN } from '../docs/shown.ts'

const ID = { id: 'The ID of the broadcast.' }

const AT_MOST = `At most ${MAX_JSON_BYTES / 1_024} KiB as JSON.`

const NOTES = {
  name: 'The display name. Recipients never see it.',
  template_id: 'A template from the dashboard that contains `{{unsubscribe_url}}`.',
  from: '`hello@example.com` or `Acme <hello@example.com>`. The domain must be verified when the broadcast starts.',
  reply_to: 'Stored as the address without a name.',
  subject: 'Can contain variables such as `{{name}}`.',
  topic_ids: 'Subscribed contacts with at least one of these topics receive it.',
  exclude_topic_ids: 'Contacts with one of these topics don’t receive it.',
  where: `Contacts must match all conditions. \`eq\`, \`ne\`, \`contains\`, \`gt\` and \`lt\` need a string, and \`in\` needs an array of strings. \`exists\` and \`missing\` have no value. \`gt\` and \`lt\` compare numerically if both values are decimal numbers, otherwise as text. ${AT_MOST}`,
  variables: `Default values for variables that a contact has no property for. A contact without a value for a variable is skipped. ${AT_MOST}`,
  headers: 'Custom headers, at most 10, of printable ASCII. `List-Unsubscribe` is set for each recipient.',
  tags: 'The tags of each of its emails.',
  rate_per_minute: 'The maximum number of emails per minute, spread evenly.',
  send_at:
    'When it starts, up to 90 days ahead. A draft without a time starts as soon as you call `send`. A time more than 5 minutes in the past is rejected.',
  idempotency_key: 'A repeated call returns the broadcast stored with this key.',
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
    description: ['Stores a draft. Nothing is sent until you start it.'],
    notes: NOTES,
    example: EXAMPLE,
    answers: {
      201: { when: 'Stored as a draft.', body: 'Broadcast' },
      200: { when: 'A repeated call. Returns the broadcast stored with this key.', body: 'Broadcast' },
    },
    refusals: INPUT,
  },
  listBroadcasts: {
    summary: 'List broadcasts',
    notes: { limit: 'The size of a page (default: 20).', cursor: 'The `next_cursor` of the previous page.' },
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
    description: ['Fields you leave out don’t change.'],
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
    summary: 'Send a test to up to 5 addresses',
    takes: 'BroadcastTest',
    description: [
      'Tests are ordinary emails and aren’t included in the stats. After the broadcast is scheduled or started, tests use the template version it had at that time.',
    ],
    notes: {
      ...ID,
      to: 'Up to 5 addresses.',
      contact:
        'The contact whose properties are used as variables. Without one, variables are replaced by their names.',
    },
    example: { to: ['ana@example.org'] },
    answers: { 200: { when: 'Queued as one email per address.', body: 'BatchResult' } },
    refusals: [...CHANGE, 'contact_not_found', 'from_domain_not_verified', 'quota_exceeded'],
  },
  sendBroadcast: {
    summary: 'Start or schedule a draft',
    takes: 'BroadcastSend',
    description: [
      'Needs a verified domain, an https `PUBLIC_URL` of the instance, `{{unsubscribe_url}}` in the template, an audience, and enough quota for all of it. The error lists everything that is missing.',
    ],
    notes: { ...ID, send_at: 'When it starts. Overrides the `send_at` of the draft.' },
    example: {},
    answers: { 202: { when: 'Started or scheduled.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
  pauseBroadcast: {
    summary: 'Pause a broadcast',
    description: ['Emails in progress are still sent. The others wait.'],
    notes: ID,
    answers: { 200: { when: 'Paused.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
  resumeBroadcast: {
    summary: 'Resume a broadcast',
    notes: ID,
    answers: { 200: { when: 'Resumed.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
  cancelBroadcast: {
    summary: 'Cancel a broadcast',
    description: ['Waiting emails are never sent and no longer count towards the quota.'],
    notes: ID,
    answers: { 200: { when: 'Cancelled.', body: 'Broadcast' } },
    refusals: CHANGE,
  },
})
