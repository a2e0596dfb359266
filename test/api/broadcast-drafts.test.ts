/** Broadcasts over the API before they start: drafts, errors, scopes, and changes of state. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { adminCli } from '../support/admin.ts'
import { beginBroadcasting, broadcastingOf, PUBLIC_URL } from '../support/broadcasting.ts'
import { EMPTY } from '../support/empty.ts'
import { makeKey, makeTeam, startService } from '../support/service.ts'
import t from '../support/tap.ts'

const service = await startService(t, { publicUrl: PUBLIC_URL })
const begin = async () => broadcastingOf(service, await makeTeam(service))
const UNKNOWN = uuidv7()
/** This many minutes ago. Negative numbers are in the future. */
const ago = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString()

t.test('creates, replays, changes and deletes a draft', async (t) => {
  const { team, draft, get } = await begin()
  const { call } = service
  const { key } = team
  const where = [{ property: 'country', op: 'in', value: ['FR', 'BE'] }]
  const body = draft({
    where,
    variables: { name: 'you' },
    rate_per_minute: 60,
    idempotency_key: 'spring',
    tags: ['a'],
  })
  const created = await call('POST', '/v1/broadcasts', { key, body })
  t.equal(created.status, 201)
  t.match(created.body, {
    ...body,
    state: 'draft',
    state_reason: null,
    audience: null,
    reply_to: /^$/,
    exclude_topic_ids: EMPTY,
    headers: null,
    stats: {
      made: 0,
      skipped: 0,
      queued: 0,
      sent: 0,
      delivered: 0,
      opened: 0,
      clicked: 0,
      bounced: 0,
      complained: 0,
    },
  })
  const { id } = created.body
  const again = await call('POST', '/v1/broadcasts', {
    key,
    body: draft({ idempotency_key: 'spring', name: 'Other' }),
  })
  t.match(again, { status: 200, body: { id, name: 'Spring news' } })
  const changed = await call('PATCH', `/v1/broadcasts/${id}`, { key, body: { name: 'Summer news' } })
  t.match(changed, { status: 200, body: { name: 'Summer news', where } })
  t.match(await get(id), { status: 200, body: changed.body })
  t.match((await call('GET', '/v1/broadcasts?limit=1', { key })).body, { data: [{ id }] })
  t.equal((await call('DELETE', `/v1/broadcasts/${id}`, { key })).status, 204)
  t.match(await get(id), { status: 404, body: { error: { code: 'not_found' } } })
})

t.test('a PATCH with unchanged values writes nothing', async (t) => {
  const { team, draft, get } = await begin()
  const { call, database } = service
  const { key } = team
  const send_at = ago(-60)
  const said = draft({
    where: [{ property: 'country', op: 'in', value: ['FR', 'BE'] }],
    variables: { name: 'you', city: 'Graz' },
    headers: { 'X-One': '1', 'X-Two': '2' },
    rate_per_minute: 60,
    tags: ['a', 'b'],
    send_at,
  })
  const { body: created } = await call('POST', '/v1/broadcasts', { key, body: said })
  const version = () => database.oneFirst(sql.unsafe`select xmin from broadcasts where id = ${created.id}`)
  const before = await version()
  const patch = (body: object) => call('PATCH', `/v1/broadcasts/${created.id}`, { key, body })
  const same = send_at.replace('Z', '+00:00')
  for (const body of [said, { ...said, send_at: same }, { name: said.name }])
    t.match(await patch(body), { status: 200, body: created })
  t.equal(await version(), before)
  const changed = await patch({ variables: { name: 'you' } })
  t.match((await get(created.id)).body, {
    variables: changed.body.variables,
    updated_at: changed.body.updated_at,
  })
  t.not(await version(), before)
})

