/** Requests of the SES adapter, and its results for each of SES's responses. */
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import PostalMime from 'postal-mime'
import type { EmailDelivery, Outcome } from '../../../../workers/providers/provider.ts'
import { createSesProvider, type SesOptions } from '../../../../workers/providers/ses/adapter.ts'
import { startFlood } from '../../../support/flood.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { portOf } from '../../../support/port.ts'
import { type SesFault, type SesScript, startSesApi } from '../../../support/ses-api.ts'
import t, { type Test } from '../../../support/tap.ts'
import { until } from '../../../support/worker.ts'

const provide = (t: Test, options: Partial<SesOptions>) => {
  const provider = createSesProvider({ region: 'eu-west-1', max_connections: 50, ...options })
  t.teardown(() => provider.close())
  return provider
}

const start = async (t: Test, script: SesScript = {}, options: Partial<SesOptions> = {}) => {
  const api = await startSesApi(t, script)
  return { api, provider: provide(t, { endpoint: api.url, ...options }) }
}

const only = ({ outcomes }: EmailDelivery): Outcome | undefined => [...outcomes.values()][0]

t.test('sends messages raw to this attempt’s recipients, tagged', async (t) => {
  const { api, provider } = await start(t, {}, { configuration_set: 'main' })
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const email = outgoingEmail({
    to: ['ana@example.com', 'bo@пример.рф', 'later@example.com'],
    recipients: ['ana@example.com', 'bo@пример.рф'],
    headers: { [`X-${'n'.repeat(124)}`]: 'v'.repeat(995), 'x-ODD': 'as  given' },
    dkim: { domain: 'demo.test', selector: 's', private_key: privateKey },
  })
  const { provider_message_id, outcomes } = await provider.send(email)
  t.equal(provider_message_id, '0100-1-000000')
  t.same([...outcomes.keys()], email.recipients)
  t.match([...outcomes.values()], [{ kind: 'accepted', detail: /0100-1/ }, { kind: 'accepted' }])
  const [call] = api.calls
  t.match(call, {
    from: 'hello@demo.test',
    to: ['ana@example.com', 'bo@xn--e1afmkfd.xn--p1ai'],
    tags: { team_id: email.team_id, email_id: email.email_id },
    configuration_set: 'main',
  })
  const raw = call?.raw.toString() ?? ''
  t.match(raw, '\r\nx-ODD: as  given\r\n')
  t.notMatch(raw, /^dkim-signature/im, 'SES signs; it changes headers that a signature of ours would cover')
  const parsed = await PostalMime.parse(raw)
  t.match(parsed, { messageId: `<${email.message_id}>`, subject: 'Hello', from: { name: 'Demo' } })
  t.equal(parsed.headers.find(({ key }) => key.startsWith('x-n'))?.value.trim(), 'v'.repeat(995))
})

t.test('each attempt sends the same message except its boundary', async (t) => {
  const { api, provider } = await start(t)
  const email = outgoingEmail()
  await provider.send(email)
  await provider.send(email)
  t.equal(api.calls[0]?.raw.toString(), api.calls[1]?.raw.toString())
})

