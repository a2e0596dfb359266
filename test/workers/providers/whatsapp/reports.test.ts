// Webhooks of the WhatsApp Cloud API, read: many statuses and template states per body.

import fc from 'fast-check'
import type { WhatsappOutcome } from '../../../../workers/providers/whatsapp/provider.ts'
import { readWhatsappReport } from '../../../../workers/providers/whatsapp/reports.ts'
import { cloudError, statusWebhook } from '../../../sandbox/whatsapp.ts'
import { outgoingWhatsapp, startCloud } from '../../../support/cloud.ts'
import t from '../../../support/tap.ts'

const TEAM = '0190a000-0000-7000-8000-00000000000a'
const MESSAGE = '0190a000-0000-7000-8000-00000000000b'
const RECEIVED = new Date('2026-03-01T12:00:00Z')

const read = async (body: unknown) =>
  await readWhatsappReport({
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    received_at: RECEIVED,
  })
const status = (changes: Record<string, unknown> = {}) => ({
  id: 'wamid.HBgL',
  status: 'delivered',
  timestamp: '1750000000',
  recipient_id: '15555550101',
  biz_opaque_callback_data: `${TEAM}:${MESSAGE}`,
  ...changes,
})

t.test("a status becomes our message's event by our ids", async (t) => {
  t.strictSame(await read(statusWebhook('1', [status()])), [
    {
      channel: 'whatsapp',
      ref: { team_id: TEAM, id: MESSAGE },
      status: 'delivered',
      occurred_at: new Date(1_750_000_000_000),
      detail: '',
      event_key: 'wamid.HBgL:delivered',
      provider_message_id: 'wamid.HBgL',
      number: '1',
    },
  ])
})

t.test('without our ids the provider’s match', async (t) => {
  for (const data of [undefined, null, '', 'x', `${TEAM}`, `${TEAM}:${MESSAGE}:x`, 5, { a: 1 }]) {
    const [event] = await read(statusWebhook('1', [status({ biz_opaque_callback_data: data })]))
    t.match(event, { ref: { provider_message_id: 'wamid.HBgL' } }, JSON.stringify(data))
  }
  t.same(await read(statusWebhook('1', [status({ id: undefined, biz_opaque_callback_data: undefined })])), [])
  const [event] = await read(statusWebhook('1', [status({ id: 'a\u0000b' })]))
  t.match(event, { ref: { team_id: TEAM }, provider_message_id: null })
})

t.test('our own ids match in either case', async (t) => {
  const data = `${TEAM}:${MESSAGE}`.toUpperCase()
  t.match(await read(statusWebhook('1', [status({ biz_opaque_callback_data: data })])), [
    { ref: { team_id: TEAM, id: MESSAGE } },
  ])
})

t.test('a failure keeps code and details', async (t) => {
  const errors = [
    {
      code: 131026,
      title: 'Message undeliverable',
      message: 'Message undeliverable',
      error_data: { details: 'Not\u0000on WhatsApp' },
    },
    { code: 131047, title: 'Re-engagement message' },
  ]
  const [event] = await read(statusWebhook('1', [status({ status: 'failed', errors })]))
  t.match(event, {
    status: 'failed',
    detail: '131026 Message undeliverable: Not on WhatsApp; 131047 Re-engagement message',
    code: '131026',
    event_key: 'wamid.HBgL:failed',
  })
})

t.test('a failure affects template and number like a response', async (t) => {
  const failed = async (...codes: unknown[]) => {
    const errors = codes.map((code) => ({ code, title: 'Words' }))
    return read(statusWebhook('100', [status({ status: 'failed', errors })]))
  }
  t.match(await failed(132015), [{ channel: 'whatsapp', status: 'held', template: { status: 'paused' } }])
  t.match(await failed(132001, 132016), [{ template: { status: 'disabled' } }])
  t.match(await failed(132001), [{ template: { status: null } }])
  for (const [code, seconds] of [
    [131042, 300],
    [131031, 300],
    [190, 300],
    [131048, 3_600],
  ]) {
    const [event, ...pauses] = await failed(code)
    t.notOk(event && 'template' in event)
    t.match(event, { status: 'held' }, 'the account is at fault, not the message')
    const occurred_at = new Date(1_750_000_000_000)
    const reason = `${code} Words`
    t.strictSame(pauses, [{ channel: 'sender', sender: 'whatsapp:100', seconds, reason, occurred_at }])
  }
  t.match(await failed(130429), [{ status: 'held' }, { channel: 'sender', seconds: 60 }])
  t.match(await read(statusWebhook('100', [status({ status: 'failed' })])), [
    { status: 'failed', detail: /^$/ },
  ])
  t.match(await failed(131026, 131042), [{ status: 'failed' }, { channel: 'sender' }])
  for (const unknown of [[999999], [999999, 131000], [null]])
    t.match(await failed(...unknown), [{ status: 'failed' }], 'an unknown code is final')
  // About this message, the rate at that time, nothing known; and from an unnamed number.
  for (const code of [131026, 131056, 999999, '131042x', null]) t.equal((await failed(code)).length, 1)
  const errors = [{ code: 131042 }]
  t.equal((await read(statusWebhook(5 as never, [status({ status: 'failed', errors })]))).length, 1)
  t.equal((await read(statusWebhook('100', [status({ status: 'delivered', errors })]))).length, 1)
})

