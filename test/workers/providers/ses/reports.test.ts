/** SES's reports become neutral events. DECISIONS: Delivery reports, Suppression. */
import type { ReportedEmail } from '../../../../db/messages/emails/apply-events.ts'
import { createSesReportReader } from '../../../../workers/providers/ses/reports.ts'
import {
  bounce,
  complaint,
  delivery,
  EMAIL_ID,
  SES_ID,
  sesEvent,
  sesMail,
  sesReport,
  TEAM_ID,
} from '../../../support/ses-events.ts'
import t from '../../../support/tap.ts'

const readSesReport = createSesReportReader('ses:eu-west-1')

const read = async (...given: Parameters<typeof sesReport>): Promise<ReportedEmail[]> =>
  (await readSesReport(sesReport(...given))) as ReportedEmail[]

const summary = ({ kind, effect, recipient, detail }: ReportedEmail) => [kind, effect, recipient, detail]
const at = (time: string): Date => new Date(`2026-03-01T${time}.000Z`)

t.test('tags match every event to its row', async (t) => {
  const [event] = await read(sesEvent('Send', { send: {} }))
  t.match(event, {
    channel: 'email',
    ref: { team_id: TEAM_ID, id: EMAIL_ID },
    occurred_at: at('12:00:00').toISOString(),
  })
  t.equal(event?.provider_message_id, SES_ID, 'which a row that lost its answer does not know')
  t.strictSame(event && summary(event), ['sent', 'none', null, ''])
})

t.test('without our tags, SES’s id matches', async (t) => {
  const own = { provider_message_id: SES_ID }
  const others: Record<string, unknown>[] = [
    {},
    { team_id: [TEAM_ID] },
    { email_id: [EMAIL_ID] },
    { team_id: [[TEAM_ID]], email_id: [[EMAIL_ID]] },
    { team_id: [TEAM_ID], email_id: ['not a uuid'] },
    { team_id: TEAM_ID, email_id: EMAIL_ID },
    { team_id: [], email_id: [] },
    JSON.parse('{"__proto__":{"team_id":["x"]}}'),
  ]
  for (const tags of others) t.match(await read(sesEvent('Send', {}, { tags })), [{ ref: own }])
  const { tags: _none, ...untagged } = sesMail()
  t.match(await read({ notificationType: 'Delivery', mail: untagged, ...delivery(['ana@example.com']) }), [
    { ref: own, kind: 'delivered' },
  ])
})

t.test('a delivery is reported for each recipient that it names', async (t) => {
  const events = await read(sesEvent('Delivery', delivery(['ana@example.com', 'bo@example.com'])))
  t.strictSame(events.map(summary), [
    ['delivered', 'delivered', 'ana@example.com', '250 2.6.0 Message received'],
    ['delivered', 'delivered', 'bo@example.com', '250 2.6.0 Message received'],
  ])
  t.same(events[0]?.occurred_at, at('12:00:03'))
})

const BOUNCES: [string, string, string][] = [
  ['Permanent', 'General', 'hard'],
  ['Permanent', 'NoEmail', 'hard'],
  ['Permanent', 'Suppressed', 'hard'],
  ['Permanent', 'OnAccountSuppressionList', 'hard'],
  ['Transient', 'MailboxFull', 'soft'],
  ['Transient', 'MessageTooLarge', 'none'],
  ['Transient', 'ContentRejected', 'none'],
  ['Transient', 'AttachmentRejected', 'none'],
  ['Undetermined', 'Undetermined', 'soft'],
  ['Undetermined', 'MessageTooLarge', 'none'],
  ['Permanent', 'ContentRejected', 'none'],
]

for (const [type, subType, effect] of BOUNCES) {
  t.test(`a bounce ${type}/${subType} means ${effect} for the contact`, async (t) => {
    const [event, ...others] = await read(sesEvent('Bounce', bounce(type, subType)))
    t.strictSame(event && summary(event), ['bounced', effect, 'ana@example.com', `${type}/${subType}`])
    t.same(event?.occurred_at, at('12:00:05'))
    t.same(others, [], 'the message had two recipients; the bounce is about one')
  })
}

t.test('an automatic reply is in the timeline and changes nothing', async (t) => {
  const [event] = await read(sesEvent('Bounce', bounce('Transient', 'General')))
  t.strictSame(event && summary(event), ['auto_reply', 'none', 'ana@example.com', 'Transient/General'])
})

