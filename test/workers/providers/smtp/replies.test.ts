/** The meaning of an SMTP server's reply: rare codes, texts and errors. */
import type { NodemailerError } from 'nodemailer'
import { outcomesOfFailure, outcomesOfSuccess } from '../../../../workers/providers/smtp/replies.ts'
import t from '../../../support/tap.ts'

const TO = 'a@b.cc'
const attempt = (changes: object = {}) => ({
  ...{ to: [TO], isBegun: () => true, handed_over: false, refusals: () => [] },
  ...changes,
})
const failed = (error: object, changes: object = {}) =>
  outcomesOfFailure(
    attempt(changes),
    Object.assign(new Error('broken'), error) as NodemailerError,
    String,
  ).get(TO)
const atData = (response: string) => failed({ code: 'EMESSAGE', command: 'DATA', response })
const atMail = (response: string) => failed({ code: 'EENVELOPE', command: 'MAIL FROM', response })
const taken = (reply: string, ...refusals: object[]) =>
  outcomesOfSuccess(attempt({ refusals: () => refusals }), reply, { describe: String })
const atRcpt = (response?: string) => taken('250 ok', { recipient: TO, response }).get(TO)

t.test('a reply is judged by its code', async (t) => {
  for (const code of [530, 534, 535, 538]) t.match(atData(`${code} x`), { kind: 'sender', trouble: 'setup' })
  for (const code of [500, 599]) t.match(atData(`${code} x`), { kind: 'refused', effect: 'soft' }, `${code}`)
  for (const code of [499, 503]) t.match(atData(`${code} x`), { kind: 'deferred' }, `${code}`)
  t.match(atRcpt('600 x'), { kind: 'deferred' })
  t.strictSame(atRcpt(), { kind: 'deferred', detail: '' }, 'a refusal without words')
  for (const reply of ['552 Full', '553 Not allowed', '554 No'])
    t.strictSame(atRcpt(reply), { kind: 'refused', detail: reply, effect: 'soft' })
})

t.test('a reply about the message blames neither recipient nor sender', async (t) => {
  for (const words of ['mail too large', 'size exceeded'])
    t.match(atRcpt(`550 5.1.1 ${words}`), { kind: 'refused', effect: 'none' }, words)
  for (const words of ['too large', 'exceeds all', 'of no size'])
    t.match(atRcpt(`550 5.1.1 ${words}`), { kind: 'refused', effect: 'hard' }, words)
  t.match(atMail('554 5.6.1 x'), { kind: 'refused' })
  t.match(atMail('554 5.2.30 x'), { kind: 'policy', blames: 'identity' })
  t.match(atMail('552 x'), { kind: 'refused' })
  t.match(atData('554 Access denied'), { kind: 'policy', blames: 'identity' })
  t.match(atData('550 not 554 Access denied'), { kind: 'refused' })
  t.match(atRcpt('550 not 550 5.7.1 x'), { kind: 'refused' })
  t.match(atRcpt('550 #5.7.1 x'), { kind: 'policy', blames: 'recipient' }, 'as Cisco writes it')
  t.match(atRcpt('550 #5.1.1 x'), { kind: 'refused', effect: 'hard' })
})

t.test('recipients over a server’s limit wait for the next message', async (t) => {
  const words = '552 5.5.3 Maximum limit of 10 recipients reached'
  for (const reply of [
    words,
    '550 5.5.3 No more',
    '552 Too many recipients',
    '452 4.5.3 Too many recipients',
  ])
    t.strictSame(atRcpt(reply), { kind: 'deferred', detail: reply })
  t.match(atRcpt('552 5.2.2 Too many recipients have written'), { kind: 'refused' })
  t.match(atRcpt('552 Mailbox full'), { kind: 'refused', effect: 'soft' })
  t.match(atData(words), { kind: 'refused' }, 'the message as a whole')
})

t.test('a reply after DATA counts for a sole recipient', async (t) => {
  for (const reply of [
    '550 5.1.1 x',
    '550 No such user',
    '554 delivery error: dd This user doesn’t have an account',
  ])
    t.match(atRcpt(reply), { kind: 'refused', effect: 'hard' }, reply)
  t.match(atData('550 5.1.10 RESOLVER.ADR.RecipientNotFound'), { kind: 'refused', effect: 'hard' })
  const many = failed(
    { code: 'EMESSAGE', command: 'DATA', response: '550 5.1.10 RecipientNotFound' },
    { to: [TO, 'x@y.zz'] },
  )
  t.match(many, { kind: 'refused', effect: 'none' }, 'it may be about the other')
})

