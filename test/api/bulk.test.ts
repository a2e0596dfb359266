/** POST /v1/contacts/bulk with a worker: results, stored contacts and quotas. DECISIONS: Bulk upsert. */
import fc from 'fast-check'
import { sql } from 'slonik'
import { createTopic } from '../../db/audience/contacts/topics.ts'
import { contactsStored, contactsUsed, report, setRoom, teamWithRoom } from '../support/contacts.ts'
import { byCli, type Reply, type TestTeam, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { startWorker } from '../support/worker.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

const { service, call, team } = await world(t)
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })
const { key } = team

const bulk = (contacts: unknown, { key: credential }: Pick<TestTeam, 'key'> = team): Promise<Reply> =>
  call('POST', '/v1/contacts/bulk', { key: credential, body: { contacts } })
const show = async (email: string, { key: credential }: Pick<TestTeam, 'key'> = team) =>
  (await call('GET', `/v1/contacts/${encodeURIComponent(email)}`, { key: credential })).body
const refused = ({ status, body }: Reply): [number, string] => [status, body.error?.code]

type Item = { index: number; id?: string; error?: { code: string; message: string } }
const outcomes = ({ body }: Reply): string[] =>
  body.data.map(({ id, error }: Item) => error?.code ?? (id && 'id'))
const ids = ({ body }: Reply): string[] => body.data.map(({ id }: Item) => id)

t.test('returns one result per item, in request order', async (t) => {
  const emails = Array.from({ length: 50 }, (_, index) => `order${(index * 37) % 50}@example.org`)
  const reply = await bulk(emails.map((email) => ({ email, properties: { email } })))
  t.equal(reply.status, 200)
  t.strictSame(Object.keys(reply.body), ['data'])
  for (const [index, item] of reply.body.data.entries()) {
    t.match(item.id, UUID)
    t.strictSame(item, { index, id: item.id })
    t.match(await show(emails[index] ?? ''), { id: item.id, properties: { email: emails[index] } })
  }
})

t.test('accepts bodies of any size, also with a BOM', async (t) => {
  for (const padding of [0, 100_000]) {
    const email = `marked${padding}@example.org`
    const properties = { name: 'é 漢 😀' }
    const raw = `\ufeff${JSON.stringify({ contacts: [{ email, properties }] })}${' '.repeat(padding)}`
    const headers = { 'Content-Type': 'application/json' }
    t.match(outcomes(await call('POST', '/v1/contacts/bulk', { key, raw, headers })), ['id'])
    t.match(await show(email), { properties })
  }
})

t.test('subscribes a new contact without topics, and ignores topic_ids', async (t) => {
  const topic = await createTopic(byCli(service.database), team.id, { name: 'bulk' })
  await bulk([
    { email: ' New@Example.org ', topic_ids: [topic.id] },
    { email: 'odd@example.org', topic_ids: 'x' },
  ])
  const { id, created_at, updated_at, ...rest } = await show('new@example.org')
  t.strictSame(rest, {
    email: 'New@Example.org',
    status: 'subscribed',
    properties: {},
    subscribed_topic_ids: [],
  })
  t.match([id, created_at], [UUID, updated_at])
  t.equal((await show('odd@example.org')).status, 'subscribed')
})

t.test('an existing contact keeps everything except its properties', async (t) => {
  const topic = await createTopic(byCli(service.database), team.id, { name: 'kept' })
  const states = ['subscribed', 'unsubscribed', 'bounced', 'complained'] as const
  for (const state of states) {
    const email = `${state}@example.org`
    const body = { email, properties: { old: '1' }, topic_ids: [topic.id] }
    await call('POST', '/v1/contacts', { key, body })
    if (state === 'unsubscribed') await call('POST', `/v1/contacts/${email}/unsubscribe`, { key })
    else if (state !== 'subscribed') await report(service, team, email, state)
    const before = await show(email)
    const reply = await bulk([{ email: email.toUpperCase(), properties: { new: '2' } }])
    t.strictSame(reply.body, { data: [{ index: 0, id: before.id }] })
    const after = await show(email)
    t.strictSame(after, { ...before, properties: { new: '2' }, updated_at: after.updated_at })
    t.ok(after.updated_at > before.updated_at)
    await bulk([{ email, properties: {} }])
    t.strictSame((await show(email)).properties, {}, 'the whole map is replaced')
  }
})

