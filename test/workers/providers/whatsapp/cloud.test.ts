// The WhatsApp Cloud API adapter with a simulated API: requests field by field, and each error class.

import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { createWhatsappProvider } from '../../../../workers/providers/whatsapp/cloud.ts'
import { judgeError, judgeFailure, judgeStatus } from '../../../../workers/providers/whatsapp/faults.ts'
import { type CloudAnswer, cloudError } from '../../../sandbox/whatsapp.ts'
import { makeCertificate } from '../../../support/certificate.ts'
import { ACCESS_TOKEN, outgoingWhatsapp, PHONE_NUMBER_ID, startCloud } from '../../../support/cloud.ts'
import { freePort } from '../../../support/free-port.ts'
import { portOf } from '../../../support/port.ts'
import { reset } from '../../../support/reset.ts'
import t, { type Test } from '../../../support/tap.ts'

const TEXT = (text: string) => ({ type: 'text', text })

/** Returns the outcome of a message with this response. */
async function outcomeOf(t: Test, answer: CloudAnswer, options = {}) {
  const { delivery, messages } = await startCloud(t, { script: { onMessage: () => answer } }, options)
  const outcome = await delivery.provider.send(outgoingWhatsapp())
  t.equal(messages().length, 1, 'asked once')
  return outcome
}

t.test('requests match the API: header, body, URL button', async (t) => {
  const { delivery, messages } = await startCloud(t)
  const message = outgoingWhatsapp({
    to: '+33612345678',
    header: { kind: 'text', text: { name: null, value: 'A-17' } },
    body: ['Ana', 'tomorrow <b>"at" 5</b> {{1}} 😀'].map((value) => ({ name: null, value })),
    buttons: [
      { kind: 'url', place: 1, name: null, value: 'orders/17' },
      { kind: 'url', place: 3, name: 'page', value: 'help?x=1&y=2' },
    ],
  })
  await delivery.provider.send(message)
  const [request] = messages()
  t.equal(request?.path, `/v23.0/${PHONE_NUMBER_ID}/messages`)
  t.equal(request?.authorization, `Bearer ${ACCESS_TOKEN}`)
  t.strictSame(request?.body, {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: '+33612345678',
    type: 'template',
    biz_opaque_callback_data: `${message.team_id}:${message.message_id}`,
    template: {
      name: 'order_ready',
      language: { code: 'en_US' },
      components: [
        { type: 'header', parameters: [TEXT('A-17')] },
        { type: 'body', parameters: [TEXT('Ana'), TEXT('tomorrow <b>"at" 5</b> {{1}} 😀')] },
        { type: 'button', sub_type: 'url', index: '1', parameters: [TEXT('orders/17')] },
        {
          type: 'button',
          sub_type: 'url',
          index: '3',
          parameters: [{ ...TEXT('help?x=1&y=2'), parameter_name: 'page' }],
        },
      ],
    },
  })
})

t.test('a template without variables is sent without components', async (t) => {
  const { delivery, messages } = await startCloud(t)
  await delivery.provider.send(outgoingWhatsapp({ body: [] }))
  t.strictSame(messages()[0]?.body.template, { name: 'order_ready', language: { code: 'en_US' } })
})

t.test('an accepted message brings the provider’s id', async (t) => {
  const { delivery, messages } = await startCloud(t)
  const outcome = await delivery.provider.send(outgoingWhatsapp())
  const accepted = { kind: 'accepted', detail: 'accepted', wa_id: null }
  t.strictSame(outcome, { ...accepted, provider_message_id: messages()[0]?.id })
})

t.test('returns the recipient’s id if unlike the number', async (t) => {
  const taken = (wa_id: unknown) => ({
    contacts: [{ input: '+5511987654321', wa_id }],
    messages: [{ id: 'w' }],
  })
  for (const [wa_id, then] of [
    ['551187654321', '551187654321'],
    ['5511987654321', null],
    [5, null],
    [undefined, null],
  ]) {
    const { delivery } = await startCloud(t, {
      script: { onMessage: () => ({ status: 200, body: taken(wa_id) }) },
    })
    const outcome = await delivery.provider.send(outgoingWhatsapp({ to: '+5511987654321' }))
    t.match(outcome, { kind: 'accepted', provider_message_id: 'w', wa_id: then })
  }
})

