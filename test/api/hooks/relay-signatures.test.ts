/**
 * The verification of a relay's post, in detail and without a server. relay.test.ts has complete posts and
 * their storage.
 */
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { parsePublicKey, RELAY_PROOFS, unverified } from '../../../api/hooks/relay-signatures.ts'
import { TEXTS } from '../../../api/http/texts.ts'
import { fill } from '../../../db/fill.ts'
import {
  mailgunSignature,
  type Post,
  postOf,
  RELAY_SECRETS,
  type Relay,
  signedBySendgrid,
} from '../../support/relays.ts'
import t from '../../support/tap.ts'

const NOW = new Date('2026-03-01T10:00:00.000Z')
const DAY = 86_400_000
const before = (ms: number): Date => new Date(NOW.getTime() - ms)
const NOT_GENUINE = { code: 'unauthorized', message: TEXTS.relayOnly }
/** The error for a body after its sender was verified. */
const UNREADABLE = { code: 'bad_request', message: fill(TEXTS.relayBody, { most: 32 }) }

/** Returns the events of a post and the limit it was read with. The limit is null if it wasn't read. */
async function proved(relay: Relay, { raw, headers }: Post, secret = RELAY_SECRETS[relay]) {
  let limit: number | undefined | null = null
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  const bytes = async (most?: number) => {
    limit = most
    return raw
  }
  const events = await RELAY_PROOFS[relay](secret)({
    headers: Object.fromEntries(named),
    bytes,
    now: NOW,
  }).then(
    (verified) => verified.events,
    ({ code, message }: { code: string; message: string }) => ({ code, message }),
  )
  return { events, limit }
}

const mailgun = (signature: unknown, event: unknown = { a: 1 }): Post => ({
  raw: Buffer.from(JSON.stringify({ signature, 'event-data': event })),
  headers: {},
})
/** Signs any timestamp and token as Mailgun does. */
const hmac = (timestamp: unknown, token = 't') => ({
  ...{ timestamp, token },
  signature: createHmac('sha256', RELAY_SECRETS.mailgun).update(`${timestamp}${token}`).digest('hex'),
})
const seconds = NOW.getTime() / 1_000

t.test('Mailgun: verifies an HMAC over time and token', async (t) => {
  const genuine = mailgunSignature(RELAY_SECRETS.mailgun, NOW)
  const upper = { ...genuine, signature: genuine.signature.toUpperCase() }
  for (const signature of [
    ...[genuine, upper, hmac(seconds)],
    ...[hmac(String(seconds - DAY / 1_000)), hmac(String(seconds + DAY / 1_000))],
  ])
    t.strictSame(await proved('mailgun', mailgun(signature)), { events: ['{"a":1}'], limit: 1_048_576 })
  const forged: unknown[] = [
    ...[
      undefined,
      null,
      'text',
      {},
      mailgunSignature('another', NOW),
      hmac(String(seconds - DAY / 1_000 - 1)),
      hmac(String(seconds + DAY / 1_000 + 1)),
    ],
    ...[hmac(`${seconds}.0`), hmac(`x${seconds}`), hmac(`${seconds}x`), hmac('1'.repeat(13)), hmac('')],
    ...[
      { ...genuine, token: 1 },
      { ...genuine, token: undefined },
      { ...genuine, timestamp: true },
    ],
    ...[
      { ...genuine, timestamp: [genuine.timestamp] },
      { ...genuine, token: [genuine.token] },
    ],
    ...[
      { ...genuine, signature: 1 },
      { ...genuine, signature: [genuine.signature] },
    ],
    ...['0', ' ', '\n'].map((more) => ({ ...genuine, signature: `${genuine.signature}${more}` })),
    { ...genuine, signature: `x${genuine.signature}` },
    { ...genuine, signature: genuine.signature.slice(1) },
  ]
  for (const signature of forged)
    t.strictSame((await proved('mailgun', mailgun(signature))).events, NOT_GENUINE, JSON.stringify(signature))
  for (const event of [null, 1, 'x', []])
    t.strictSame((await proved('mailgun', mailgun(genuine, event))).events, NOT_GENUINE)
  for (const raw of ['', '{', 'null', '1', JSON.stringify([mailgun(genuine)])])
    t.strictSame((await proved('mailgun', { raw: Buffer.from(raw), headers: {} })).events, NOT_GENUINE, raw)
})

t.test('Mailgun: no token digit can move into the timestamp', async (t) => {
  const old = hmac(String(seconds - (30 * DAY) / 1_000), `7${'a'.repeat(49)}`)
  const shifts = [1, -1].map((by) => {
    const [text, at] = [`${old.timestamp}${old.token}`, 10 + by]
    return { ...old, timestamp: text.slice(0, at), token: text.slice(at) }
  })
  const padded = hmac(`0${seconds}`)
  for (const signature of [old, ...shifts, padded])
    t.strictSame((await proved('mailgun', mailgun(signature))).events, NOT_GENUINE, JSON.stringify(signature))
})