t.test('invalid fields of a draft are rejected by name', async (t) => {
  const { team, draft } = await begin()
  const stranger = await broadcastingOf(service, await makeTeam(service))
  const refused = async (changes: Record<string, unknown>) => {
    const { status, body } = await service.call('POST', '/v1/broadcasts', {
      key: team.key,
      body: draft(changes),
    })
    return `${status} ${body.error?.code}: ${body.error?.message}`
  }
  for (const [changes, expected] of [
    [{ topic_ids: [] }, /^400 bad_request: topic_ids must have at least 1 topic/],
    [
      { topic_ids: Array.from({ length: 21 }, () => UNKNOWN) },
      /^400 bad_request: topic_ids must have at most 20/,
    ],
    [{ topic_ids: [UNKNOWN] }, /^404 not_found: topic_ids\[0\]/],
    [{ topic_ids: [stranger.topic_id] }, /^404 not_found: topic_ids\[0\]/],
    [{ exclude_topic_ids: [UNKNOWN] }, /^404 not_found: exclude_topic_ids\[0\]/],
    [{ template_id: stranger.template_id }, /^404 not_found: template_id/],
    [{ from: 'nobody' }, /^400 invalid_from/],
    [
      { headers: { 'list-unsubscribe': '<https://example.org>' } },
      /^400 invalid_headers: headers\.list-unsubscribe/,
    ],
    [{ headers: { 'X-Relay-Pool': '1' } }, /^400 invalid_headers/],
    [{ reply_to: 'nobody' }, /^400 invalid_reply_to/],
    [{ headers: { 'X-Relay-Pool': '1' }, reply_to: 'nobody' }, /^400 invalid_headers/],
    [{ from: 'nobody', headers: { 'X-Relay-Pool': '1' } }, /^400 invalid_from/],
    [{ subject: 'Dear {{#name}}' }, /^400 bad_request: subject/],
    [{ subject: 'two\nlines' }, /^400 bad_request: subject/],
    [{ where: [{ property: 'a', op: 'like', value: 'b' }] }, /^400 bad_request: where\[0\]\.op/],
    [{ where: [{ property: 'a', op: 'in', value: 'b' }] }, /^400 bad_request: where\[0\]\.value/],
    [
      { where: [{ property: 'a', op: 'eq', value: 'b'.repeat(2_049) }] },
      /^400 bad_request: where\[0\]\.value must be a string of at most 2048 characters/,
    ],
    [
      { where: [{ property: 'a', op: 'in', value: ['b'.repeat(2_049)] }] },
      /^400 bad_request: where\[0\]\.value must be an array of 1 to 100 strings of at most 2048 characters/,
    ],
    [{ variables: { a: 'é'.repeat(131_072) } }, /^400 bad_request: variables must be at most 262144 bytes/],
    [
      { where: [{ property: 'a', op: 'in', value: Array(100).fill('😀'.repeat(2_048)) }] },
      /^400 bad_request: where must be at most 262144 bytes/,
    ],
    [{ rate_per_minute: 0 }, /^400 bad_request: rate_per_minute/],
    [
      { send_at: new Date(Date.now() + 91 * 86_400_000).toISOString() },
      /^400 bad_request: send_at .* 90 days/,
    ],
    [{ send_at: ago(6) }, /^400 bad_request: send_at must not be more than 5 minutes in the past/],
    [{ scheduled_at: ago(-6) }, /^400 bad_request: scheduled_at is called send_at here\. Use that name/],
    [{ attachments: [{ filename: 'a', content: 'QQ==' }] }, /^400 bad_request: attachments is not supported/],
  ] as const)
    t.match(await refused(changes), expected, JSON.stringify(changes).slice(0, 100))
})

t.test('a past send_at is rejected everywhere, except in a replay', async (t) => {
  const { team, draft, create, post } = await begin()
  const { call, database } = service
  const { key } = team
  const past = { status: 400, body: { error: { code: 'bad_request', message: /send_at .* in the past/ } } }
  const body = draft({ send_at: ago(4), idempotency_key: 'spring' })
  const { body: made } = await call('POST', '/v1/broadcasts', { key, body })
  t.match(made, { state: 'draft' }, 'a clock that is a little late')
  await database.query(sql.unsafe`
    update broadcasts set send_at = send_at - interval '1 hour' where id = ${made.id}`)
  const late = { ...body, send_at: ago(64) }
  t.match(await call('POST', '/v1/broadcasts', { key, body: late }), { status: 200, body: { id: made.id } })
  t.match(await post(made.id, 'send'), past, 'its own')
  const id = await create()
  t.match(await call('PATCH', `/v1/broadcasts/${id}`, { key, body: { send_at: ago(6) } }), past)
  t.match(await post(id, 'send', { send_at: ago(6) }), past)
  await database.query(sql.unsafe`update broadcasts set state = 'cancelled' where id = ${made.id}`)
  t.match(await post(made.id, 'send', { send_at: ago(6) }), past, 'before its state')
  t.match(await post(made.id, 'send', { send_at: ago(-6) }), { status: 409 })
  t.match(await post(id, 'send', { scheduled_at: ago(-6) }), {
    status: 400,
    body: { error: { message: /scheduled_at is called send_at here\. Use that name/ } },
  })
  const cli = adminCli({ DATABASE_URL: service.url, PUBLIC_URL })
  t.match(await cli.fault(['broadcast', 'start', team.id, id, '--at', ago(6)]), /send_at .* in the past/)
})