t.test('accepts a 2xx with any body', async (t) => {
  const bodies: unknown[] = ['', '{', '<html>', 'null', '[]', {}, { messages: [] }, { messages: [{ id: 5 }] }]
  const hostile = [
    { messages: [{ id: '' }] },
    { messages: [{ id: 'a\u0000b' }] },
    { messages: [{ id: 'x'.repeat(600) }] },
  ]
  for (const body of [...bodies, ...hostile]) {
    const outcome = await outcomeOf(t, { status: 200, body })
    t.match(outcome, { kind: 'accepted', provider_message_id: null }, JSON.stringify(body))
  }
  t.match(await outcomeOf(t, 'cut'), { kind: 'accepted', provider_message_id: null })
})

t.test('connections are kept alive between messages', async (t) => {
  const { delivery, connections } = await startCloud(t)
  for (let message = 0; message < 20; message++) await delivery.provider.send(outgoingWhatsapp())
  t.ok(connections() <= 3, `${connections()} connections for 20 messages`)
})

t.test('a permanent failure is rejected with code and text', async (t) => {
  const codes = [
    100, 130472, 130497, 131005, 131008, 131009, 131021, 131026, 131047, 131050, 131049, 131051, 131052,
    131053, 131055, 135000,
  ]
  for (const code of codes) {
    const outcome = await outcomeOf(t, { status: 400, body: cloudError(code, 'Words', 'more words') })
    t.strictSame(outcome, {
      kind: 'refused',
      detail: `${code} (#${code}) Words: more words`,
      code: String(code),
    })
  }
})

t.test('a template error is rejected and blames the template', async (t) => {
  const judged = (code: number) => outcomeOf(t, { status: 400, body: cloudError(code, 'Words') })
  for (const code of [132000, 132001, 132007, 132068, 132069, 132099, 132999])
    t.match(await judged(code), { kind: 'refused', template: { status: null } }, String(code))
  for (const code of [131999, 133000]) t.match(await judged(code), { kind: 'deferred' }, String(code))
  for (const code of [132005, 132012, 132018])
    t.strictSame(await judged(code), {
      ...{ kind: 'refused', detail: `${code} (#${code}) Words`, code: String(code) },
    })
  t.match(await judged(132015), { kind: 'deferred', template: { status: 'paused' } })
  t.match(await judged(132016), { kind: 'refused', template: { status: 'disabled' } })
})

t.test('subcodes count for their code only, Retry-After not for 500', async (t) => {
  const judged = (code: number, subcode = 0) => judgeError({ code, subcode, words: 'words' })
  t.strictSame(judged(131026, 33), { kind: 'refused', detail: 'words' })
  t.strictSame(judged(132000), { kind: 'refused', detail: 'words', template: { status: null } })
  t.strictSame(judgeStatus(500, 'words', 30), { kind: 'deferred', detail: 'words' })
})

t.test('temporary errors and unknown codes are retried', async (t) => {
  // A known code counts, whatever the status.
  for (const code of [1, 2, 131000, 131016, 131057, 133004, 999999]) {
    const outcome = await outcomeOf(t, {
      status: code === 999999 ? 400 : 401,
      body: cloudError(code, 'Words'),
    })
    const detail = `${code} (#${code}) Words`
    t.strictSame(outcome, { kind: 'deferred', detail, code: String(code) }, String(code))
  }
  for (const status of [500, 503, 404, 302]) {
    t.strictSame(await outcomeOf(t, { status, body: '<html>' }), {
      kind: 'deferred',
      detail: `HTTP ${status}`,
    })
  }
})

t.test('an unknown 4xx code is final at attempt three', async (t) => {
  const at = async (deferrals: number, status: number) => {
    const body = cloudError(999_999, 'Words')
    const { delivery } = await startCloud(t, { script: { onMessage: () => ({ status, body }) } })
    return delivery.provider.send(outgoingWhatsapp({ deferrals }))
  }
  t.match(await at(1, 400), { kind: 'deferred', code: '999999' })
  for (const status of [400, 404, 422])
    t.match(await at(2, status), { kind: 'refused', code: '999999' }, String(status))
  for (const status of [408, 425, 500]) t.match(await at(9, status), { kind: 'deferred' }, String(status))
  for (const status of [401, 403, 429]) t.match(await at(9, status), { kind: 'sender' }, String(status))
})