t.test('an item without properties doesn’t change a contact', async (t) => {
  await bulk([{ email: 'asis@example.org', properties: { a: '1' } }])
  const before = await show('asis@example.org')
  const reply = await bulk([{ email: 'asis@example.org' }, { email: 'ASIS@example.org', properties: null }])
  t.strictSame(ids(reply), [before.id, before.id])
  t.strictSame(await show('asis@example.org'), before)
})

t.test('duplicates in a call share an ID, the last wins', async (t) => {
  for (const email of ['twin@example.org', 'twin@example.org']) {
    const reply = await bulk([
      { email, properties: { n: '1' } },
      { email: 'other@example.org' },
      { email: 'TWIN@Example.org', properties: { n: '2' } },
      { email, properties: 5 },
      { email: ` ${email}` },
    ])
    t.strictSame(outcomes(reply), ['id', 'id', 'id', 'bad_request', 'id'])
    const [first, , second, , third] = ids(reply)
    t.ok(first === second && second === third)
    t.match(await show(email), { id: first, email, properties: { n: '2' } })
  }
})

t.test('an invalid item is bad_request and doesn’t affect others', async (t) => {
  const items = [
    { email: 'good1@example.org' },
    null,
    'text',
    [],
    {},
    { email: 'no address' },
    { email: 'nul\0@example.org' },
    { email: 'lone@example.org', properties: { a: '\ud800' } },
    { email: 'nulkey@example.org', properties: { 'a\0': 'b' } },
    { email: 'long@example.org', properties: { a: 'x'.repeat(2_049) } },
    {
      email: 'many@example.org',
      properties: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [n, ''])),
    },
    { email: 'good2@example.org', unknown: '\0\ud800', properties: { '\u2028': '\u0001' } },
  ]
  const reply = await bulk(items)
  t.equal(reply.status, 200)
  const wanted = items.map((_, index) => (index === 0 || index === items.length - 1 ? 'id' : 'bad_request'))
  t.strictSame(outcomes(reply), wanted)
  t.match(reply.body.data[5].error, {
    code: 'bad_request',
    message: 'contacts[5].email must be an email address',
  })
  t.match(reply.body.data[9].error.message, /^contacts\[9\]\.properties\.a must have at most 2048 characters/)
  t.strictSame(Object.keys(reply.body.data[5].error), ['code', 'message'])
  t.strictSame((await show('good2@example.org')).properties, { '\u2028': '\u0001' })
  t.equal((await bulk([{ email: 'x' }])).status, 200, 'a call of nothing but invalid items')
})

t.test('deep nesting in an item doesn’t affect other items', async (t) => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  for (const field of ['properties', 'unknown']) {
    const item = `{"email":"deep@example.org","${field}":${deep}}`
    const raw = `{"contacts":[{"email":"beside@example.org"},${item}]}`
    const reply = await call('POST', '/v1/contacts/bulk', {
      key,
      raw,
      headers: { 'Content-Type': 'application/json' },
    })
    t.strictSame(outcomes(reply), ['id', field === 'unknown' ? 'id' : 'bad_request'])
  }
})

t.test('properties round-trip any key', async (t) => {
  const raw =
    '{"contacts":[{"email":"proto@example.org","properties":{"__proto__":"p","constructor":"c","":"e"}}]}'
  for (const _round of ['new', 'existing']) {
    const headers = { 'Content-Type': 'application/json' }
    t.equal((await call('POST', '/v1/contacts/bulk', { key, raw, headers })).status, 200)
    const { properties } = await show('proto@example.org')
    t.strictSame(Object.entries(properties).sort(), [
      ['', 'e'],
      ['__proto__', 'p'],
      ['constructor', 'c'],
    ])
  }
})

t.test('accepts 1,000 items in one call', async (t) => {
  const full = await bulk(Array.from({ length: 1_000 }, (_, n) => ({ email: `many${n}@example.org` })))
  t.ok(full.status === 200 && new Set(ids(full)).size === 1_000)
})

t.test('items are accepted in order until the quota is full', async (t) => {
  const small = await teamWithRoom(service, 3)
  const reply = await bulk(
    [
      { email: 'a@example.org' },
      { email: 'invalid' },
      { email: 'b@example.org' },
      { email: 'A@example.org', properties: { n: '2' } },
      { email: 'c@example.org' },
      { email: 'd@example.org' },
      { email: 'b@example.org' },
      { email: 'D@example.org' },
    ],
    small,
  )
  t.equal(reply.status, 200)
  t.strictSame(outcomes(reply), 'id bad_request id id id quota_exceeded id quota_exceeded'.split(' '))
  t.equal(await contactsUsed(service, small), 3)
  t.equal(await contactsStored(service, small), 3)
  const mixed = await bulk(
    [{ email: 'e@example.org' }, { email: 'a@example.org', properties: { n: '3' } }],
    small,
  )
  t.strictSame(outcomes(mixed), ['quota_exceeded', 'id'], 'full, but an existing contact is written')
  t.strictSame((await show('a@example.org', small)).properties, { n: '3' })
})

