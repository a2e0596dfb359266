/** Delivery of copies: recipients, message bytes and retries. Both providers. */
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { createSesProvider } from '../../../workers/providers/ses/adapter.ts'
import { adminCli } from '../../support/admin.ts'
import { signedIn } from '../../support/dashboard.ts'
import { verifyDkim } from '../../support/dkim.ts'
import { publicKeyOf } from '../../support/domain.ts'
import { jobStates, setJobsDue, usedBy } from '../../support/rows.ts'
import { worldOf } from '../../support/service.ts'
import { startSesApi } from '../../support/ses-api.ts'
import { shareService } from '../../support/shared-service.ts'
import { type SmtpSink, startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const COPIES = {
  to: ['Ana <ana@example.org>', 'ben@example.org'],
  cc: ['"Zoe, PhD" <zoe@example.org>', 'yan@example.net'],
  bcc: ['Verena Still <hidden.7x@quiet.example>', 'archive.8y@quiet.example'],
}
const EVERYBODY = [
  ...['ana@example.org', 'ben@example.org', 'zoe@example.org', 'yan@example.net'],
  ...['hidden.7x@quiet.example', 'archive.8y@quiet.example'],
]

/** Text that reveals a bcc recipient. */
const MARKS = ['hidden.7x', 'archive.8y', 'quiet.example', 'Verena']

/** Returns the same in base64, for each of the three alignments of its letters. */
const inBase64 = (word: string): string[] =>
  [0, 1, 2].map((lead) => {
    const whole = Buffer.from(`${'-'.repeat(lead)}${word}`)
      .toString('base64')
      .replace(/=+$/, '')
    return whole.slice(lead === 0 ? 0 : 4, -2)
  })

/** Returns the marks in these bytes, in any case, folded or encoded. */
function given(raw: Buffer): string[] {
  const text = raw.toString('latin1')
  const plain = text.replaceAll('\r\n', '').replaceAll('=\r\n', '').toLowerCase()
  const coded = text.replaceAll('\r\n', '')
  const found = MARKS.filter(
    (word) => plain.includes(word.toLowerCase()) || inBase64(word).some((form) => coded.includes(form)),
  )
  return /^[a-z-]*bcc[ \t]*:/im.test(text) ? ['a header', ...found] : found
}

/** Returns the header section as fields, in order. */
const fieldsOf = (raw: Buffer): string[] =>
  (raw.toString('latin1').split('\r\n\r\n', 1)[0] ?? '')
    .split(/\r\n(?![ \t])/)
    .map((field) => field.replace(/\r\n/g, ''))

const namesOf = (raw: Buffer): string[] => fieldsOf(raw).map((field) => field.slice(0, field.indexOf(':')))

/** Removes the time of the attempt and its effect on the signature. */
const withoutTime = (raw: Buffer): string =>
  raw
    .toString('latin1')
    .replace(/^ t=\d+;$/m, '')
    .replace(/^ b=.*(?:\r\n .*)*/m, '')

async function begin(t: Test, script: Parameters<typeof startSmtpSink>[1] = {}) {
  const { service, team, send } = await worldOf(await renewed())
  const sink = await startSmtpSink(t, script)
  await startWorker(t, service, { smtp_url: sink.url })
  const row = async (id: string) => {
    const found = await emailById(service.database, team.id, id)
    if (!found) throw new Error('the row is gone')
    return found
  }
  return { service, sink, team, send, row }
}

const silent = (t: Test, sink: Pick<SmtpSink, 'messages'>): void => {
  for (const { raw, rcpt_to } of sink.messages()) t.strictSame(given(raw), [], `to ${rcpt_to.join(', ')}`)
}

t.test('the search for bcc finds every encoding of it', async (t) => {
  t.strictSame(given(Buffer.from('To: a\r\n\r\nBody')), [])
  for (const word of ['hidden.7x@quiet.example', 'x hidden.7x', 'xx hidden.7x'])
    t.not(given(Buffer.from(`X: ${Buffer.from(word).toString('base64')}`)).length, 0, word)
  t.strictSame(given(Buffer.from('X: hid\r\nden.7x')), ['hidden.7x'])
})

t.test('all get one SMTP message, signed and without bcc', async (t) => {
  const { service, sink, team, send, row } = await begin(t)
  const id = await send({ ...COPIES, text: 'Hello', reply_to: 'help@example.net' })
  await until('it is sent', async () => (await row(id)).status === 'sent')
  const [message, ...others] = sink.messages()
  t.equal(others.length, 0)
  t.strictSame(message?.rcpt_to, EVERYBODY)
  const raw = message?.raw ?? Buffer.of()
  const fields = fieldsOf(raw)
  const at = fields.findIndex((field) => field.startsWith('To: '))
  t.equal(fields[at], 'To: Ana <ana@example.org>, ben@example.org')
  t.equal(fields[at + 1], 'Cc: "Zoe, PhD" <zoe@example.org>, yan@example.net')
  const signature = fields.find((field) => field.startsWith('DKIM-Signature'))
  t.match(signature, /[:=]to:\s*cc:/)
  silent(t, sink)
  t.equal((await usedBy(service, team.id)).emails, 1, 'one place in the quota')
  const sent = await eventsOfEmail(service.database, team.id, id)
  const events = sent.map(({ kind, recipient }) => `${kind} ${recipient}`).sort()
  t.strictSame(events, EVERYBODY.map((to) => `sent ${to}`).sort())
})

t.test('bcc without cc adds no Cc header', async (t) => {
  const { sink, send, row } = await begin(t)
  const ids = [await send({}), await send({ to: COPIES.to, bcc: COPIES.bcc })]
  for (const id of ids) await until('it is sent', async () => (await row(id)).status === 'sent')
  for (const { raw } of sink.messages()) t.notOk(namesOf(raw).includes('Cc'))
  silent(t, sink)
})

t.test('an address in several lists gets one copy', async (t) => {
  const { sink, send, row } = await begin(t)
  const id = await send({
    to: ['ana@example.org', 'Ana <ANA@example.org>'],
    cc: ['Ana <Ana@Example.org>', 'zoe@example.org', 'ZOE@example.org', 'u@bücher.example'],
    bcc: [
      'Verena <ana@example.org>',
      'zoe@example.org',
      'u@xn--bcher-kva.example',
      'hidden.7x@quiet.example',
    ],
  })
  await until('it is sent', async () => (await row(id)).status === 'sent')
  t.equal(sink.messages().length, 1)
  t.strictSame(sink.last().rcpt_to, [
    ...['ana@example.org', 'zoe@example.org', 'u@bücher.example', 'hidden.7x@quiet.example'],
  ])
  const fields = fieldsOf(sink.last().raw)
  t.ok(fields.includes('To: ana@example.org'))
  t.ok(fields.includes('Cc: zoe@example.org, u@xn--bcher-kva.example'))
  silent(t, sink)
})

t.test('only a deferred recipient is retried, with the same bytes', async (t) => {
  const later = new Set(['zoe@example.org', 'hidden.7x@quiet.example'])
  const { service, sink, send, row, team } = await begin(t, {
    onRcpt: (recipient) => (later.has(recipient) ? '451 4.3.0 Later' : undefined),
  })
  const id = await send(COPIES)
  await until('two are put off', async () => (await row(id)).pending_recipients?.length === 2)
  t.equal((await row(id)).status, 'sent')
  for (const next of ['zoe@example.org', 'hidden.7x@quiet.example']) {
    later.delete(next)
    const tried = sink.messages().length
    await until('its job waits', async () => (await jobStates(service, id))[0] === 'retry')
    await setJobsDue(service, id)
    await until('one more is sent', () => sink.messages().length > tried)
  }
  await until('nobody waits', async () => (await row(id)).pending_recipients === null)
  t.strictSame(sink.recipients(), [
    EVERYBODY.filter((to) => !['zoe@example.org', 'hidden.7x@quiet.example'].includes(to)),
    ['zoe@example.org'],
    ['hidden.7x@quiet.example'],
  ])
  // Boundaries are new for each attempt. A message of one part has none.
  const key = await publicKeyOf(service, team.id)
  const tries = sink.messages().map(({ raw }) => {
    const { body_matches, signature_matches } = verifyDkim(raw, key)
    t.ok(body_matches && signature_matches)
    return withoutTime(raw)
  })
  t.strictSame(tries, [tries[0], tries[0], tries[0]])
  silent(t, sink)
})

t.test('one rejected bcc recipient makes the email bounced', async (t) => {
  const { send, row, service, team, sink } = await begin(t, {
    onRcpt: (recipient) => (recipient.startsWith('hidden') ? '550 5.1.1 No such user' : undefined),
  })
  await service.call('POST', '/v1/contacts', { key: team.key, body: { email: 'Hidden.7x@quiet.example' } })
  const id = await send(COPIES)
  await until('it bounced', async () => (await row(id)).status === 'bounced')
  const { body } = await service.call('GET', '/v1/contacts/hidden.7x@quiet.example', { key: team.key })
  t.equal(body.status, 'bounced', 'the dialogue names whom it refuses')
  t.equal(sink.messages().length, 1)
  silent(t, sink)
})

t.test('requeue --force sends to all, resends to one address', async (t) => {
  let open = false
  const { service, sink, team, send, row } = await begin(t, {
    onRcpt: () => (open ? undefined : '550 5.1.1 No such user'),
  })
  const id = await send({ ...COPIES, headers: { 'X-Order': '17' } })
  await until('it bounced', async () => (await row(id)).status === 'bounced')
  open = true
  await adminCli({ DATABASE_URL: service.url }).json(['email', 'requeue', team.id, id, '--force'])
  await until('it is sent', () => sink.messages().length === 1)
  t.strictSame(sink.last().rcpt_to, EVERYBODY)
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const page = `/teams/${team.id}/emails/${id}`
  for (const [verb, form, to] of [
    ['resend', { to: 'right@example.org' }, 'right@example.org'],
    ['copy', {}, editor.email],
  ] as const) {
    const before = sink.messages().length
    t.equal((await editor.post(`${page}/${verb}`, form)).status, 303)
    await until(`the ${verb} is sent`, () => sink.messages().length > before)
    t.strictSame(sink.last().rcpt_to, [to])
    t.notOk(namesOf(sink.last().raw).includes('Cc'), verb)
    t.notMatch(sink.last().raw.toString('latin1'), /ana@|zoe@/)
  }
  silent(t, sink)
})

t.test('an erased recipient is left out while others wait', async (t) => {
  const waits = new Set(EVERYBODY)
  const { service, sink, team, send, row } = await begin(t, {
    onRcpt: (recipient) => (waits.has(recipient) ? '451 4.3.0 Later' : undefined),
  })
  const id = await send(COPIES)
  await until('it is put off', async () => (await jobStates(service, id))[0] === 'retry')
  const cli = adminCli({ DATABASE_URL: service.url })
  for (const address of ['ana@example.org', 'zoe@example.org', 'archive.8y@quiet.example'])
    await cli.json(['contact', 'erase', team.id, address])
  waits.clear()
  waits.add('hidden.7x@quiet.example')
  await setJobsDue(service, id)
  await until('some are sent', () => sink.messages().length === 1)
  t.strictSame(sink.last().rcpt_to, ['ben@example.org', 'yan@example.net'])
  const fields = fieldsOf(sink.last().raw)
  t.ok(fields.includes('To: ben@example.org') && fields.includes('Cc: yan@example.net'))
  t.notMatch(sink.last().raw.toString('latin1'), /erased|invalid/)
  await until('one waits', async () => (await row(id)).pending_recipients?.length === 1)
  await cli.json(['contact', 'erase', team.id, 'ben@example.org'])
  t.strictSame((await row(id)).pending_recipients, ['hidden.7x@quiet.example'], 'who waits goes on waiting')
  waits.clear()
  await until('its job waits', async () => (await jobStates(service, id))[0] === 'retry')
  await setJobsDue(service, id)
  await until('the last is sent', () => sink.messages().length === 2)
  t.strictSame(sink.last().rcpt_to, ['hidden.7x@quiet.example'])
  t.notOk(namesOf(sink.last().raw).includes('To'), 'nobody of to is left')
  silent(t, sink)
})

t.test('SES gets bcc as destinations only, not in the message', async (t) => {
  const { service, team, send } = await worldOf(await renewed())
  const api = await startSesApi(t, {
    onSend: (_call, nth) => (nth === 1 ? { status: 429, type: 'TooManyRequestsException' } : undefined),
  })
  const email = createSesProvider({ region: 'eu-west-1', endpoint: api.url, max_connections: 5 })
  t.teardown(() => email.close())
  await startWorker(t, service, { email })
  const id = await send(COPIES)
  await until('SES has it', () => api.calls.length === 2)
  for (const call of api.calls) {
    t.strictSame(call.to, EVERYBODY)
    t.strictSame(given(call.raw), [])
    const fields = fieldsOf(call.raw)
    t.ok(fields.includes('Cc: "Zoe, PhD" <zoe@example.org>, yan@example.net'))
  }
  await until('it went', async () => (await emailById(service.database, team.id, id))?.status === 'sent')
})