t.test('too many messages to a recipient delay only that message', async (t) => {
  const outcome = await outcomeOf(t, { status: 400, body: cloudError(131056, 'No') })
  t.strictSame(outcome, { kind: 'deferred', code: '131056', detail: '131056 (#131056) No', wait_seconds: 6 })
})

t.test('too fast for the number slows the number', async (t) => {
  for (const code of [4, 80007, 130429]) {
    const outcome = await outcomeOf(t, { status: 500, body: cloudError(code, 'Slow down') })
    t.match(outcome, { kind: 'sender', trouble: 'slow' })
    t.notOk('wait_seconds' in outcome, 'slowed, not paused')
  }
  t.match(await outcomeOf(t, { status: 429, body: '' }), { kind: 'sender', trouble: 'slow' })
})

t.test('an unknown code leaves the decision to the status', async (t) => {
  const body = cloudError(999_999, 'New')
  const code = '999999'
  const detail = `${code} (#${code}) New`
  const wide = { kind: 'sender', detail, code, trouble: 'setup' }
  t.strictSame(await outcomeOf(t, { status: 429, body }), { ...wide, trouble: 'slow' })
  for (const status of [401, 403]) t.strictSame(await outcomeOf(t, { status, body }), wide)
  for (const status of [502, 504])
    t.strictSame(await outcomeOf(t, { status, body }), { kind: 'unknown', detail, code })
  t.match(await outcomeOf(t, { status: 429, body: cloudError(131026, 'Known') }), { kind: 'refused' })
})

t.test('Retry-After pauses the number for that long, within limits', async (t) => {
  const asked = async (status: number, after: string) =>
    await outcomeOf(t, { status, body: '', headers: { 'Retry-After': after } })
  for (const status of [429, 503])
    t.match(await asked(status, '7'), { kind: 'sender', trouble: 'slow', wait_seconds: 7 })
  const dated = await asked(429, new Date(Date.now() + 60_000).toUTCString())
  const seconds = dated.kind === 'sender' ? dated.wait_seconds : undefined
  t.ok(seconds !== undefined && seconds > 30 && seconds <= 60, `${seconds} s`)
  t.match(await asked(429, '86400'), { wait_seconds: 3_600 })
  for (const odd of ['0', 'soon', '-5', 'Thu, 01 Jan 1970 00:00:00 GMT'])
    t.notOk('wait_seconds' in (await asked(429, odd)), odd)
})

t.test('spam and account errors pause the number', async (t) => {
  const judged = (code: number) => outcomeOf(t, { status: 500, body: cloudError(code, 'Words') })
  t.match(await judged(131048), { kind: 'sender', trouble: 'setup', wait_seconds: 3_600 })
  const account = [0, 3, 10, 33, 190, 200, 250, 299, 368, 131031, 131037, 131042, 131045, 133010]
  for (const code of account) t.match(await judged(code), { kind: 'sender', trouble: 'setup' }, String(code))
  for (const code of [199, 300]) t.match(await judged(code), { kind: 'deferred' }, String(code))
  const wrongNumber = { error: { code: 100, error_subcode: 33, message: 'Unsupported post request' } }
  t.match(await outcomeOf(t, { status: 400, body: wrongNumber }), { kind: 'sender', trouble: 'setup' })
  for (const status of [401, 403])
    t.match(await outcomeOf(t, { status, body: '' }), { kind: 'sender', trouble: 'setup' })
})

t.test('no response after the request was sent is unknown', async (t) => {
  t.match(await outcomeOf(t, 'hang', { timeout_ms: 300 }), { kind: 'unknown', detail: /no response/ })
  t.match(await outcomeOf(t, 'reset'), { kind: 'unknown' })
  for (const status of [502, 504]) t.match(await outcomeOf(t, { status, body: '' }), { kind: 'unknown' })
})

