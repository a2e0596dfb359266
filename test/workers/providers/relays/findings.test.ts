/**
 * The meaning of each kind of a hosted relay's events, and how each is matched to its email, time and
 * repeats.
 */
import type { ReportedEmail } from '../../../../db/messages/emails/apply-events.ts'
import { signedReference } from '../../../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { BREVO } from '../../../../workers/providers/relays/brevo.ts'
import { relayHeaderLine, withoutRelayHeader } from '../../../../workers/providers/relays/header.ts'
import { MAILGUN } from '../../../../workers/providers/relays/mailgun.ts'
import { POSTMARK } from '../../../../workers/providers/relays/postmark.ts'
import { createRelayReader, type RelayPage, textAt } from '../../../../workers/providers/relays/read-event.ts'
import { SENDGRID } from '../../../../workers/providers/relays/sendgrid.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import t, { type Test } from '../../../support/tap.ts'

/** An event with its kind, effect and message. Null if it changes nothing. */
type Case = [event: object, is: [kind: string, effect: string, words: string] | null]

function tableOf(t: Test, { find }: RelayPage, cases: readonly Case[]): void {
  for (const [event, is] of cases) {
    const found = find(event)
    t.strictSame(found && [found.kind, found.effect, found.words], is, JSON.stringify(event))
  }
}

t.test('Mailgun: severity, lists, status and reason classify a failure', async (t) => {
  const status = (fields: object) => ({ 'delivery-status': fields })
  const permanent = (fields: object, reason = 'bounce') => ({
    ...{ event: 'failed', severity: 'permanent', reason },
    ...status(fields),
  })
  const failing: [effect: string, event: object][] = [
    ['hard', permanent({ code: 550, message: '5.7.1 x' }, 'suppress-bounce')],
    ['hard', permanent({ code: 605, message: '5.7.1 x' })],
    ['unsubscribe', permanent({ code: 606, message: '5.7.1 x' })],
    ['unsubscribe', permanent({ code: 550 }, 'suppress-unsubscribe')],
    ['none', permanent({ code: 608, message: '5.7.1 x' })],
    ['none', permanent({ code: 550, 'enhanced-code': '5.7.1', message: 'x' })],
    ['hard', permanent({ code: 550, 'enhanced-code': '5.7.1', message: '5.1.1 x' })],
    ['none', permanent({ code: 550, message: '5.7.1 x', description: '5.1.1 x' })],
    ['none', permanent({ code: 550, description: '5.7.1 x' })],
    ['soft', permanent({ code: 550, message: '4.2.2 x' })],
    ['soft', permanent({ code: 498 })],
    ['hard', permanent({ code: 498, message: '5.1.1 x' })],
    ['soft', permanent({ code: 554 })],
    ['soft', permanent({ code: 550, message: '4.4.7 x' })],
    ['soft', permanent({ code: 602 }, 'old')],
    ['soft', permanent({ code: 602, message: '5.1.1 x' }, 'old')],
    ['none', permanent({ code: 550, message: '5.1.1 x' }, 'espblock')],
    ['hard', permanent({ code: 550, message: '5.1.1 x' })],
  ]
  for (const [effect, event] of failing)
    t.match(MAILGUN.find(event), { kind: 'bounced', effect }, JSON.stringify(event))
  const waiting = { event: 'failed', severity: 'temporary', reason: 'generic' }
  tableOf(t, MAILGUN, [
    [{ ...waiting, ...status({ code: 451, message: 'later' }) }, ['delayed', 'none', '451 later']],
    [{ ...waiting, ...status({ message: '', description: 'No MX' }) }, ['delayed', 'none', 'No MX']],
    [waiting, ['delayed', 'none', 'generic']],
    [permanent({ code: 550, message: 'no' }), ['bounced', 'soft', '550 no']],
    [permanent({ code: 607 }), ['complained', 'complaint', '607 bounce']],
    [permanent({}, 'suppress-complaint'), ['complained', 'complaint', 'suppress-complaint']],
    [{ event: 'failed', severity: 'other' }, null],
    [{ event: 'delivered', ...status({ code: 250, message: 'OK' }) }, ['delivered', 'delivered', '250 OK']],
    [{ event: 'rejected', reject: { reason: 'Rate limit' } }, ['bounced', 'none', 'Rate limit']],
    [{ event: 'complained' }, ['complained', 'complaint', '']],
    [{ event: 'opened', 'client-info': { 'user-agent': 'Mozilla' } }, ['opened', 'none', 'Mozilla']],
    [{ event: 'clicked', url: 'https://x.test' }, ['clicked', 'none', 'https://x.test']],
    [
      { event: 'opened', 'client-info': { 'user-agent': 'Mozilla/5.0' } },
      ['machine_opened', 'none', 'Mozilla/5.0'],
    ],
    [{ event: 'unsubscribed' }, ['unsubscribed', 'unsubscribe', '']],
  ])
})

