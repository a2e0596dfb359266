/** Input and errors: names, keys, unsupported fields, and the position in invalid JSON (DECISIONS: Input). */
import { addDomain } from '../../../db/accounts/domains/add.ts'
import { anEmail, byCli, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'
import { startWorker } from '../../support/worker.ts'

const { service, team } = await world(t)
const { call } = service
const { key } = team

const send = (body: unknown, headers: Record<string, string> = {}) =>
  call('POST', '/v1/emails', { key, body, headers })
const refusal = async (body: unknown, headers: Record<string, string> = {}): Promise<string> => {
  const reply = await send(body, headers)
  return `${reply.status} ${reply.body.error?.code}: ${reply.body.error?.message}`
}

t.test('accepts unquoted names with special characters, and quotes them', async (t) => {
  for (const [from, shown] of [
    ['Acme, Inc. <hello@example.com>', '"Acme, Inc." <hello@example.com>'],
    ['Acme (Berlin): Sales <hello@example.com>', '"Acme (Berlin): Sales" <hello@example.com>'],
    ['Acme <hello@example.com>', 'Acme <hello@example.com>'],
  ]) {
    const { status, body } = await send(anEmail({ from }))
    t.equal(status, 201)
    t.equal(body.from_address, shown)
  }
  for (const from of [
    'A <b> <hello@example.com>',
    'a@b.test <hello@example.com>',
    'A "B" <hello@example.com>',
  ]) {
    t.match(await refusal(anEmail({ from })), /^400 invalid_from/)
  }
})

t.test('recipients can have names, which are normalized like from', async (t) => {
  const to = [
    'Ana <ana@example.org>',
    '"Roe, R." <roe@example.org>',
    'Doe, D. <doe@example.org>',
    ' <bare@example.org>',
  ]
  const { status, body } = await send(anEmail({ to }))
  t.equal(status, 201)
  t.strictSame(body.to_emails, [
    'Ana <ana@example.org>',
    '"Roe, R." <roe@example.org>',
    '"Doe, D." <doe@example.org>',
    'bare@example.org',
  ])
  const long = await refusal(anEmail({ to: [`${'x'.repeat(257)} <ana@example.org>`] }))
  t.match(long, /^400 bad_request: to\[0\] must be an email address/)
})

t.test('links a single recipient with a name to its contact', async (t) => {
  const { body: contact } = await call('POST', '/v1/contacts', { key, body: { email: 'named@example.org' } })
  const { body } = await send(anEmail({ to: ['A Name <Named@example.org>'] }))
  t.equal(body.contact_id, contact.id)
})

t.test('single sends accept Idempotency-Key like idempotency_key', async (t) => {
  const first = await send(anEmail(), { 'Idempotency-Key': 'header-1' })
  t.strictSame([first.status, first.body.idempotency_key], [201, 'header-1'])
  const again = await send(anEmail({ idempotency_key: 'header-1' }))
  t.strictSame([again.status, again.body.id], [200, first.body.id])
  const both = await send(anEmail({ idempotency_key: 'header-1' }), { 'Idempotency-Key': 'header-1' })
  t.equal(both.status, 200)
  const other = await refusal(anEmail({ idempotency_key: 'a' }), { 'Idempotency-Key': 'b' })
  t.match(other, /^400 bad_request: .*must match\.$/)
  const long = await refusal(anEmail(), { 'Idempotency-Key': 'x'.repeat(256) })
  t.match(long, /^400 bad_request: Idempotency-Key/)
  t.match(
    await refusal(anEmail({ from: 'no address', idempotency_key: 'a' }), { 'Idempotency-Key': 'b' }),
    /^400 bad_request: .*must match\.$/,
    'before what else is wrong with the body',
  )
  t.match(await refusal(anEmail({ from: 'no address' }), { 'Idempotency-Key': 'b' }), /^400 invalid_from: /)
  const template = await makeTemplate(service, team.id)
  const message = aMessage(template.id)
  const post = () =>
    call('POST', '/v1/whatsapp/messages', { key, body: message, headers: { 'Idempotency-Key': 'w-1' } })
  t.strictSame([(await post()).status, (await post()).status], [201, 200])
})

t.test('empty lists of copies are accepted where copies aren’t supported', async (t) => {
  const template = await makeTemplate(service, team.id)
  const message = aMessage(template.id, { cc: [], bcc: [] })
  t.equal((await call('POST', '/v1/whatsapp/messages', { key, body: message })).status, 201)
})

t.test('all missing fields are named at once', async (t) => {
  t.equal(await refusal({}), '400 bad_request: from, to, subject, and html or template_id are required.')
  t.equal(await refusal(anEmail({ subject: null })), '400 bad_request: subject is required.')
  t.equal(await refusal(anEmail({ html: '' })), '400 bad_request: html or template_id is required.')
  const { body } = await call('POST', '/v1/whatsapp/messages', { key, body: {} })
  t.equal(body.error.message, 'template_id and to are required.')
})

t.test('an empty text is absent', async (t) => {
  const { body } = await send(anEmail({ text: '' }))
  t.equal(body.body_text, '')
})

t.test("errors about invalid JSON don't quote the content", async (t) => {
  const rest = 'at position 3 (line 1 column 4)'
  for (const [raw, words] of [
    ['{\n  "from": "secret"\n  "to": []\n}', "Expected ',' or '}' after property value (line 3 column 3)"],
    ['{"from": "secret', 'Unterminated string (line 1 column 17)'],
    ['{"from": "secret\\p"}', 'Bad escaped character (line 1 column 18)'],
    ['{"from": "sec\nret"}', 'Bad control character in string literal (line 1 column 14)'],
    ['{"from": "a"} secret', 'Unexpected non-whitespace character after JSON (line 1 column 15)'],
    ['{"to": [secret]}', 'Unexpected token'],
    [`secret ${rest}`, 'Unexpected token'],
    [`["", secret ${rest}]`, 'Unexpected token'],
    [`\n${rest}`, 'Unexpected token'],
    ['{"from": ', 'Unexpected end of JSON input'],
  ] as const) {
    const headers = { 'Content-Type': 'application/json' }
    const { status, body } = await call('POST', '/v1/emails', { key, raw, headers })
    t.strictSame([status, body.error.message], [400, `The request body must be valid JSON: ${words}.`], raw)
  }
})

t.test('invalid strings cause the same error in any body size', async (t) => {
  const headers = { 'Content-Type': 'application/json' }
  const text = '<p>Dear customer, your order A-17 is on its way.</p>'
  for (const html of [`${text}\n${text}`, `${text}\\p`, text.repeat(1_000), `${text.repeat(2_000)}\n`]) {
    const body = { ...anEmail(), html: '…' }
    // As clients build JSON manually: a line break inside of a string, an unknown escape, a missing closing
    // quote.
    const raw = JSON.stringify(body)
      .replace('…', html)
      .replace(/"}$/, html.endsWith('>') ? '' : '"}')
    const { status, body: answer } = await call('POST', '/v1/emails', { key: team.key, raw, headers })
    t.equal(status, 400)
    t.match(answer.error, {
      code: 'bad_request',
      message: /^The request body must be valid JSON: [\w ]+ \(line 1 column \d+\)\.$/,
    })
  }
})

t.test('a batch is a list with a limit', async (t) => {
  await startWorker(t, service)
  for (const [path, field, most, item] of [
    ['/v1/emails/batch', 'emails', 100, anEmail()],
    ['/v1/whatsapp/messages/batch', 'messages', 100, {}],
    ['/v1/contacts/bulk', 'contacts', 1_000, { email: 'ana@example.org' }],
  ] as const) {
    const post = async (body?: unknown) => {
      const reply = await call('POST', path, { key, body })
      return `${reply.status} ${reply.body.error?.code ?? reply.body.data.length}`
    }
    t.equal(await post({ [field]: Array(most + 1).fill(item) }), '400 batch_too_large', path)
    t.equal(await post({ [field]: Array(most).fill({}) }), `200 ${most}`, path)
    t.equal(await post({ [field]: [] }), '200 0', path)
    for (const body of [[], undefined, ...[undefined, null, {}, 'x', 5].map((items) => ({ [field]: items }))])
      t.equal(await post(body), '400 bad_request', `${path} ${JSON.stringify(body)}`)
  }
})

t.test('a pending domain has another error than an unknown one', async (t) => {
  const { database, deps } = service
  const domain = { name: 'pending.test', verified: false }
  await addDomain({ ...byCli(database), secrets: deps.secrets }, team.id, domain)
  const pending = await refusal(anEmail({ from: 'a@pending.test' }))
  t.match(pending, /^422 from_domain_not_verified: .*pending\.test isn't verified yet/)
  const unknown = await refusal(anEmail({ from: 'a@unknown.test' }))
  t.match(unknown, /^422 from_domain_not_verified: .*Add and verify unknown\.test first\.$/)
})

t.test('a 404 refers to /docs and doesn’t repeat the path', async (t) => {
  const { status, body } = await call('POST', '/v1/email', { key, body: {} })
  t.strictSame([status, body.error.code], [404, 'not_found'])
  t.match(body.error.message, '/docs')
  t.notMatch(body.error.message, '/v1/email')
})