const error = (type: string, status = 400, message = 'Words.') => ({ status, type, message })
/** Each kind of response. faults.test.ts has the names of errors. */
const CASES: [string, SesFault, Partial<Record<string, unknown>>][] = [
  ['throttled', error('TooManyRequestsException', 429), { kind: 'sender', trouble: 'slow' }],
  ['paused', error('SendingPausedException'), { kind: 'sender', trouble: 'setup', wait_seconds: 900 }],
  ['credentials', error('UnrecognizedClientException', 403), { kind: 'sender', trouble: 'setup' }],
  [
    'an identity that is not verified, or a recipient of the sandbox',
    error('MessageRejected', 400, 'Email address is not verified. The following identities failed …'),
    { kind: 'policy', blames: 'identity' },
  ],
  [
    'rejected',
    error('MessageRejected'),
    { kind: 'refused', effect: 'none', detail: 'MessageRejected: Words.' },
  ],
  ['a request too large for the front door', error('', 413), { kind: 'refused', effect: 'none' }],
  ['a gateway', error('', 502), { kind: 'deferred' }],
  ['a cut connection', 'drop', { kind: 'unknown', wait_seconds: 600 }],
  ['silence', 'hang', { kind: 'unknown', wait_seconds: 600 }],
  ['taken without an id', 'no id', { kind: 'accepted' }],
  ['taken with an answer that cannot be read', 'broken json', { kind: 'accepted' }],
  ['an id with a NUL', { json: { MessageId: 'bad\u0000id' } }, { kind: 'accepted' }],
  ['an id with half a surrogate pair', { json: { MessageId: 'bad\ud800' } }, { kind: 'accepted' }],
  ['an id that is no string', { json: { MessageId: { a: 1 } } }, { kind: 'accepted' }],
  ['an id too long to be looked up', { json: { MessageId: 'x'.repeat(513) } }, { kind: 'accepted' }],
]

for (const [name, fault, expected] of CASES) {
  t.test(`SES answers: ${name}`, async (t) => {
    const answer_ms = fault === 'hang' ? 600 : 30_000
    const timeouts = { connect_ms: 10_000, answer_ms }
    const { api, provider } = await start(t, { onSend: () => fault }, { timeouts })
    const delivery = await provider.send(outgoingEmail({ to: ['a@example.com', 'b@example.com'] }))
    t.equal(delivery.outcomes.size, 2)
    for (const outcome of delivery.outcomes.values())
      for (const [key, value] of Object.entries(expected)) t.equal(Reflect.get(outcome, key), value, key)
    t.equal(delivery.provider_message_id, null)
    t.equal(api.calls.length, 1, 'tried once: the queue repeats')
  })
}

t.test('a large message gets more time for its size', async (t) => {
  const timeouts = { connect_ms: 5_000, answer_ms: 500 }
  const { provider } = await start(t, { onSend: () => sleep(2_000, undefined) }, { timeouts })
  const encoded = [Buffer.from(`${'QUJD'.repeat(19)}\r\n`.repeat(20_000))]
  const file = { filename: 'large.bin', content_type: 'application/x', content_id: null, encoded }
  t.equal(only(await provider.send(outgoingEmail()))?.kind, 'unknown')
  t.equal(only(await provider.send(outgoingEmail({ files: [file] })))?.kind, 'accepted')
})

t.test('a response has a size limit, and accepted stays accepted', async (t) => {
  await startSesApi(t)
  for (const [status, kind] of [
    [200, 'accepted'],
    [400, 'deferred'],
  ] as const) {
    const flood = await startFlood(t, 'endless', status)
    const provider = provide(t, { endpoint: flood.url })
    const delivery = await provider.send(outgoingEmail())
    t.match(only(delivery), { kind, detail: 'AnswerUnread: the response is larger than 256 KiB' })
    t.equal(delivery.provider_message_id, null)
    t.equal(await provider.check(), 'GetAccount failed: AnswerUnread')
    await until('both answers are cut off', async () => flood.cut() === 2)
  }
})

t.test('credentials and control characters are not stored', async (t) => {
  const leak = 'x-amz-security-token:FwoGZXIvYXdzEXAMPLE'
  const faults = [error('SignatureDoesNotMatch', 403, leak), error('MessageRejected', 400, 'a\u0000b\nc')]
  const { provider } = await start(t, { onSend: (_call, nth) => faults[nth - 1] })
  t.notMatch(only(await provider.send(outgoingEmail()))?.detail, 'FwoGZX')
  t.equal(only(await provider.send(outgoingEmail()))?.detail, 'MessageRejected: a b c')
})