t.test('SendGrid: bounces by status, drops by reason, machine opens apart', async (t) => {
  const bounce = (status: string, reason: string, type = 'bounce') => ({
    event: 'bounce',
    type,
    status,
    reason,
  })
  tableOf(t, SENDGRID, [
    [bounce('5.1.1', '550 unknown'), ['bounced', 'hard', '5.1.1 550 unknown']],
    [bounce('5.0.0', '550 no'), ['bounced', 'soft', '5.0.0 550 no']],
    [bounce('5.1.1', '', 'expired'), ['bounced', 'soft', '5.1.1']],
    [bounce('4.4.7', 'unable to get mx info'), ['bounced', 'soft', '4.4.7 unable to get mx info']],
    [bounce('5.1.1', '550 5.1.1 unknown'), ['bounced', 'hard', '550 5.1.1 unknown']],
    [bounce('5.7.1', ''), ['bounced', 'none', '5.7.1']],
    [bounce('5.0.0', '550 5.7.1 policy'), ['bounced', 'none', '5.0.0 550 5.7.1 policy']],
    [bounce('5.1.1', 'unknown', 'blocked'), ['bounced', 'soft', '5.1.1 unknown']],
    [{ event: 'delivered', response: '250 OK' }, ['delivered', 'delivered', '250 OK']],
    [{ event: 'deferred', response: '451 a', reason: 'b' }, ['delayed', 'none', '451 a']],
    [{ event: 'deferred', reason: 'b' }, ['delayed', 'none', 'b']],
    [{ event: 'spamreport' }, ['complained', 'complaint', '']],
    [{ event: 'click', url: 'https://x.test' }, ['clicked', 'none', 'https://x.test']],
    [{ event: 'open', useragent: 'Mozilla' }, ['opened', 'none', 'Mozilla']],
    [{ event: 'open', useragent: 'x', sg_machine_open: 'false' }, ['opened', 'none', 'x']],
    ...[true, 'true', 'True'].map(
      (sg_machine_open): Case => [{ event: 'open', sg_machine_open }, ['machine_opened', 'none', '']],
    ),
    ...['unsubscribe', 'group_unsubscribe'].map(
      (event): Case => [{ event }, ['unsubscribed', 'unsubscribe', '']],
    ),
    [
      { event: 'dropped', reason: 'Unsubscribed Address' },
      ['bounced', 'unsubscribe', 'dropped: Unsubscribed Address'],
    ],
    [
      { event: 'dropped', reason: 'Spam Reporting Address' },
      ['complained', 'complaint', 'dropped: Spam Reporting Address'],
    ],
    [{ event: 'processed' }, null],
  ])
  const dropped: [effect: string, reasons: string[]][] = [
    ['hard', ['Bounced Address', 'bounced', ' Bounced Address\n', 'Invalid', 'Invalid Address']],
    ['hard', ['Invalid Email Address', 'invalid e-mail address']],
    ['none', ['Invalid SMTPAPI header', 'Bounced Addresses', 'Was Bounced', '']],
  ]
  for (const [effect, reasons] of dropped)
    for (const reason of reasons)
      t.strictSame(SENDGRID.find({ event: 'dropped', reason }), {
        ...{ kind: 'bounced', effect, words: `dropped: ${reason}` },
      })
})