t.test('status and reply of each recipient override the type', async (t) => {
  const recipient = (action: string, status: string, diagnosticCode?: string) => ({
    ...{ emailAddress: 'ana@example.com', action, status },
    ...(diagnosticCode !== undefined && { diagnosticCode }),
  })
  const kinds = async (type: string, subType: string, ...recipients: object[]) => {
    const events = await readSesReport(
      sesReport(sesEvent('Bounce', bounce(type, subType, recipients as never))),
    )
    return events.map((event) =>
      event.channel === 'email'
        ? `${event.kind} ${event.effect}`
        : event.channel === 'sender' && event.sender,
    )
  }
  const of = (...given: Parameters<typeof recipient>) => kinds('Permanent', 'General', recipient(...given))
  t.strictSame(await of('failed', '5.7.1', 'smtp; 554 blocked using zen.spamhaus.org'), ['bounced none'])
  t.strictSame(await of('failed', '5.2.2'), ['bounced soft'])
  t.strictSame(await of('failed', '5.1.1'), ['bounced hard'])
  t.strictSame(await of('failed', '5.0.0', 'smtp; 550 unknown user'), ['bounced hard'])
  const both = [recipient('failed', '5.0.0'), recipient('delayed', '4.0.0')]
  t.strictSame(await kinds('Transient', 'General', ...both), ['bounced soft', 'delayed none'])
  t.strictSame(await kinds('Transient', 'General', recipient('failed', '4.4.7')), ['bounced soft'])
  const sender = await of('failed', '5.0.0', 'smtp; 554 Email address is not verified')
  t.strictSame(sender, ['bounced none', 'ses:eu-west-1'], 'the sender pauses')
})

t.test('leaving SES’s list or topic unsubscribes', async (t) => {
  const topic = (subscriptionStatus: string, topicName = 'news') => ({ topicName, subscriptionStatus })
  const changed = async (now: object, before: object = {}) => {
    const subscription = { newTopicPreferences: now, oldTopicPreferences: before }
    return (await read(sesEvent('Subscription', { subscription }))).map(({ kind, effect }) => [kind, effect])
  }
  const left = [['unsubscribed', 'unsubscribe']]
  t.strictSame(await changed({ unsubscribeAll: true, topicSubscriptionStatus: [] }), left)
  t.strictSame(await changed({ unsubscribeAll: false, topicSubscriptionStatus: [topic('OptOut')] }), left)
  t.strictSame(await changed({ unsubscribeAll: false, topicSubscriptionStatus: [topic('OptIn')] }), [])
  const before = { topicSubscriptionStatus: [topic('OptOut')] }
  const joined = { topicSubscriptionStatus: [topic('OptOut'), topic('OptIn', 'offers')] }
  t.strictSame(await changed(joined, before), [], 'an opt-in changes nothing')
})

t.test('opens and clicks of machines are separate', async (t) => {
  for (const userAgent of ['Mozilla/5.0', 'Mozilla/5.0 (compatible; Barracuda Sentinel (EE))']) {
    t.match(await read(sesEvent('Open', { open: { userAgent } })), [
      { kind: 'machine_opened', effect: 'none' },
    ])
    t.match(await read(sesEvent('Click', { click: { userAgent } })), [{ kind: 'machine_clicked' }])
  }
  const userAgent = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15'
  t.match(await read(sesEvent('Open', { open: { userAgent } })), [{ kind: 'opened' }])
  t.match(await read(sesEvent('Click', { click: { userAgent } })), [{ kind: 'clicked' }])
})

t.test('a bounce has the receiving server’s message in storable form', async (t) => {
  const recipients = [
    {
      emailAddress: 'Ana <Ana@Example.com>',
      action: 'failed',
      status: '5.1.1',
      diagnosticCode: `smtp; 550 5.1.1\u0000 no\nsuch user ${'x'.repeat(900)}`,
    },
  ]
  const [event] = await read(sesEvent('Bounce', bounce('Permanent', 'NoEmail', recipients)))
  t.equal(event?.recipient, 'Ana@Example.com')
  t.match(event?.detail, /^Permanent\/NoEmail 5\.1\.1 smtp; 550 5\.1\.1 +no such user x+$/)
  t.equal(event?.detail.length, 500)
})

t.test('a complaint concerns its complainants; not-spam and auth-failure don’t count', async (t) => {
  for (const type of ['abuse', 'fraud', 'virus', 'other', undefined]) {
    const [event, ...others] = await read(sesEvent('Complaint', complaint(type)))
    const said = event && summary(event).slice(0, 3)
    t.strictSame(said, ['complained', 'complaint', 'ana@example.com'], type ?? 'no type')
    t.same(others, [])
  }
  for (const type of ['not-spam', 'auth-failure'])
    t.strictSame(await read(sesEvent('Complaint', complaint(type))), [], type)
})

