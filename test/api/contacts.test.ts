/** Single contacts over HTTP: create, read, change, delete, and the email in the path. */
import fc from 'fast-check'
import { createTopic } from '../../db/audience/contacts/topics.ts'
import { showContact } from '../../db/audience/suppressions/lift.ts'
import { contactsStored, contactsUsed, report, setRoom, teamWithRoom } from '../support/contacts.ts'
import { makeTeam, type Reply, world } from '../support/service.ts'
import t from '../support/tap.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const UNKNOWN = '00000000-0000-7000-8000-000000000000'

const { service, call, team } = await world(t)
const { key } = team

const create = (body: unknown): Promise<Reply> => call('POST', '/v1/contacts', { key, body })
const path = (email: string): string => `/v1/contacts/${encodeURIComponent(email)}`
const refused = ({ status, body }: Reply): [number, string] => [status, body.error?.code]
const topic = async (name: string, teamId = team.id): Promise<string> =>
  (await createTopic({ tx: service.database, now: new Date(), actor: 'cli' }, teamId, { name })).id

t.test('POST creates a subscribed contact', async (t) => {
  const { status, body } = await create({ email: 'first@example.org' })
  t.equal(status, 201)
  t.match(body, { id: UUID, created_at: TIME, updated_at: TIME })
  const { id: _id, created_at, updated_at, ...rest } = body
  t.strictSame(rest, {
    email: 'first@example.org',
    status: 'subscribed',
    properties: {},
    subscribed_topic_ids: [],
  })
  t.equal(created_at, updated_at)
  t.strictSame((await call('GET', path('first@example.org'), { key })).body, body)
})

t.test('an existing email is contact_exists, and nothing is overwritten', async (t) => {
  const first = await create({ email: 'Twice@Example.org', properties: { a: '1' } })
  for (const email of ['Twice@Example.org', 'twice@example.org', ' TWICE@EXAMPLE.ORG '])
    t.strictSame(refused(await create({ email, properties: { b: '2' } })), [409, 'contact_exists'], email)
  t.strictSame((await call('GET', path('twice@example.org'), { key })).body, first.body)
})

t.test('a full quota is quota_exceeded, after contact_exists', async (t) => {
  const small = await teamWithRoom(service, 1)
  const post = (email: string) => call('POST', '/v1/contacts', { key: small.key, body: { email } })
  t.equal((await post('a@example.org')).status, 201)
  t.strictSame(refused(await post('b@example.org')), [402, 'quota_exceeded'])
  t.strictSame(refused(await post('A@example.org')), [409, 'contact_exists'])
  t.equal(await contactsUsed(service, small), 1)
  t.equal((await call('DELETE', path('a@example.org'), { key: small.key })).status, 204)
  t.equal((await post('b@example.org')).status, 201, 'DELETE frees a place')
  await setRoom(service, small, 0)
  t.strictSame(refused(await post('c@example.org')), [402, 'quota_exceeded'], 'below what is used')
})

t.test('concurrent creates never exceed the quota', async (t) => {
  const small = await teamWithRoom(service, 10)
  const replies = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      call('POST', '/v1/contacts', { key: small.key, body: { email: `c${index % 15}@example.org` } }),
    ),
  )
  t.equal(replies.filter(({ status }) => status === 201).length, 10)
  t.ok(replies.every(({ status }) => [201, 402, 409].includes(status)))
  t.equal(await contactsStored(service, small), 10)
  t.equal(await contactsUsed(service, small), 10)
})

t.test('properties keep any key, and are {} if empty', async (t) => {
  const properties = JSON.parse(
    '{"__proto__":"p","constructor":"c","prototype":"o","toString":"t","":"empty","a.b[0]":"é\\ud83d\\ude00","n":""}',
  )
  const raw = JSON.stringify({ email: 'keys@example.org', properties })
  const headers = { 'Content-Type': 'application/json' }
  const made = await call('POST', '/v1/contacts', { key, raw, headers })
  t.equal(made.status, 201)
  const shown = (await call('GET', path('keys@example.org'), { key })).body.properties
  for (const map of [made.body.properties, shown])
    t.strictSame(Object.entries(map).sort(), Object.entries(properties).sort())
  t.equal(({} as { polluted?: string }).polluted, undefined)
  for (const [email, given] of [
    ['none@example.org', undefined],
    ['null@example.org', null],
    ['empty@example.org', {}],
  ]) {
    t.strictSame((await create({ email, properties: given })).body.properties, {})
  }
})

t.test('properties keep any text', async (t) => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((value) => !value.includes('\0'))
  await create({ email: 'any@example.org' })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(text, text), { maxLength: 20 }), async (entries) => {
      const properties = Object.fromEntries(entries)
      const { body } = await call('PATCH', path('any@example.org'), { key, body: { properties } })
      t.strictSame(Object.entries(body.properties).sort(), Object.entries(properties).sort())
    }),
    { numRuns: 50 },
  )
})