t.test('Postmark: each bounce type has its meaning and message', async (t) => {
  const bounce = (Type: string, fields = {}) => ({ RecordType: 'Bounce', Type, ...fields })
  const changed = (SuppressionReason: string) => ({
    ...{ RecordType: 'SubscriptionChange', SuppressSending: true, SuppressionReason },
  })
  const effects: Record<string, string[]> = {
    hard: ['BadEmailAddress', 'ManuallyDeactivated'],
    soft: ['HardBounce', 'SoftBounce', 'DnsError', 'Unknown'],
    none: [
      ...['SpamNotification', 'VirusNotification', 'Blocked', 'DMARCPolicy', 'SMTPApiError'],
      'TemplateRenderingFailed',
    ],
  }
  for (const [effect, types] of Object.entries(effects))
    for (const type of types)
      t.match(POSTMARK.find(bounce(type)), { kind: 'bounced', effect, words: type }, type)
  tableOf(t, POSTMARK, [
    [bounce('HardBounce', { Details: 'SMTP;  550 5.7.1 a' }), ['bounced', 'none', '550 5.7.1 a']],
    [bounce('HardBounce', { Details: 'smtp;550 smtp;a' }), ['bounced', 'soft', '550 smtp;a']],
    [bounce('HardBounce', { Details: 'smtp;550 5.1.1 a' }), ['bounced', 'hard', '550 5.1.1 a']],
    [
      bounce('HardBounce', { Description: 'Unable to deliver (ex: unknown user)' }),
      ['bounced', 'hard', 'Unable to deliver (ex: unknown user)'],
    ],
    [bounce('SoftBounce', { Details: '550 5.1.1 a' }), ['bounced', 'soft', '550 5.1.1 a']],
    [bounce('SoftBounce', { Details: '550 5.7.1 a' }), ['bounced', 'none', '550 5.7.1 a']],
    [bounce('SoftBounce', { Details: 'by smtp; a', Description: 'b' }), ['bounced', 'soft', 'by smtp; a']],
    [bounce('SoftBounce', { Details: '', Description: 'b' }), ['bounced', 'soft', 'b']],
    [bounce('Transient', { Details: '451 a' }), ['delayed', 'none', '451 a']],
    [bounce('SpamComplaint', { Details: 'a' }), ['complained', 'complaint', 'a']],
    [bounce('AutoResponder'), ['auto_reply', 'none', 'AutoResponder']],
    [bounce('Unsubscribe'), ['unsubscribed', 'unsubscribe', '']],
    [{ RecordType: 'SpamComplaint', Description: 'b' }, ['complained', 'complaint', 'b']],
    [{ RecordType: 'Delivery', Details: 'a' }, ['delivered', 'delivered', 'a']],
    [{ RecordType: 'Open', UserAgent: 'Mozilla' }, ['opened', 'none', 'Mozilla']],
    [{ RecordType: 'Click', OriginalLink: 'https://x.test' }, ['clicked', 'none', 'https://x.test']],
    [{ RecordType: 'Open', UserAgent: 'Mozilla/5.0' }, ['machine_opened', 'none', 'Mozilla/5.0']],
    [changed('ManualSuppression'), ['unsubscribed', 'unsubscribe', 'ManualSuppression']],
    [changed('HardBounce'), ['bounced', 'hard', 'HardBounce']],
    [changed('SpamComplaint'), ['complained', 'complaint', 'SpamComplaint']],
    [{ ...changed('HardBounce'), SuppressSending: false }, null],
    [{ RecordType: 'SubscriptionChange' }, null],
  ])
})