t.test('opens, clicks and delays are separate events, redeliveries are not', async (t) => {
  const open = { ipAddress: '192.0.2.1', timestamp: '2026-03-01T14:00:00.000Z', userAgent: 'A browser' }
  const click = { ...open, link: 'https://example.com/a', linkTags: { section: ['top'] } }
  const delay = {
    delayType: 'MailboxFull',
    expirationTime: '2026-03-02T00:00:00.000Z',
    delayedRecipients: [{ emailAddress: 'bo@example.com', status: '4.2.2', diagnosticCode: 'smtp; 452' }],
    timestamp: '2026-03-01T12:30:00.000Z',
  }
  const reports = [
    sesEvent('Open', { open }),
    sesEvent('Open', { open: { ...open, timestamp: '2026-03-01T14:00:01.000Z' } }),
    sesEvent('Open', { open: { ...open, ipAddress: '192.0.2.2' } }),
    sesEvent('Click', { click }),
    sesEvent('Click', { click: { ...click, link: 'https://example.com/b' } }),
    sesEvent('DeliveryDelay', { deliveryDelay: delay }),
    sesEvent('DeliveryDelay', { deliveryDelay: { ...delay, timestamp: '2026-03-01T12:45:00.000Z' } }),
  ]
  const events = (await Promise.all(reports.map((report) => read(report)))).flat()
  t.strictSame(
    events.map((event) => summary(event).slice(0, 3)),
    [
      ...[1, 2, 3].map(() => ['opened', 'none', null]),
      ...[1, 2].map(() => ['clicked', 'none', null]),
      ...[1, 2].map(() => ['delayed', 'none', 'bo@example.com']),
    ],
  )
  t.match(events[3]?.detail, 'https://example.com/a')
  t.match(events[5]?.detail, 'MailboxFull 4.2.2 smtp; 452')
  t.equal(new Set(events.map(({ event_key }) => event_key)).size, reports.length)
  for (const [index, report] of reports.entries()) {
    const again = await read(report, { MessageId: 'another', Timestamp: '2026-03-01T15:00:00.000Z' })
    t.equal(again[0]?.event_key, events[index]?.event_key)
  }
})

t.test('both forms of an event share one key', async (t) => {
  const parts: [string, Record<string, unknown>][] = [
    ['Bounce', bounce('Permanent', 'General')],
    ['Complaint', complaint('abuse')],
    ['Delivery', delivery(['ana@example.com'])],
  ]
  for (const [type, part] of parts) {
    const [event] = await read(sesEvent(type, part))
    const { tags: _none, ...untagged } = sesMail()
    const [older] = await read({ notificationType: type, mail: untagged, ...part })
    t.equal(older?.event_key, event?.event_key, type)
    t.equal(older?.effect, event?.effect, type)
  }
})

t.test('a rejection by SES after acceptance spares the contact', async (t) => {
  const reject = await read(sesEvent('Reject', { reject: { reason: 'Bad content' } }))
  t.strictSame(reject.map(summary), [['bounced', 'none', null, 'rejected by SES: Bad content']])
  const failure = { errorMessage: 'Attribute is missing', templateName: 'T' }
  const rendering = await read(sesEvent('Rendering Failure', { failure }))
  t.strictSame(rendering.map(summary), [
    ['bounced', 'none', null, 'could not be rendered by SES: Attribute is missing'],
  ])
})

t.test('ignores list changes and a topic’s test message', async (t) => {
  t.strictSame(await read(sesEvent('Subscription', { subscription: { contactList: 'x' } })), [])
  t.strictSame(await read('Successfully validated SNS topic for Amazon SES event publishing.'), [])
})

