/** POST /v1/emails: validation, the stored row and errors of a single send. DECISIONS: Order of errors. */

import { EMPTY } from '../support/empty.ts'
import { anEmail, makeKey, world } from '../support/service.ts'
import t from '../support/tap.ts'

const { service, team } = await world(t)
const send = async (changes: Record<string, unknown> = {}, key = team.key) =>
  await service.call('POST', '/v1/emails', { key, body: anEmail(changes) })
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

t.test('201 returns the complete Email with status queued', async (t) => {
  const { status, body } = await send({ to: ['a@example.org', 'b@example.org'], text: 'Hello', tags: ['x'] })
  t.equal(status, 201)
  t.match(body.id, UUID)
  t.strictSame(
    { ...body, id: '', created_at: '' },
    {
      id: '',
      team_id: team.id,
      domain_id: team.domain_id,
      template_id: null,
      from_address: 'Acme <hello@example.com>',
      to_emails: ['a@example.org', 'b@example.org'],
      subject: 'Hello',
      html: '<p>Hello</p>',
      size_kb: 0.01,
      tags: ['x'],
      status: 'queued',
      idempotency_key: null,
      created_at: '',
      requeued_at: null,
      provider_message_id: null,
      broadcast_id: null,
      contact_id: null,
      unsubscribe_token: null,
      body_text: 'Hello',
      headers: null,
      reply_to: '',
    },
  )
  t.equal(new Date(body.created_at).toISOString(), body.created_at)
})

t.test('null means absent, and unknown fields are ignored', async (t) => {
  const blank = { template_id: null, variables: null, text: null, headers: null, reply_to: null, tags: null }
  const { status, body } = await send({ ...blank, idempotency_key: null, colour: 'red' })
  t.equal(status, 201)
  t.match(body, {
    template_id: null,
    body_text: /^$/,
    headers: null,
    reply_to: /^$/,
    tags: EMPTY,
    idempotency_key: null,
  })
})

t.test('requires html or template_id, and empty html is missing', async (t) => {
  for (const changes of [{ html: undefined }, { html: '' }]) {
    const { status, body } = await send(changes)
    t.equal(status, 400)
    t.match(body.error, { code: 'bad_request', message: /html or template_id/ })
  }
})

t.test('from can have a name, and is normalized', async (t) => {
  const forms = {
    'hello@example.com': 'hello@example.com',
    ' hello@EXAMPLE.com ': 'hello@EXAMPLE.com',
    'Acme <hello@example.com>': 'Acme <hello@example.com>',
    '"Acme" <hello@example.com>': 'Acme <hello@example.com>',
    '"Acme, Inc." <hello@example.com>': '"Acme, Inc." <hello@example.com>',
    'Société Générale <hello@example.com>': 'Société Générale <hello@example.com>',
    '<hello@example.com>': 'hello@example.com',
  }
  for (const [from, normal] of Object.entries(forms)) {
    const { status, body } = await send({ from })
    t.equal(status, 201, from)
    t.equal(body.from_address, normal)
  }
})

t.test('an invalid from address is invalid_from', async (t) => {
  for (const from of [
    'nobody',
    'a@b',
    'a@b.c, d@e.f',
    'Name a@b.c',
    'a@b.c\r\nBcc: x@y.z',
    'x@[127.0.0.1]',
    'ü@example.com',
  ]) {
    const { status, body } = await send({ from })
    t.equal(`${status} ${body.error?.code}`, '400 invalid_from', from)
  }
  t.equal((await send({ from: '' })).body.error.code, 'bad_request')
})

t.test('an unverified from domain is 422, even a subdomain', async (t) => {
  for (const from of ['a@example.net', 'a@sub.example.com']) {
    const { status, body } = await send({ from })
    t.equal(`${status} ${body.error?.code}`, '422 from_domain_not_verified')
  }
})