t.test('a reply about our own set-up blames the sender', async (t) => {
  for (const reply of ['550 5.1.8 Domain of sender does not exist', '550 5.1.0 sender rejected']) {
    t.match(atRcpt(reply), { kind: 'policy', blames: 'identity' }, reply)
    t.match(atData(reply), { kind: 'policy', blames: 'identity' }, reply)
  }
  for (const limit of [
    '550 Domain example.com has exceeded the max emails per hour (9/9)',
    '550 5.4.5 Daily user sending limit exceeded',
    '550 5.4.5 Daily SMTP relay limit exceeded',
    '550 5.1.90 You have reached your daily limit for message recipients',
  ])
    for (const reply of [atRcpt(limit), atData(limit)])
      t.match(reply, { kind: 'sender', trouble: 'slow' }, limit)
})

t.test('a reply with two codes is neither yes nor no', async (t) => {
  t.same([...taken('250 ok\n250 more\n ')], [[TO, { kind: 'accepted', detail: '250 ok\n250 more\n ' }]])
  const detail = "the server's response is contradictory: 250 ok\n550 no"
  t.same([...taken('250 ok\n550 no')], [[TO, { kind: 'unknown', detail }]])
  const others = taken('250 ok', { recipient: 'x@y.zz', response: '550 no' }, { response: '550 no' })
  t.same([...others], [[TO, { kind: 'accepted', detail: '250 ok' }]])
})

t.test('an error without a reply is judged by its stage', async (t) => {
  const [mail, after] = [{ command: 'MAIL FROM' }, { handed_over: true }]
  const large = { kind: 'refused', detail: 'the message is too large: broken', effect: 'none' }
  t.strictSame(failed({ ...mail, code: 'EMESSAGE' }), large)
  t.match(failed({ ...mail, code: 'EMESSAGE', response: '451 x' }), { kind: 'deferred' })
  t.strictSame(failed({ ...mail, code: 'EENVELOPE' }), { kind: 'deferred', detail: 'broken (EENVELOPE)' })
  t.match(failed({ command: 'DATA', code: 'EMESSAGE' }), { kind: 'deferred' })
  t.strictSame(failed({}), { kind: 'deferred', detail: 'broken' })
  const detail = 'no response after the message was sent: broken (ESOCKET)'
  t.strictSame(failed({ code: 'ESOCKET' }, after), { kind: 'unknown', detail })
  t.match(failed({ responseCode: 421 }, after), { kind: 'sender', trouble: 'slow' })
  const login = { kind: 'sender', detail: 'broken (EAUTH)', trouble: 'setup' }
  t.strictSame(failed({ code: 'EAUTH' }), login)
  const early = (error: object) => failed(error, { isBegun: () => false })
  for (const code of ['EABORT', 'ECONNECTION'])
    t.match(early({ code }), { kind: 'sender', trouble: 'connection' }, code)
  t.match(early({}), { kind: 'deferred' })
  const tls = { command: 'STARTTLS', code: 'ETLS' }
  t.match(early({ ...tls, responseCode: 454 }), { kind: 'sender', trouble: 'connection' })
  t.match(early({ ...tls, responseCode: 421 }), { kind: 'sender', trouble: 'slow' })
  t.match(early({ command: 'EHLO', responseCode: 454 }), { kind: 'sender', trouble: 'slow' })
  for (const [responseCode, trouble] of [
    [499, 'connection'],
    [500, 'setup'],
  ] as const)
    t.match(early({ command: 'CONN', responseCode }), { kind: 'sender', trouble })
})

t.test('deferrals that may be about the sender share a key', async (t) => {
  const keyOf = (reply: string) => (atRcpt(reply) as { key?: string } | undefined)?.key
  t.equal(keyOf('451 4.7.1 Try again later, a@b.cc'), '451 4.7.1 try again later,')
  t.equal(keyOf('450 4.7.0 <a@b.cc>: Greylisted for now'), keyOf('450 4.7.0 <d@e.ff>: Greylisted for now'))
  t.not(keyOf('451 4.7.1 Try again'), keyOf('451 4.7.1 Too busy'))
  for (const reply of ['450 x', '451 x', '452 4.3.1 x', '432 4.7.12 x', '455 4.3.0 x'])
    t.ok(keyOf(reply), reply)
  for (const reply of [
    '450 4.2.1 x',
    '451 4.2.0 x',
    '452 4.2.2 x',
    '452 x',
    '452 4.7.1 x',
    '455 4.4.1 x',
    '550 x',
  ])
    t.equal(keyOf(reply), undefined, reply)
})