t.test('send_at accepts all time zones of RFC 3339', async (t) => {
  const { team, draft, create, contacts, post } = await begin()
  const { call } = service
  const { key } = team
  await contacts(['ana'])
  const day = ago(-3 * 24 * 60).slice(0, 10)
  for (const zone of ['+23:59', '-23:59', '+16:00', '-00:00']) {
    const given = { send_at: `${day}T09:00:00.5${zone}` }
    const send_at = new Date(given.send_at).toISOString()
    const id = await create()
    t.match(await call('POST', '/v1/broadcasts', { key, body: draft(given) }), {
      status: 201,
      body: { send_at },
    })
    t.match(await call('PATCH', `/v1/broadcasts/${id}`, { key, body: given }), {
      status: 200,
      body: { send_at },
    })
    t.match(await post(id, 'send', given), { status: 202, body: { state: 'scheduled', send_at } })
  }
})

t.test('a key for another domain only reads', async (t) => {
  const { team, draft, create } = await begin()
  const id = await create()
  const calls = [
    ['POST', '', draft()],
    ['PATCH', `/${id}`, { name: 'x' }],
    ['POST', `/${id}/test`, { to: ['a@example.org'] }],
    ...['send', 'pause', 'resume', 'cancel'].map((verb) => ['POST', `/${id}/${verb}`] as const),
    ['DELETE', `/${id}`],
  ] as const
  const key = await makeKey(service, team.id, { domain: 'other.example' })
  for (const path of ['', `/${id}`])
    t.equal((await service.call('GET', `/v1/broadcasts${path}`, { key })).status, 200, path)
  for (const [method, path, body] of calls)
    t.match(
      await service.call(method, `/v1/broadcasts${path}`, { key, body }),
      { status: 403, body: { error: { code: 'domain_not_allowed' } } },
      `${method} ${path}`,
    )
})

t.test('a rejected start names everything that is missing', async (t) => {
  const { service, team, create, post, contacts, get } = await beginBroadcasting(t, {
    publicUrl: 'http://mail.example.com',
    html: '<p>{{name}}</p>',
    email_limit: 1,
  })
  const id = await create({ from: 'news@elsewhere.test' })
  const empty = await post(id, 'send')
  t.match(empty, { status: 409, body: { error: { code: 'invalid_state' } } })
  t.match(empty.body.error.message, /draft.*elsewhere\.test.*PUBLIC_URL.*unsubscribe_url.*audience/)
  await contacts(['ana', 'ben'])
  const incomplete = (await post(id, 'send')).body.error.message
  t.match(incomplete, /PUBLIC_URL.*unsubscribe_url.*Contacts in the audience: 2\..*quota: 1 of 1/)
  t.match(await get(id), { body: { state: 'draft', audience: null } })
  t.equal((await service.call('POST', `/v1/broadcasts/${UNKNOWN}/send`, { key: team.key })).status, 404)
})

t.test('one of two concurrent starts succeeds, and states restrict changes', async (t) => {
  const { create, post, contacts, get } = await begin()
  await contacts(['ana'])
  const id = await create()
  const starts = await Promise.all([post(id, 'send'), post(id, 'send')])
  t.strictSame(starts.map(({ status }) => status).toSorted(), [202, 409])
  t.match(await get(id), { body: { state: 'sending', audience: 1 } })
  t.equal((await post(id, 'resume')).status, 409)
  t.match(await post(id, 'pause'), { status: 200, body: { state: 'paused', state_reason: null } })
  t.equal((await post(id, 'pause')).status, 409)
  t.match(await post(id, 'resume'), { status: 200, body: { state: 'sending' } })
  t.match(await post(id, 'cancel'), { status: 200, body: { state: 'cancelled' } })
  for (const verb of ['send', 'pause', 'resume', 'cancel']) {
    const error = { code: 'invalid_state', message: /cancelled/ }
    t.match(await post(id, verb), { status: 409, body: { error } }, verb)
  }
})