t.test('returns 402 if the quota is full and all valid items are new', async (t) => {
  const small = await teamWithRoom(service, 1)
  await bulk([{ email: 'a@example.org' }], small)
  const call402 = await bulk(
    [{ email: 'b@example.org' }, { email: 'invalid' }, { email: 'c@example.org' }],
    small,
  )
  t.strictSame(refused(call402), [402, 'quota_exceeded'])
  t.strictSame(Object.keys(call402.body), ['error'])
  t.match(call402.headers.get('ratelimit'), /"sends";r=\d+;t=\d+/)
  t.strictSame(outcomes(await bulk([{ email: 'invalid' }], small)), ['bad_request'], 'no valid item: 200')
  await setRoom(service, small, 0)
  t.strictSame(outcomes(await bulk([{ email: 'a@example.org' }], small)), ['id'], 'over a lowered limit')
  t.equal(await contactsUsed(service, small), 1)
  await call('DELETE', '/v1/contacts/a@example.org', { key: small.key })
  t.strictSame(refused(await bulk([{ email: 'a@example.org' }], small)), [402, 'quota_exceeded'])
})

t.test('counts contacts exactly in any mix of calls', async (t) => {
  const email = fc.integer({ min: 0, max: 12 }).map((n) => `mix${n}@example.org`)
  const step = fc.oneof(
    fc.record({ kind: fc.constant('create' as const), email }),
    fc.record({ kind: fc.constant('delete' as const), email }),
    fc.record({ kind: fc.constant('bulk' as const), emails: fc.array(email, { maxLength: 8 }) }),
    fc.record({ kind: fc.constant('room' as const), room: fc.integer({ min: 0, max: 10 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.boolean(), async (steps, parallel) => {
      const small = await teamWithRoom(service, 8)
      const take = async (each: (typeof steps)[number]): Promise<unknown> => {
        if (each.kind === 'room') return setRoom(service, small, each.room)
        if (each.kind === 'bulk')
          return bulk(
            each.emails.map((one) => ({ email: one })),
            small,
          )
        if (each.kind === 'delete') return call('DELETE', `/v1/contacts/${each.email}`, { key: small.key })
        return call('POST', '/v1/contacts', { key: small.key, body: { email: each.email } })
      }
      if (parallel) await Promise.all(steps.map(take))
      else for (const each of steps) await take(each)
      t.equal(await contactsUsed(service, small), await contactsStored(service, small))
    }),
    { numRuns: 15 },
  )
})

t.test('a finished upsert keeps its result and deletes its body', async (t) => {
  const { rows } = await service.database.query(sql.unsafe`
    select count(*) filter (where body is not null or result is null) as open, count(*) as all from contact_upserts`)
  t.match(rows[0], { open: 0 })
})

t.test('an item can’t change a status, but can repeat it', async (t) => {
  await bulk([{ email: 'left@example.org' }])
  await call('POST', '/v1/contacts/left@example.org/unsubscribe', { key })
  const reply = await bulk([
    { email: 'left@example.org', status: 'subscribed', properties: { a: 'lost' } },
    { email: 'left@example.org', status: 'unsubscribed', unsubscribed: true, properties: { a: 'kept' } },
    { email: 'comes@example.org', unsubscribed: true },
    { email: 'comes@example.org', status: 'subscribed', unsubscribed: false },
    { email: 'comes@example.org', subscribed: false },
    { email: 'left@example.org', subscribed: false, emailBlacklisted: true },
  ])
  t.strictSame(outcomes(reply), ['bad_request', 'id', 'bad_request', 'id', 'bad_request', 'id'])
  const message = reply.body.data[2].error.message
  t.match(message, /^contacts\[2\]\.unsubscribed must match the contact \(subscribed\).*\/unsubscribe or/)
  t.match(await show('left@example.org'), { status: 'unsubscribed', properties: { a: 'kept' } })
  t.equal((await show('comes@example.org')).status, 'subscribed')
})