/** Meta's codes, and their effects on the message and its number. */
const CODES = {
  'the account or number needs manual action': {
    ...{ message: 'waits', number: 'pauses' },
    codes: [0, 3, 10, 190, 200, 299, 33, 368, 131031, 131042, 131037, 131045, 133010],
  },
  'the number is too fast': { message: 'waits', number: 'slows', codes: [130429, 4, 80007] },
  'the number sends spam': { message: 'waits', number: 'pauses', codes: [131048] },
  'the pair is too fast': { message: 'waits', number: null, codes: [131056] },
  transient: { message: 'waits', number: null, codes: [1, 2, 131000, 131016, 131057, 133004] },
  permanent: {
    ...{ message: 'fails', number: null },
    codes: [
      ...[131049, 130472, 131026, 131047, 131050, 131051, 131052, 131053, 131005, 131008, 131009, 131021],
      ...[131055, 130497, 100, 135000, 132005, 132012, 132018],
    ],
  },
  'the template': { message: 'fails', number: null, codes: [132000, 132001, 132007, 132068, 132069, 132016] },
} as const

t.test('codes have the same effect in responses and webhooks', async (t) => {
  let code: number | string = 0
  const { delivery } = await startCloud(t, {
    script: { onMessage: () => ({ status: 400, body: cloudError(code as number, 'Words') }) },
  })
  for (const [name, { codes, message, number }] of Object.entries(CODES)) {
    // Some of Meta's examples have codes as strings.
    for (code of [...codes, String(codes[0])]) {
      const outcome = await delivery.provider.send(outgoingWhatsapp())
      const errors = [{ code, title: 'Words' }]
      const [event, pause] = await read(statusWebhook('100', [status({ status: 'failed', errors })]))
      if (event?.channel !== 'whatsapp') throw new Error('no status')
      const inResponse = {
        message: outcome.kind === 'refused' ? 'fails' : 'waits',
        number: numberAfter(outcome),
      }
      t.same(inResponse, { message, number }, `${name}: ${code} in a response`)
      t.equal(event.status === 'failed' ? 'fails' : 'waits', message, `${name}: ${code} by webhook`)
      t.equal(pause?.channel, number === null ? undefined : 'sender')
      t.equal(event.wait_seconds, outcome.kind === 'deferred' ? outcome.wait_seconds : undefined)
      t.same(event.template, outcome.kind === 'refused' ? outcome.template : undefined)
    }
  }
})

function numberAfter(outcome: WhatsappOutcome): string | null {
  if (outcome.kind !== 'sender') return null
  return outcome.trouble === 'slow' ? 'slows' : 'pauses'
}

t.test('reads all statuses of one body', async (t) => {
  const statuses = ['sent', 'delivered', 'read', 'failed', 'played', 'deleted', 'SENT', 5].map((word) =>
    status({ status: word }),
  )
  const body = statusWebhook('1', statuses)
  const entries = [
    ...(body.entry as unknown[]),
    null,
    5,
    { changes: [null, { field: 'messages' }, { field: 'account_update', value: {} }] },
  ]
  const events = await read({ ...body, entry: [...entries, ...entries] })
  t.equal(events.length, 8)
})

t.test('an unreadable entry delays no other', async (t) => {
  const odd = [null, 5, 'x', [], status({ status: null }), status({ timestamp: 'never' })]
  const events = await read(statusWebhook('1', [...(odd as never[]), status({ status: 'read' })]))
  t.match(events, [{ occurred_at: RECEIVED.toISOString() }, { status: 'read' }])
  for (const code of [{ toString: null, valueOf: null }, [{ toString: 1 }], null, true]) {
    const coded = status({ status: 'failed', errors: [{ code, message: 'Undeliverable' }] })
    const [failed, other] = await read(statusWebhook('1', [coded, status({ status: 'read' })] as never[]))
    t.match([failed, other], [{ status: 'failed', detail: 'no code Undeliverable' }, { status: 'read' }])
  }
  const timeOf = async (timestamp: unknown) =>
    (await read(statusWebhook('1', [status({ timestamp }) as never])))[0]?.occurred_at
  for (const none of [0, '0', -1, 32_503_680_000, [1_750_000_000]])
    t.strictSame(await timeOf(none), RECEIVED, JSON.stringify(none))
  t.strictSame(await timeOf(32_503_679_999), new Date('2999-12-31T23:59:59Z'))
})