t.test('no connection at all is safe to retry', async (t) => {
  for (const url of [`http://127.0.0.1:${await freePort()}/v23.0`, 'http://nobody.invalid/v23.0']) {
    const provider = createWhatsappProvider({ url })
    const outcomes = await provider.send(outgoingWhatsapp())
    t.match(outcomes, { kind: 'sender', trouble: 'connection', detail: /no connection/ })
  }
})

t.test('a request that can’t be written is not sent', async (t) => {
  const provider = createWhatsappProvider({ url: 'http://127.0.0.1:9/v23.0' })
  const number = { phone_number_id: '1', access_token: 'token\n' }
  t.match(await provider.send(outgoingWhatsapp({ number })), { kind: 'sender', detail: /ERR_INVALID_CHAR/ })
})

t.test('the outcome is unknown if something may have been sent', async (t) => {
  const fault = (...codes: string[]) =>
    new AggregateError(codes.map((code) => Object.assign(new Error('x'), { code })))
  const kindOf = (error: Error) => judgeFailure(error, (words) => words).kind
  t.equal(kindOf(fault('ECONNREFUSED', 'ENETUNREACH')), 'sender')
  t.equal(kindOf(fault('ECONNREFUSED', 'ECONNRESET')), 'unknown')
})

t.test('an unopened connection is safe to retry', async (t) => {
  const url = `https://127.0.0.1:${await portOf(t, createServer())}`
  const provider = createWhatsappProvider({ url, connect_ms: 200 })
  t.match(await provider.send(outgoingWhatsapp()), { kind: 'sender', trouble: 'connection' })
})

t.test('a failed TLS handshake is safe to retry', async (t) => {
  const { pem: cert, key_pem: key } = makeCertificate(['other.test'])
  const servers = [
    createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end())),
    createServer((socket) => socket.on('error', () => {}).once('data', () => reset(socket))),
    createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    createTlsServer({ cert, key }, (socket) => socket.on('error', () => {})),
  ]
  for (const [which, server] of servers.entries()) {
    const provider = createWhatsappProvider({ url: `https://127.0.0.1:${await portOf(t, server)}` })
    const outcome = await provider.send(outgoingWhatsapp())
    t.match(outcome, { kind: 'sender', trouble: 'connection', detail: /no connection: ./ }, `${which}`)
  }
})

t.test('messages are printable, short, and never contain the token', async (t) => {
  const said = `bad\u0000 token ${ACCESS_TOKEN} \ud800${'x'.repeat(2_000)}`
  const { detail } = await outcomeOf(t, { status: 400, body: cloudError(131026, said, said) })
  t.notOk(detail.includes(ACCESS_TOKEN))
  t.notMatch(detail, /\p{Cc}/u)
  t.ok(detail.length <= 500 && detail.isWellFormed())
  const odd = { error: { code: 131026, message: { a: 1 }, error_data: 'x' } }
  const outcome = await outcomeOf(t, { status: 400, body: odd })
  t.strictSame(outcome, { kind: 'refused', detail: '131026', code: '131026' })
})

t.test('templates are listed page by page, by cursor', async (t) => {
  const templates = Array.from({ length: 7 }, (_, index) => ({
    ...{ name: `t${index}`, language: 'en', status: index === 3 ? 'PAUSED' : 'APPROVED' },
    components: [{ type: 'BODY', text: 'Hello {{1}}' }],
  }))
  const odd = { name: 'odd', language: 'en', status: 'LIMIT_EXCEEDED', components: [] }
  const { delivery } = await startCloud(t, { templates: [...templates, odd, { name: 5 }], page_size: 3 })
  const listed = await delivery.provider.listTemplates({ account_id: '2', access_token: 'a-token' })
  t.strictSame(
    listed.map(({ name, status }) => `${name} ${status}`),
    [
      't0 approved',
      't1 approved',
      't2 approved',
      't3 paused',
      't4 approved',
      't5 approved',
      't6 approved',
      'odd disabled',
    ],
  )
  t.strictSame(listed[3]?.definition, templates[3], 'the provider’s own object')
})