t.test('Brevo: each event has its meaning, lists spare contacts', async (t) => {
  const of = (event: string, reason?: string) => ({ event, ...(reason !== undefined && { reason }) })
  tableOf(t, BREVO, [
    [of('hard_bounce', '550 5.1.1 a'), ['bounced', 'hard', '550 5.1.1 a']],
    [of('hard_bounce', '550 5.7.1 a'), ['bounced', 'none', '550 5.7.1 a']],
    [of('soft_bounce', '5.1.1 a'), ['bounced', 'soft', '5.1.1 a']],
    [of('invalid_email', 'a'), ['bounced', 'hard', 'a']],
    [of('blocked', 'a'), ['bounced', 'none', 'a']],
    [of('error', 'a'), ['bounced', 'none', 'a']],
    [of('delivered', 'a'), ['delivered', 'delivered', 'a']],
    [of('deferred', 'a'), ['delayed', 'none', 'a']],
    [of('spam'), ['complained', 'complaint', '']],
    [of('complaint'), ['complained', 'complaint', '']],
    [of('opened'), ['opened', 'none', '']],
    [of('unique_opened'), ['opened', 'none', '']],
    [{ event: 'click', link: 'https://x.test' }, ['clicked', 'none', 'https://x.test']],
    [of('hard_bounce', '550 no'), ['bounced', 'soft', '550 no']],
    [of('soft_bounce', '5.7.1 a'), ['bounced', 'none', '5.7.1 a']],
    [of('proxy_open'), ['machine_opened', 'none', '']],
    [of('unique_proxy_open'), ['machine_opened', 'none', '']],
    [of('unsubscribed'), ['unsubscribed', 'unsubscribe', '']],
    [of('processed'), null],
  ])
})

const secrets = createSecrets(SECRET_KEY)
const REF = { team_id: '0190a1b2-0000-7000-8000-00000000000a', id: '0190a1b2-0000-7000-8000-00000000000b' }
const reference = signedReference(secrets, REF)
const received_at = new Date('2026-03-01T11:00:00.000Z')

const readText = (page: RelayPage, text: string) =>
  createRelayReader(page, secrets)({ body: Buffer.from(text), received_at }) as Promise<ReportedEmail[]>
const read = (page: RelayPage, event: object) => readText(page, JSON.stringify(event))

/** A delivery to Ana as each relay reports it, without a time. */
const DELIVERIES: [RelayPage, Record<string, unknown>][] = [
  [MAILGUN, { event: 'delivered', recipient: 'ana@x.test', 'user-variables': { heliograph: reference } }],
  [SENDGRID, { event: 'delivered', email: 'ana@x.test', heliograph: reference }],
  [SENDGRID, { event: 'delivered', email: 'ana@x.test', unique_args: { heliograph: reference } }],
  [POSTMARK, { RecordType: 'Delivery', Recipient: 'ana@x.test', Metadata: { heliograph: reference } }],
  [POSTMARK, { RecordType: 'Delivery', Email: 'ana@x.test', Metadata: { heliograph: reference } }],
  [BREVO, { event: 'delivered', email: 'ana@x.test', 'X-Mailin-custom': ` ${reference}\n` }],
]

t.test('each relay has its name, which its events carry', async (t) => {
  const pages = [MAILGUN, SENDGRID, POSTMARK, BREVO]
  const relays = pages.map(({ relay }) => relay)
  t.strictSame(relays, ['mailgun', 'sendgrid', 'postmark', 'brevo'])
})