t.test('a key can only send from its own domain', async (t) => {
  const bound = await makeKey(service, team.id, { domain: 'example.net' })
  t.equal((await send({}, bound)).body.error.code, 'domain_not_allowed')
  t.equal((await send({}, await makeKey(service, team.id, { domain: 'example.com' }))).status, 201)
})

t.test('to has 1 to 50 addresses', async (t) => {
  const many = Array.from({ length: 51 }, (_, index) => `someone${index}@example.org`)
  t.equal((await send({ to: many.slice(1) })).status, 201)
  for (const to of [
    [],
    many,
    ['nobody'],
    ['v@e.fr, evil@x.fr'],
    ['a@b.co', null],
    ['x@y.fr\r\nRCPT TO:<w@w.fr>'],
  ]) {
    t.equal((await send({ to })).body.error?.code, 'bad_request', JSON.stringify(to).slice(0, 60))
  }
  t.match((await send({ to: ['a@b.co', 'nobody'] })).body.error.message, /to\[1\]/)
})

t.test('limits count code points, or bytes for html and text', async (t) => {
  const mib = 1024 * 1024
  const longest = {
    subject: '𝄞'.repeat(998),
    tags: Array(20).fill('é'.repeat(128)),
    idempotency_key: 'k'.repeat(255),
  }
  t.equal((await send({ ...longest, html: 'x'.repeat(mib), text: 'x'.repeat(mib) })).status, 201)
  const tooLong = {
    subject: '𝄞'.repeat(999),
    html: `${'x'.repeat(mib - 1)}é`,
    text: 'x'.repeat(mib + 1),
    tags: ['x'.repeat(129)],
    idempotency_key: 'k'.repeat(256),
  }
  for (const [field, value] of Object.entries(tooLong)) {
    const error = (await send({ [field]: value })).body.error
    t.match(error, { code: 'bad_request', message: new RegExp(field) }, field)
  }
  for (const changes of [
    { tags: Array(21).fill('x') },
    { subject: '' },
    { subject: 'a\nb' },
    { idempotency_key: '' },
    { idempotency_key: 'é' },
  ]) {
    t.equal((await send(changes)).body.error?.code, 'bad_request', JSON.stringify(changes).slice(0, 60))
  }
})

t.test('custom headers are returned unchanged', async (t) => {
  const headers = {
    'X-Order': 'a  b',
    'List-Unsubscribe': '<https://example.com/u>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    __proto__x: 'ordinary',
    [`X-${'a'.repeat(124)}`]: 'v'.repeat(995),
  }
  const { status, body } = await send({ headers })
  t.equal(status, 201)
  t.strictSame(body.headers, headers)
  const raw = JSON.stringify(anEmail()).replace(/}$/, ',"headers":{"__proto__":"x","constructor":"y"}}')
  const odd = await service.call('POST', '/v1/emails', {
    key: team.key,
    raw,
    headers: { 'Content-Type': 'application/json' },
  })
  t.equal(odd.status, 201)
  const returned = JSON.parse(JSON.stringify(odd.body.headers))
  t.strictSame(returned, JSON.parse('{"__proto__":"x","constructor":"y"}'))
})

t.test('headers that the operator reserves are invalid_headers', async (t) => {
  const refused = await send({ headers: { 'X-Fine': 'x', 'x-relay-Bcc': 'x' } })
  t.equal(`${refused.status} ${refused.body.error.code}`, '400 invalid_headers')
  const message = refused.body.error.message
  t.equal(message, "headers.x-relay-Bcc can't be set. Names with the prefix X-RELAY- are reserved.")
  const { body } = await service.call('POST', '/v1/emails/batch', {
    key: team.key,
    body: { emails: [anEmail({ headers: { 'X-STEERING': 'x' } }), anEmail({ headers: { 'X-Relay': 'x' } })] },
  })
  t.match(body.data[0].error, {
    code: 'invalid_headers',
    message: /^emails\[0\]\.headers\.X-STEERING can't be set/,
  })
  t.match(body.data[1], { id: String })
})