/** Builds an update of a template. */
const news = (field: string, value: Record<string, unknown>) => {
  const template = { message_template_name: 'order_ready', message_template_language: 'en-US' }
  const changes = [{ field, value: { ...template, message_template_id: 5, reason: 'NONE', ...value } }]
  return { object: 'whatsapp_business_account', entry: [{ id: '1', time: 1_750_000_000, changes }] }
}
const update = (event: string, title?: string) =>
  news('message_template_status_update', { event, ...(title === undefined ? {} : { other_info: { title } }) })

t.test('a template’s new state is read in our terms', async (t) => {
  t.strictSame(await read(update('PAUSED')), [
    {
      channel: 'whatsapp-template',
      name: 'order_ready',
      language: 'en-US',
      account_id: '1',
      number: null,
      status: 'paused',
      occurred_at: new Date(1_750_000_000_000),
    },
  ])
  const words = {
    APPROVED: 'approved',
    REINSTATED: 'approved',
    UNARCHIVED: 'approved',
    ARCHIVED: 'disabled',
    LOCKED: 'disabled',
    PENDING: 'pending',
    IN_APPEAL: 'pending',
    REJECTED: 'rejected',
    DISABLED: 'disabled',
    DELETED: 'disabled',
    PENDING_DELETION: 'disabled',
    paused: 'paused',
  }
  for (const [word, state] of Object.entries(words)) t.match(await read(update(word)), [{ status: state }])
  for (const word of ['FLAGGED', 'LIMIT_EXCEEDED', '__proto__', '']) t.same(await read(update(word)), [])
  t.same(await read(update(5 as never)), [])
})

t.test('a lock naming its end leaves the template usable', async (t) => {
  t.match(await read(update('LOCKED', 'UNPAUSE')), [{ status: 'approved' }])
  for (const title of ['FIRST_PAUSE', 'SECOND_PAUSE', 'RATE_LIMITING_PAUSE', ''])
    t.match(await read(update('LOCKED', title)), [{ status: 'disabled' }], title)
  t.match(await read(update('DISABLED', 'UNPAUSE')), [{ status: 'disabled' }])
})

t.test('a changed template is to be listed again', async (t) => {
  for (const field of ['message_template_components_update', 'template_category_update'])
    t.strictSame(await read(news(field, {})), [
      {
        channel: 'whatsapp-template-change',
        name: 'order_ready',
        language: 'en-US',
        account_id: '1',
        number: null,
        occurred_at: new Date(1_750_000_000_000),
      },
    ])
  t.equal((await read(news('messages', { statuses: [status()] }))).length, 1, 'without a word of its number')
  t.strictSame(await read(news('account_review_update', { statuses: [status()] })), [])
})

t.test('a template’s new category, announced category and quality are read', async (t) => {
  const facts = async (field: string, value: Record<string, unknown>) =>
    (await read(news(field, value))).filter(({ channel }) => channel === 'whatsapp-template-facts')
  const about = {
    ...{ channel: 'whatsapp-template-facts', name: 'order_ready', language: 'en-US' },
    ...{ account_id: '1', number: null, occurred_at: new Date(1_750_000_000_000) },
  }
  const [category, announced] = ['MARKETING', 'UTILITY']
  const changed = { previous_category: 'UTILITY', new_category: category, correct_category: 'UTILITY' }
  t.strictSame(await facts('template_category_update', changed), [{ ...about, category }])
  const announcement = { new_category: category, correct_category: announced }
  t.strictSame(await facts('template_category_update', announcement), [
    { ...about, announced_category: announced },
  ])
  t.strictSame(await facts('message_template_quality_update', { new_quality_score: 'RED' }), [
    { ...about, quality: 'RED' },
  ])
})

t.test('template updates name account, the hook’s number and template', async (t) => {
  for (const one of [update('DISABLED'), news('template_category_update', {})])
    t.match(await read({ ...one, hook: '901' }), [{ account_id: '1', number: '901' }])
  for (const gone of ['message_template_name', 'message_template_language'])
    for (const field of ['message_template_status_update', 'template_category_update'])
      t.strictSame(await read(news(field, { event: 'PAUSED', [gone]: undefined })), [])
})

t.test('a body that isn’t a JSON object is not read', async (t) => {
  for (const body of ['', '{']) await t.rejects(read(body))
  for (const body of ['[]', 'null', '5'])
    await t.rejects(read(body), { message: 'the report is not a JSON object' })
  t.same(await read({ object: 'page', entry: 'x' }), [])
})

t.test('any JSON object gives only storable events', async () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  await fc.assert(
    fc.asyncProperty(value, value, value, async (one, other, words) => {
      const statuses = [one, status({ errors: other, id: words, timestamp: one })] as never[]
      const events = await read(statusWebhook('1', statuses))
      return events.every(
        (event) =>
          !Number.isNaN(event.occurred_at.getTime()) &&
          !/\p{Cc}/u.test('detail' in event ? event.detail : ''),
      )
    }),
  )
})