t.test('properties have at most 100 keys of 128 characters', async (t) => {
  const keys = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, '']))
  const face = '😀'
  const fitting = { ...keys(98), [face.repeat(128)]: 'x', long: face.repeat(2048) }
  t.equal((await create({ email: 'full@example.org', properties: fitting })).status, 201)
  for (const [properties, words] of [
    [keys(101), 'properties must have at most 100 keys'],
    [{ ['k'.repeat(129)]: '' }, 'must have a key of at most 128 characters'],
    [{ city: 'x'.repeat(2049) }, 'properties.city must have at most 2048 characters'],
    [{ '${path}': 'x'.repeat(2049) }, 'properties["${path}"] must have at most 2048 characters'],
    [{ a: 1 }, 'properties.a must be a string'],
    [{ '${path}': null }, 'properties["${path}"] must be a string'],
    [['a'], 'properties must be an object whose values are strings'],
    ['a', 'properties must be an object whose values are strings'],
    [{ a: 'b\0' }, 'properties.a must not contain NUL characters'],
    [{ 'a\0': 'b' }, 'must not contain NUL characters'],
    [{ a: '\ud800' }, 'properties.a must not contain lone surrogates'],
  ] as const) {
    const reply = await create({ email: 'over@example.org', properties })
    t.strictSame(refused(reply), [400, 'bad_request'], words)
    t.match(reply.body.error.message, words)
  }
})

t.test('an invalid contact is bad_request', async (t) => {
  for (const body of [{}, [], 'text', null, { email: 'x@example.org', topic_ids: [UNKNOWN] }])
    t.strictSame(refused(await create(body)), [400, 'bad_request'], JSON.stringify(body))
  t.strictSame(refused(await call('POST', '/v1/contacts', { key })), [400, 'bad_request'], 'no body')
  t.equal((await call('GET', path('x@example.org'), { key })).status, 404, 'nothing was stored')
})

t.test('topic_ids must be the team’s, and are stored once', async (t) => {
  const [news, offers] = [await topic('news'), await topic('offers')]
  const other = await makeTeam(service)
  const foreign = await topic('news', other.id)
  const { body } = await create({
    email: 'topics@example.org',
    topic_ids: [offers, news.toUpperCase(), offers, news],
  })
  t.strictSame(body.subscribed_topic_ids, [offers, news])
  const patch = (topic_ids: unknown) =>
    call('PATCH', path('topics@example.org'), { key, body: { topic_ids } })
  t.strictSame(refused(await patch([foreign])), [400, 'bad_request'], "another team's topic")
  t.strictSame((await patch([news])).body.subscribed_topic_ids, [news])
  t.strictSame((await patch([])).body.subscribed_topic_ids, [])
})

t.test('emails are returned as entered, and match in any spelling', async (t) => {
  const given = 'Jörg+News@BÜCHER.example'.replace('ö', 'oe')
  const made = await create({ email: `  ${given} ` })
  t.equal(made.body.email, given)
  for (const email of [
    given,
    given.toLowerCase(),
    'joerg+news@xn--bcher-kva.example',
    'JOERG+NEWS@XN--BCHER-KVA.EXAMPLE',
  ]) {
    t.equal((await call('GET', path(email), { key })).body.id, made.body.id, email)
    t.strictSame(refused(await create({ email })), [409, 'contact_exists'], email)
  }
  t.equal((await call('GET', '/v1/contacts/joerg+news@bücher.example', { key })).body.id, made.body.id)
})

t.test('the path accepts an email URL-encoded or not', async (t) => {
  for (const email of [
    "o'hara+x@example.org",
    'a/b@example.org',
    'a%b@example.org',
    '!#$&=?^`{|}~@example.org',
  ]) {
    const { body } = await create({ email })
    t.equal((await call('GET', path(email), { key })).body.id, body.id, email)
  }
  t.equal((await call('GET', "/v1/contacts/o'hara+x@example.org", { key })).status, 200)
})

t.test('malformed percent-encoding and NUL in the path are bad_request', async (t) => {
  for (const email of '%zz@example.org a%@example.org %ff@example.org %ed%a0%80@example.org %00'.split(' ')) {
    t.strictSame(refused(await call('DELETE', `/v1/contacts/${email}`, { key })), [400, 'bad_request'], email)
    t.equal((await call('GET', `/v1/contacts/${email}`)).status, 401, 'authentication comes first')
  }
})

t.test('unknown and invalid emails are contact_not_found', async (t) => {
  for (const email of ['unknown@example.org', 'no-address', 'a@b', 'a\r\nb@example.org']) {
    for (const [method, tail, body] of [
      ['GET', '', undefined],
      ['PATCH', '', {}],
      ['DELETE', '', undefined],
      ['POST', '/unsubscribe', undefined],
      ['POST', '/resubscribe', undefined],
    ] as const) {
      const reply = await call(method, path(email) + tail, { key, ...(body && { body }) })
      t.strictSame(refused(reply), [404, 'contact_not_found'], `${method} ${email}${tail}`)
    }
  }
})