t.test('reserved, malformed and oversized headers are invalid_headers', async (t) => {
  const reserved = [
    ...'From To Cc Bcc Subject Date Message-ID MIME-Version Content-Type'.split(' '),
    ...'Content-Transfer-Encoding Return-Path Received DKIM-Signature X-SES-Anything X-Session'.split(' '),
    ...'X-PROVIDER-Tag X-Heliograph-Ref X-Heliograph-Anything'.split(' '),
  ]
  const wrong = [
    ...reserved.flatMap((name) => [{ [name]: 'x' }, { [name.toLowerCase()]: 'x' }]),
    { '': 'x' },
    { 'a b': 'x' },
    { 'a:b': 'x' },
    { é: 'x' },
    { ['a'.repeat(127)]: 'x' },
    { 'X-A': '' },
    { 'X-A': 'x'.repeat(996) },
    { 'X-A': 'a\r\nb' },
    { 'X-A': 'é' },
    { 'X-A': '\t' },
    { 'X-A': '\u0000' },
    { 'X-A': '1', 'x-a': '2' },
    Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`X-${index}`, 'x'])),
  ]
  for (const headers of wrong) {
    const { status, body } = await send({ headers })
    t.equal(status, 400)
    t.match(body.error.code, /^invalid_headers$|^bad_request$/, JSON.stringify(headers).slice(0, 60))
    if (!JSON.stringify(headers).includes('u0000')) t.equal(body.error.code, 'invalid_headers')
  }
})

t.test('reply_to is stored without its name, or is invalid_reply_to', async (t) => {
  t.equal((await send({ reply_to: 'Support <help@example.net>' })).body.reply_to, 'help@example.net')
  t.equal((await send({ reply_to: '' })).body.reply_to, '')
  t.equal((await send({ reply_to: 'nobody' })).body.error.code, 'invalid_reply_to')
})

t.test('a reserved header is reported before an invalid reply_to', async (t) => {
  for (const name of ['Bcc', 'X-Relay-Pool']) {
    const { body } = await send({ headers: { [name]: 'x' }, reply_to: 'nobody' })
    t.equal(body.error.code, 'invalid_headers', name)
  }
})

t.test('NUL and lone surrogates are bad_request in every field', async (t) => {
  for (const text of ['a\u0000b', 'a\ud800b']) {
    for (const changes of [
      { subject: text },
      { html: text },
      { text },
      { tags: [text] },
      { variables: { [text]: 'x' } },
      { to: [`${text}@example.org`] },
    ]) {
      const { status, body } = await send(changes)
      t.equal(`${status} ${body.error?.code}`, '400 bad_request', JSON.stringify(changes))
    }
  }
  const nested = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const raw = JSON.stringify(anEmail()).replace(/}$/, `,"variables":{"x":${nested}}}`)
  const { status } = await service.call('POST', '/v1/emails', {
    key: team.key,
    raw,
    headers: { 'Content-Type': 'application/json' },
  })
  t.equal(status, 400)
})

t.test('missing, malformed, untyped and oversized bodies have their own errors', async (t) => {
  const post = async (options: object) => {
    const { status, body } = await service.call('POST', '/v1/emails', { key: team.key, ...options })
    return `${status} ${body.error?.code}`
  }
  const json = { 'Content-Type': 'application/json' }
  t.equal(await post({}), '400 bad_request')
  t.equal(await post({ raw: '{"from":', headers: json }), '400 bad_request')
  t.equal(await post({ raw: new Uint8Array([0x22, 0xff, 0x22]), headers: json }), '400 bad_request')
  t.equal(await post({ raw: '[]', headers: json }), '400 bad_request')
  t.equal(await post({ raw: new TextEncoder().encode('{}') }), '415 unsupported_media_type')
  t.equal(await post({ raw: '{}', headers: { 'Content-Type': 'text/plain' } }), '415 unsupported_media_type')
  t.equal(await post({ raw: `"${'x'.repeat(10 * 1024 * 1024)}"`, headers: json }), '413 payload_too_large')
})