t.test('reads each relay’s email and recipient from their place', async (t) => {
  for (const [page, event] of DELIVERIES) {
    t.match(
      await read(page, event),
      [
        {
          ...{ channel: 'email', ref: REF, kind: 'delivered', effect: 'delivered', recipient: 'ana@x.test' },
          ...{ detail: `${page.relay}: delivered`, provider_message_id: null },
          occurred_at: received_at.toISOString(),
        },
      ],
      JSON.stringify(event),
    )
  }
  const [[, mailgun] = []] = DELIVERIES
  t.strictSame(await read(MAILGUN, { ...mailgun, event: 'accepted' }), [])
  const blamed = { ...mailgun, event: 'failed', severity: 'permanent', reason: 'generic' }
  const said = { 'delivery-status': { code: 554, message: 'Email address is not verified' } }
  t.match(await read(MAILGUN, { ...blamed, ...said }), [{ kind: 'bounced', effect: 'none' }])
  t.strictSame(await read(MAILGUN, { ...mailgun, 'user-variables': {} }), [])
  t.equal(textAt(Object.create({ event: 'delivered' }), ['event']), '', 'an inherited key is none')
})

t.test('our Message-ID replaces the reference, bare or in brackets', async (t) => {
  const id = `${REF.id}@example.com`
  const found = async (page: RelayPage, event: object) => (await read(page, event)).map(({ ref }) => ref)
  const sent = (given: string) => ({ event: 'delivered', email: 'ana@x.test', 'smtp-id': given })
  for (const given of [id, `<${id}>`, ` <${id}>\n`])
    t.strictSame(await found(SENDGRID, sent(given)), [{ provider_message_id: id }], given)
  for (const other of [`x${id}`, `<${id}> x`, `x <${id}>`, '1@example.com', ''])
    t.strictSame(await found(SENDGRID, sent(other)), [], other)
  const headers = { 'message-id': id }
  const mailgun = { event: 'delivered', recipient: 'ana@x.test', message: { headers } }
  t.strictSame(await found(MAILGUN, mailgun), [{ provider_message_id: id }])
  const brevo = { event: 'delivered', email: 'ana@x.test', 'message-id': id }
  t.strictSame(await found(BREVO, brevo), [{ provider_message_id: id }])
  const postmark = { RecordType: 'Delivery', Recipient: 'ana@x.test', MessageID: REF.id }
  t.strictSame(await found(POSTMARK, postmark), [], 'its own id looks like one of ours')
})

t.test('times are seconds, milliseconds or dates', async (t) => {
  const at = async (page: RelayPage, name: string, value: unknown) => {
    const [, event] = DELIVERIES.find(([each]) => each === page) ?? []
    return (await read(page, { ...event, [name]: value })).map(({ occurred_at }) => occurred_at.toISOString())
  }
  const received = received_at.toISOString()
  const cases: [RelayPage, string, unknown, string][] = [
    [MAILGUN, 'timestamp', 1772359200.25, '2026-03-01T10:00:00.250Z'],
    [MAILGUN, 'timestamp', 1772359200, '2026-03-01T10:00:00.999Z'],
    [MAILGUN, 'timestamp', '1772359200', '2026-03-01T10:00:00.999Z'],
    [SENDGRID, 'timestamp', 1772359200, '2026-03-01T10:00:00.999Z'],
    [BREVO, 'ts_epoch', 1772359200001, '2026-03-01T10:00:00.001Z'],
    [BREVO, 'ts_epoch', 1e11, '1973-03-03T09:46:40.000Z'],
    [BREVO, 'ts_event', 1772359200, '2026-03-01T10:00:00.999Z'],
    [BREVO, 'ts', 1772359200, '2026-03-01T10:00:00.999Z'],
    [POSTMARK, 'DeliveredAt', '2026-03-01T10:00:00.2735393-00:30', '2026-03-01T10:30:00.273Z'],
    [POSTMARK, 'BouncedAt', '2026-03-01T10:00:00Z', '2026-03-01T10:00:00.000Z'],
    [POSTMARK, 'ReceivedAt', '2026-03-01T10:00:00Z', '2026-03-01T10:00:00.000Z'],
    [SENDGRID, 'timestamp', 'yesterday', received],
    [SENDGRID, 'timestamp', '', received],
    [SENDGRID, 'timestamp', true, received],
    [SENDGRID, 'timestamp', 1e300, received],
  ]
  for (const [page, name, value, is] of cases)
    t.strictSame(await at(page, name, value), [is], `${page.relay}: ${name} ${value}`)
})