t.test('PATCH replaces properties and topics, and ignores absent ones', async (t) => {
  const news = await topic('patched')
  const made = await create({ email: 'patch@example.org', properties: { a: '1', b: '2' }, topic_ids: [news] })
  let before = made.body
  for (const [body, changes] of [
    [{ properties: { b: '3' } }, { properties: { b: '3' } }],
    [{ topic_ids: [] }, { subscribed_topic_ids: [] }],
    [{}, {}],
    [{ properties: null, topic_ids: null, email: 'new@example.org', unknown: 'bounced' }, {}],
    [{ properties: {} }, { properties: {} }],
  ]) {
    const { status, body: after } = await call('PATCH', path('PATCH@example.org'), { key, body })
    t.equal(status, 200)
    t.strictSame(after, { ...before, ...changes, updated_at: after.updated_at })
    t.ok(after.updated_at > before.updated_at, 'updated_at advances')
    before = after
  }
})

t.test('DELETE deletes the contact, but not its address’s suppression', async (t) => {
  await create({ email: 'gone@example.org' })
  await report(service, team, 'gone@example.org', 'complained')
  const used = await contactsUsed(service, team)
  const { status, body, headers } = await call('DELETE', path('Gone@Example.org'), { key })
  t.strictSame([status, body, headers.get('content-type')], [204, '', null])
  t.equal(await contactsUsed(service, team), used - 1)
  t.strictSame(refused(await call('DELETE', path('gone@example.org'), { key })), [404, 'contact_not_found'])
  t.equal(await contactsUsed(service, team), used - 1)
  t.equal((await create({ email: 'gone@example.org' })).body.status, 'subscribed')
  t.equal((await call('POST', `${path('gone@example.org')}/resubscribe`, { key })).status, 200)
  t.match(await showContact(service.database, team.id, 'gone@example.org'), {
    status: 'subscribed',
    suppression: 'complained',
  })
  await call('POST', `${path('gone@example.org')}/unsubscribe`, { key })
  t.strictSame(refused(await call('POST', `${path('gone@example.org')}/resubscribe`, { key })), [
    ...[409, 'contact_suppressed'],
  ])
})

t.test('a body can’t change the status, but can repeat it', async (t) => {
  const CALLS = /POST \/v1\/contacts\/:email\/unsubscribe or \/resubscribe/
  const email = 'consent@example.org'
  const wrong = [
    { unsubscribed: true },
    { status: 'unsubscribed' },
    { status: 'bounced', unsubscribed: false },
    { unsubscribed: 'true' },
    { subscribed: false },
    { emailBlacklisted: true },
    { status: 5 },
  ]
  for (const claim of wrong) {
    const reply = await create({ email, ...claim })
    t.strictSame(refused(reply), [400, 'bad_request'], JSON.stringify(claim))
    t.match(reply.body.error.message, CALLS)
  }
  const soAlready = { unsubscribed: false, status: 'subscribed', subscribed: true, emailBlacklisted: false }
  t.equal((await create({ email, ...soAlready })).status, 201)
  const patch = (body: unknown) => call('PATCH', path(email), { key, body })
  for (const claim of wrong) t.strictSame(refused(await patch(claim)), [400, 'bad_request'])
  t.equal((await patch({ unsubscribed: null, status: 'subscribed' })).status, 200)
  const read = (await call('POST', `${path(email)}/unsubscribe`, { key })).body
  t.equal((await patch({ ...read, unsubscribed: true })).status, 200, 'sent back as it was read')
  t.strictSame(refused(await patch({ status: 'subscribed' })), [400, 'bad_request'])
  t.strictSame(refused(await patch({ unsubscribed: false })), [400, 'bad_request'])
  t.strictSame(refused(await patch({ subscribed: true })), [400, 'bad_request'])
  t.strictSame(refused(await patch({ emailBlacklisted: false })), [400, 'bad_request'])
  t.equal((await patch({ subscribed: false, emailBlacklisted: true })).status, 200)
  t.equal((await call('GET', path(email), { key })).body.status, 'unsubscribed')
})

t.test('topic_ids has at most 1,000 items', async (t) => {
  const topic_ids = Array.from({ length: 1_001 }, () => UNKNOWN)
  const email = 'topics@example.org'
  await create({ email })
  for (const reply of [
    await create({ email: 'x@example.org', topic_ids }),
    await call('PATCH', path(email), { key, body: { topic_ids } }),
    await call('POST', '/v1/marketing/unsubscribe', { key, body: { email, topic_ids } }),
  ]) {
    t.strictSame(refused(reply), [400, 'bad_request'])
    t.match(reply.body.error.message, 'topic_ids must have at most 1000 items')
  }
  const most = { email, topic_ids: topic_ids.slice(1) }
  t.equal((await call('POST', '/v1/marketing/unsubscribe', { key, body: most })).status, 204)
})