t.test('an unreadable report is a descriptive error', async (t) => {
  const cases: [unknown, RegExp][] = [
    ['hello', /is not JSON/],
    ['null', /form/],
    [[], /form/],
    [{ eventType: 'Send' }, /form.*mail/],
    [sesEvent('Bounce', { bounce: { bounceType: 'Permanent' } }), /form.*bounce/],
    [sesEvent('Bounce', bounce('Permanent', 'General', [{ emailAddress: 5 }])), /form/],
    [{ ...sesEvent('Send', {}), mail: { messageId: 5 } }, /form.*messageId/],
    [sesEvent('Delivery', { delivery: { recipients: [5] } }), /form.*recipients/],
    [sesEvent('Complaint', { complaint: { complainedRecipients: 5 } }), /form.*complainedRecipients/],
    [
      sesEvent('DeliveryDelay', { deliveryDelay: { delayType: 5, delayedRecipients: [] } }),
      /form.*delayType/,
    ],
    [sesEvent('Open', { open: { userAgent: 5 } }), /form.*userAgent/],
    [sesEvent('Click', { click: { link: 5 } }), /form.*link/],
    [sesEvent('Reject', { reject: { reason: 5 } }), /form.*reason/],
    [sesEvent('Rendering Failure', { failure: { errorMessage: 5 } }), /form.*errorMessage/],
    [sesEvent('constructor', {}), /unknown SES event: constructor/],
    [{ mail: sesMail() }, /unknown SES event: no type/],
  ]
  for (const [message, reason] of cases) {
    await t.rejects(read(typeof message === 'string' ? message : JSON.stringify(message)), {
      message: reason,
    })
  }
  const bare = { ...sesReport({}), body: Buffer.from('{}') }
  await t.rejects(readSesReport(bare), { message: /form/ })
  await t.rejects(readSesReport({ ...bare, body: Buffer.from([0xff]) }), { message: /is not JSON/ })
})

t.test('missing parts are empty, the time is the email’s', async (t) => {
  const opened = await read(sesEvent('Open', {}))
  t.strictSame(opened.map(summary), [['opened', 'none', null, '']])
  const agent = await read(sesEvent('Open', { open: { userAgent: 'A browser' } }))
  t.strictSame(agent.map(summary), [['opened', 'none', null, 'A browser']])
  t.strictSame((await read(sesEvent('Click', {}))).map(summary), [['clicked', 'none', null, '']])
  for (const type of ['Bounce', 'Complaint', 'Delivery', 'DeliveryDelay'])
    t.strictSame(await read(sesEvent(type, {})), [], type)
  for (const type of ['Reject', 'Rendering Failure'])
    t.match((await read(sesEvent(type, {})))[0]?.detail, / by SES:$/, type)
  const [odd] = await read(sesEvent('Delivery', delivery(['no address'])))
  t.equal(odd?.recipient, 'no address')
  const silent = delivery(['ana@example.com'], { smtpResponse: undefined, timestamp: 'yesterday' })
  const [delivered] = await read(sesEvent('Delivery', silent))
  t.strictSame([delivered?.detail, delivered?.occurred_at], ['', at('12:00:00')])
  const [bounced] = await read(
    sesEvent(
      'Bounce',
      bounce('Transient', 'General', [{ emailAddress: 'ana@example.com', status: '', diagnosticCode: null }]),
    ),
  )
  t.equal(bounced?.detail, 'Transient/General')
  const [complained] = await read(sesEvent('Complaint', complaint('abuse')))
  t.match(complained?.detail, /^complaint abuse/)
})

t.test('a key depends on the recipient but not its case', async (t) => {
  const keyOf = async (address: string) =>
    (await read(sesEvent('Delivery', delivery([address]))))[0]?.event_key
  t.equal(await keyOf('Ana@Example.com'), await keyOf('ana@example.com'))
  t.not(await keyOf('bo@example.com'), await keyOf('ana@example.com'))
  t.match(await keyOf('ana@example.com'), /^ses:delivery:[\w-]{43}$/)
})

t.test('an error names the broken notification or content', async (t) => {
  const { body, ...rest } = sesReport(sesEvent('Send', {}))
  const envelope = JSON.parse(body.toString())
  const as = (changes: object) =>
    readSesReport({ ...rest, body: Buffer.from(JSON.stringify({ ...envelope, ...changes })) })
  await t.rejects(as({ Type: 'SubscriptionConfirmation' }), {
    message: 'not a report but an SNS SubscriptionConfirmation',
  })
  await t.rejects(as({ Message: '{' }), { message: 'its message is not JSON' })
  await t.rejects(as({ Message: '{}' }), { message: /^its message doesn't have SES's format: mail/ })
  await t.rejects(as({ Message: 5 }), { message: /^the report doesn't have SES's format: Message/ })
  await t.rejects(as({ Message: 'x Successfully validated SNS topic for Amazon SES event publishing' }))
  await t.rejects(readSesReport({ ...rest, body: Buffer.from('x') }), { message: 'the report is not JSON' })
})