t.test('only a repeat has the same key', async (t) => {
  const keys = async (page: RelayPage, events: object[]) => {
    const found = await Promise.all(events.map((event) => read(page, event)))
    return found.flat().map(({ event_key }) => event_key)
  }
  const once = async (page: RelayPage, first: object, ...others: object[]) => {
    const found = await keys(page, [first, ...others])
    t.equal(found.length, 1 + others.length)
    for (const key of found) t.match(key, new RegExp(`^${page.relay}:(?:delivered|clicked):[\\w-]{43}$`))
    return new Set(found).size
  }
  const own = { heliograph: reference, email: 'ana@x.test' }
  const first = { ...own, event: 'delivered', sg_event_id: 'e1', timestamp: 1772359200 }
  t.equal(await once(SENDGRID, first, { ...first, more: 1 }, { ...first, email: 'Ana@X.test' }), 1)
  const changes = [
    { sg_event_id: 'e2' },
    { timestamp: 1772359201 },
    { email: 'bo@x.test' },
    { event: 'click' },
  ]
  t.equal(await once(SENDGRID, first, ...changes.map((change) => ({ ...first, ...change }))), 5)
  const [, mailgun] = DELIVERIES[0] ?? []
  t.equal(await once(MAILGUN, { ...mailgun, id: 'a' }, { ...mailgun, id: 'a', more: 1 }), 1)
  const [, postmark] = DELIVERIES[3] ?? []
  t.equal(await once(POSTMARK, { ...postmark, ID: 1 }, { ...postmark, ID: 1, more: 1 }), 1)
  const [, brevo] = DELIVERIES[5] ?? []
  t.equal(await once(BREVO, { ...brevo, id: 1 }, { ...brevo, id: 1, more: 1 }), 2, 'its id is its webhook’s')
})

t.test('a missing or overlong recipient is an error', async (t) => {
  const about = (email: string) => read(SENDGRID, { event: 'delivered', heliograph: reference, email })
  for (const [given, recipient] of [
    ['Ana <Ana@x.test>', 'Ana@x.test'],
    ['no address', 'no address'],
    ['a'.repeat(1_000), 'a'.repeat(1_000)],
  ] as const)
    t.match(await about(given), [{ recipient }], given.slice(0, 20))
  await t.rejects(about(''), { message: 'the event has no recipient' })
  await t.rejects(about('a'.repeat(1_001)), { message: "the recipient of the event isn't an address" })
  await t.rejects(readText(BREVO, '{'), { message: 'the event is not JSON' })
  await t.rejects(readText(BREVO, '[]'), { message: 'the event is not an object' })
})

t.test('a message has the reference in its relay’s header, once', async (t) => {
  for (const [relay, line] of [
    ['mailgun', 'X-Mailgun-Variables: {"heliograph":"b-1"}'],
    ['sendgrid', 'X-SMTPAPI: {"unique_args":{"heliograph":"b-1"}}'],
    ['postmark', 'X-PM-Metadata-heliograph: b-1'],
    ['brevo', 'X-Mailin-custom: b-1'],
  ] as const)
    t.equal(relayHeaderLine(relay, 'b-1'), line)
  const email = outgoingEmail({ headers: { 'x-smtpapi': 'a', 'X-SMTPAPI': 'b', 'X-Mailin-custom': 'c' } })
  t.strictSame(withoutRelayHeader('sendgrid', email), { ...email, headers: { 'X-Mailin-custom': 'c' } })
  const bare = outgoingEmail({ headers: null })
  t.strictSame(withoutRelayHeader('sendgrid', bare), bare)
})