t.test('SendGrid: verifies a signature over time and body', async (t) => {
  const raw = Buffer.from('[{"a":1},{"b":2}]')
  const post = signedBySendgrid(raw, NOW)
  t.strictSame(await proved('sendgrid', post), { events: ['{"a":1}', '{"b":2}'], limit: 3 * 1024 * 1024 })
  t.strictSame((await proved('sendgrid', signedBySendgrid(raw, before(DAY)))).events, ['{"a":1}', '{"b":2}'])
  const unread = { events: NOT_GENUINE, limit: null }
  for (const ms of [DAY + 1_000, -DAY - 1_000, NOW.getTime() - 999_999_999_000, NOW.getTime() - 1e13])
    t.strictSame(await proved('sendgrid', signedBySendgrid(raw, before(ms))), unread, String(ms))
  t.strictSame((await proved('sendgrid', signedBySendgrid(raw, before(-DAY)))).events, ['{"a":1}', '{"b":2}'])
  t.strictSame(await proved('sendgrid', post, 'no key'), unread)
  for (const name of ['Signature', 'Timestamp']) {
    const { [`X-Twilio-Email-Event-Webhook-${name}`]: _gone, ...headers } = post.headers
    t.strictSame(await proved('sendgrid', { raw, headers }), unread, name)
  }
  const { 'X-Twilio-Email-Event-Webhook-Timestamp': other = '' } = signedBySendgrid(
    raw,
    before(1_000),
  ).headers
  for (const forged of [
    { ...post, raw: Buffer.from('[{"a":1}]') },
    { raw, headers: { ...post.headers, 'X-Twilio-Email-Event-Webhook-Timestamp': other } },
    { raw, headers: { ...post.headers, 'X-Twilio-Email-Event-Webhook-Signature': '%%%' } },
  ])
    t.strictSame((await proved('sendgrid', forged)).events, NOT_GENUINE, forged.raw.toString())
  for (const body of ['[{', '"x"', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d])]) {
    const signed = signedBySendgrid(Buffer.from(body), NOW)
    t.strictSame((await proved('sendgrid', signed)).events, UNREADABLE, signed.raw.toString())
  }
})

t.test('SendGrid: the key must be P-256 in DER base64', async (t) => {
  t.ok(parsePublicKey(RELAY_SECRETS.sendgrid))
  const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey
  const { publicKey: edwards } = generateKeyPairSync('ed25519')
  for (const key of [other, edwards])
    t.equal(parsePublicKey(key.export({ format: 'der', type: 'spki' }).toString('base64')), null)
  for (const text of ['', 'no key']) t.equal(parsePublicKey(text), null)
})

t.test('Postmark and Brevo: accepts the secret as bearer or password', async (t) => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  for (const relay of ['postmark', 'brevo'] as const) {
    const secret = RELAY_SECRETS[relay]
    const given = (Authorization?: string): Post => ({
      ...{ raw: Buffer.from('{"a":1}'), headers: Authorization === undefined ? {} : { Authorization } },
    })
    const genuine = [`Bearer ${secret}`, `bEARER   ${secret}  `, basic(`:${secret}`), basic(`me:${secret}`)]
    for (const header of [...genuine, basic(`ü:${secret}`)]) {
      const read = await proved(relay, given(header))
      t.strictSame(read, { events: ['{"a":1}'], limit: 3 * 1024 * 1024 }, header)
    }
    const forged = [undefined, '', 'Bearer', 'Bearer ', `Bearer ${secret}x`, `Bearer${secret}`, secret]
    const wrong = [basic(secret), basic(`${secret}:`), basic(`me:x:${secret}`), basic(`:${secret}x`)]
    const odd = [`x Bearer ${secret}`, `Bearer ${secret} x`, `Digest ${secret}`, `Basic ${secret}`]
    for (const header of [...forged, ...wrong, ...odd])
      t.strictSame(await proved(relay, given(header)), { events: NOT_GENUINE, limit: null }, `${header}`)
  }
  const colons = { raw: Buffer.from('{}'), headers: { Authorization: basic('me:a:b') } }
  t.strictSame((await proved('postmark', colons, 'a:b')).events, ['{}'], 'a secret with a colon')
})

t.test('splits events in order, up to 32 levels deep', async (t) => {
  const eventsOf = async (text: string) => {
    const Authorization = `Bearer ${RELAY_SECRETS.brevo}`
    return (await proved('brevo', { raw: Buffer.from(text), headers: { Authorization } })).events
  }
  t.strictSame(await eventsOf('[]'), [])
  t.strictSame(await eventsOf('[{"a": 1}, 1, null, []]'), ['{"a":1}', '1', 'null', '[]'])
  for (const text of ['1', 'null', '"x"', 'true', '{', ''])
    t.strictSame(await eventsOf(text), UNREADABLE, text)
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
  t.strictSame(await eventsOf(nested(32)), [nested(32)])
  t.strictSame(await eventsOf(nested(33)), UNREADABLE)
  t.strictSame(await eventsOf(`[1,${nested(33)}]`), UNREADABLE, 'any of them')
})

t.test('without a relay every post is rejected', async (t) => {
  const { raw, headers } = postOf('brevo', [{}])
  await t.rejects(unverified({ headers, bytes: async () => raw, now: NOW }), NOT_GENUINE)
})