t.test('an unreachable server is a sender failure', async (t) => {
  await startSesApi(t)
  const refusing = provide(t, { endpoint: 'http://127.0.0.1:1' })
  const outcome = only(await refusing.send(outgoingEmail()))
  t.match(outcome, { kind: 'sender', trouble: 'connection', detail: /ECONNREFUSED/ })
  const unknown = provide(t, { endpoint: 'http://ses.invalid' })
  t.match(only(await unknown.send(outgoingEmail())), { kind: 'sender', trouble: 'connection' })
})

t.test('an endless TLS handshake ends at our time limit', async (t) => {
  await startSesApi(t)
  // Accepts the connection and never speaks TLS.
  const server = createServer(() => undefined)
  const provider = provide(t, {
    endpoint: `https://127.0.0.1:${await portOf(t, server)}`,
    timeouts: { connect_ms: 300, answer_ms: 900 },
  })
  const outcome = only(await provider.send(outgoingEmail()))
  t.match(outcome, { kind: 'sender', trouble: 'connection' }, 'nothing of it has left')
})

t.test('no message is sent if TLS fails', async (t) => {
  await startSesApi(t)
  for (const answer of ['', 'HTTP/1.1 400 Bad Request\r\n\r\n']) {
    const server = createServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.end(answer)),
    )
    const provider = provide(t, { endpoint: `https://127.0.0.1:${await portOf(t, server)}` })
    const outcome = only(await provider.send(outgoingEmail()))
    t.match(outcome, { kind: 'sender', trouble: 'connection' }, JSON.stringify(outcome))
  }
})

t.test('an invalid address is rejected and reaches no one', async (t) => {
  const { api, provider } = await start(t)
  const to = ['a@example.com, evil@example.com', 'grp:a@b.c;']
  const { provider_message_id, outcomes } = await provider.send(outgoingEmail({ to }))
  t.match([...outcomes.values()], [{ kind: 'refused', effect: 'none' }, { kind: 'refused' }])
  t.equal(provider_message_id, null)
  t.equal(api.calls.length, 0)
})

t.test('the rate is a tenth below the account’s, which is refreshed', async (t) => {
  let rate: number | SesFault = 50
  const warnings: string[] = []
  const warn = (words: string) => void warnings.push(words)
  const gate = Promise.withResolvers<void>()
  const account = async () => {
    if (api.asked() > 1) await gate.promise
    return rate
  }
  const { api, provider } = await start(t, { account }, { refresh_ms: 100, warn })
  const senders = await Promise.all(Array.from({ length: 20 }, () => provider.sender()))
  for (const sender of senders) t.same(sender, { key: 'ses:eu-west-1', ceiling: 45, saved_seconds: 0.1 })
  t.equal(api.asked(), 1)
  rate = 100
  const ceiling = async () => (await provider.sender()).ceiling
  await until('it has been asked again', async () => {
    t.equal(await ceiling(), 45, 'nobody waits for a refresh')
    return api.asked() > 1
  })
  gate.resolve()
  await until('the new rate is known', async () => (await ceiling()) === 90)
  rate = error('AccessDeniedException', 403)
  await until('an answer is lost', async () => {
    t.equal(await ceiling(), 90, 'a lost answer changes nothing')
    return warnings.length > 0
  })
  t.equal(await ceiling(), 90)
  t.match(warnings, [/GetAccount.*AccessDeniedException/])
})

t.test('an account without GetAccount permission uses the minimum production rate', async (t) => {
  const { provider } = await start(t, { account: () => error('AccessDeniedException', 403) })
  t.match(await provider.sender(), { ceiling: 14 * 0.9 })
})

t.test('a check sends nothing, reads the account, names the problem', async (t) => {
  const { api, provider } = await start(t)
  t.equal(await provider.check(), null)
  t.strictSame(api.calls, [])
  const refused = await start(t, { account: () => error('UnrecognizedClientException', 403) })
  t.equal(await refused.provider.check(), 'GetAccount failed: UnrecognizedClientException')
})
