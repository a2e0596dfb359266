/** Broadcasts over the API: drafts, what a start needs, states, and what a worker and recipients make of them. */

import { sql } from 'slonik'
import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { resumeTeam, suspendTeam } from '../../db/accounts/teams/suspend.ts'
import { walk } from '../../db/messages/broadcasts/walk.ts'
import { adminCli } from '../support/admin.ts'
import { beginBroadcasting, broadcastingOf } from '../support/broadcasting.ts'
import { verifyDkim } from '../support/dkim.ts'
import { publicKeyOf } from '../support/domain.ts'
import { deleteEmailRows } from '../support/email-rows.ts'
import { makeKey, makeTeam } from '../support/service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import { startWorker, until } from '../support/worker.ts'

const UNKNOWN = uuidv7()

t.test('a draft shows what it was given, is replayed by its key, changed and deleted', async (t) => {
  const { service, team, draft, get } = await beginBroadcasting(t)
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
    reply_to: '',
    exclude_topic_ids: [],
    headers: null,
    figures: {
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

t.test('what a draft says is refused as a send is, and names the field', async (t) => {
  const { service, team, draft } = await beginBroadcasting(t)
  const stranger = await broadcastingOf(service, await makeTeam(service))
  const refused = async (changes: Record<string, unknown>) => {
    const { status, body } = await service.call('POST', '/v1/broadcasts', {
      key: team.key,
      body: draft(changes),
    })
    return `${status} ${body.error?.code}: ${body.error?.message}`
  }
  for (const [changes, expected] of [
    [{ name: null }, /^400 bad_request: name is required/],
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
    [{ subject: 'Dear {{#name}}' }, /^400 bad_request: subject/],
    [{ subject: 'two\nlines' }, /^400 bad_request: subject/],
    [{ where: [{ property: 'a', op: 'like', value: 'b' }] }, /^400 bad_request: where\[0\]\.op/],
    [{ where: [{ property: 'a', op: 'in', value: 'b' }] }, /^400 bad_request: where\[0\]\.value/],
    [{ rate_per_minute: 0 }, /^400 bad_request: rate_per_minute/],
    [{ send_at: 'tomorrow' }, /^400 bad_request: send_at/],
    [
      { send_at: new Date(Date.now() + 91 * 86_400_000).toISOString() },
      /^400 bad_request: send_at .* 90 days/,
    ],
  ] as const)
    t.match(await refused(changes), expected, JSON.stringify(changes))
})

t.test('each call has its scope, takes keys only, and keeps to the domain of a key', async (t) => {
  const { service, team, draft, create } = await beginBroadcasting(t)
  const id = await create()
  const calls = [
    ['broadcasts:write', 'POST', '/v1/broadcasts', draft()],
    ['broadcasts:read', 'GET', '/v1/broadcasts', undefined],
    ['broadcasts:read', 'GET', `/v1/broadcasts/${id}`, undefined],
    ['broadcasts:write', 'PATCH', `/v1/broadcasts/${id}`, { name: 'x' }],
    ['broadcasts:send', 'POST', `/v1/broadcasts/${id}/test`, { to: ['a@example.org'] }],
    ['broadcasts:send', 'POST', `/v1/broadcasts/${id}/send`, undefined],
    ['broadcasts:send', 'POST', `/v1/broadcasts/${id}/pause`, undefined],
    ['broadcasts:send', 'POST', `/v1/broadcasts/${id}/resume`, undefined],
    ['broadcasts:send', 'POST', `/v1/broadcasts/${id}/cancel`, undefined],
    ['broadcasts:write', 'DELETE', `/v1/broadcasts/${id}`, undefined],
  ] as const
  const all = ['broadcasts:read', 'broadcasts:write', 'broadcasts:send', 'emails:send', 'contacts:write']
  for (const [scope, method, path, body] of calls) {
    const key = await makeKey(service, team.id, { scopes: all.filter((each) => each !== scope) })
    const reply = await service.call(method, path, { key, body })
    t.match(reply, { status: 403, body: { error: { code: 'insufficient_scope' } } }, `${method} ${path}`)
  }
  const bound = await makeKey(service, team.id, { domain: 'other.example' })
  for (const [scope, method, path, body] of calls.filter(([scope]) => scope !== 'broadcasts:read'))
    t.match(
      await service.call(method, path, { key: bound, body }),
      { status: 403, body: { error: { code: 'domain_not_allowed' } } },
      `${scope} ${path}`,
    )
})

t.test('a start that is refused names everything that is missing, in one 409', async (t) => {
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
  t.match((await post(id, 'send')).body.error.message, /PUBLIC_URL.*unsubscribe_url.*quota.*2 emails.*1 of 1/)
  t.match(await get(id), { body: { state: 'draft', audience: null } })
  t.equal((await service.call('POST', `/v1/broadcasts/${UNKNOWN}/send`, { key: team.key })).status, 404)
})

t.test('of two changes of state at once one wins, and each state allows what it should', async (t) => {
  const { create, post, contacts, get } = await beginBroadcasting(t)
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
    const { status, body } = await post(id, verb)
    t.match(
      { status, body },
      { status: 409, body: { error: { code: 'invalid_state', message: /cancelled/ } } },
      verb,
    )
  }
})

t.test('everybody who fits gets one email, others none; figures, headers and links are right', async (t) => {
  const { service, team, topic_id, create, post, contacts, get } = await beginBroadcasting(t)
  const { call, database } = service
  const { key } = team
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const other = (await broadcastingOf(service, team)).topic_id
  await contacts(['ana', 'ben', 'off', 'out', 'bad', 'young'], undefined)
  await contacts(['blank'], { country: 'FR' })
  await call('POST', '/v1/contacts/off@example.org/unsubscribe', { key })
  await call('PATCH', '/v1/contacts/out@example.org', { key, body: { topic_ids: [topic_id, other] } })
  await database.query(sql.unsafe`
    update contacts set suppression = 'bounced', status = 'bounced' where email = 'bad@example.org'`)
  await call('PATCH', '/v1/contacts/young@example.org', {
    key,
    body: { properties: { name: 'y', age: '9' } },
  })
  const where = [{ property: 'age', op: 'missing' }]
  const id = await create({ where, exclude_topic_ids: [other] })
  t.match(await post(id, 'send'), { status: 202, body: { state: 'sending', audience: 3 } })
  await until('it is sent', async () => (await get(id)).body.state === 'sent')
  t.strictSame(
    sink
      .messages()
      .flatMap(({ rcpt_to }) => rcpt_to)
      .toSorted(),
    ['ana@example.org', 'ben@example.org'],
  )
  t.match((await get(id)).body, { figures: { made: 2, skipped: 1, queued: 0, sent: 2 } })
  const received = sink.messages().find(({ rcpt_to }) => rcpt_to.includes('ana@example.org'))
  const raw = received?.raw.toString() ?? ''
  t.match(raw, /^Subject: News for ana\r$/m)
  t.match(raw, new RegExp(`^List-Id: <${topic_id}\\.example\\.com>\\r$`, 'm'))
  t.match(raw, /^Precedence: bulk\r$/m)
  t.match(raw, /^Feedback-ID: /m)
  t.match(raw, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m)
  const verdict = verifyDkim(received?.raw ?? Buffer.alloc(0), await publicKeyOf(service, team.id))
  t.match(verdict, { body_matches: true, signature_matches: true, domain: 'example.com' })
  for (const name of ['list-unsubscribe', 'list-unsubscribe-post', 'list-id', 'from', 'to', 'subject']) {
    t.ok(verdict.signed.includes(name), `${name} is signed`)
    t.equal(raw.match(new RegExp(`^${name}:`, 'gim'))?.length, 1, `one ${name}`)
  }
  const unfolded = raw.replaceAll(/\r\n[ \t]+/g, '')
  const token = /^List-Unsubscribe: ?<https:\/\/mail\.example\.com\/u\/([\w-]+)>/m.exec(unfolded)?.[1] ?? ''
  const topicsOf = async () => (await call('GET', '/v1/contacts/ana@example.org', { key })).body
  const page = await call('GET', `/u/${token}`)
  t.equal(page.body.match(/<button/g)?.length, 2)
  t.match(await topicsOf(), { subscribed_topic_ids: [topic_id] })
  // The link outlives the email.
  await deleteEmailRows(service, sql.fragment`broadcast_id = ${id}`)
  t.equal(
    (await call('POST', `/u/${token}`, { raw: 'List-Unsubscribe=One-Click', headers: FORM })).status,
    200,
  )
  t.match(await topicsOf(), { status: 'subscribed', subscribed_topic_ids: [] })
  t.match((await call('GET', `/u/${token}?preferences=1`)).body, /type="checkbox"/)
  await call('POST', `/u/${token}`, { raw: `scope=topics&topic=${other}&topic=${UNKNOWN}`, headers: FORM })
  t.match(await topicsOf(), { status: 'subscribed', subscribed_topic_ids: [other] })
  await call('POST', `/u/${token}`, { raw: 'scope=everything', headers: FORM })
  t.match(await topicsOf(), { status: 'unsubscribed' })
  t.equal((await call('POST', `/u/${token.slice(0, -2)}AA`)).status, 404, 'a forged one')
  await call('DELETE', '/v1/contacts/ana@example.org', { key })
  for (const method of ['GET', 'POST']) t.equal((await call(method, `/u/${token}`)).status, 200)
})

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

t.test('a quota that is used up on the way pauses, and a resume goes on with the next contact', async (t) => {
  const { service, team, create, post, contacts, get } = await beginBroadcasting(t, { email_limit: 3 })
  await contacts(['ana', 'ben', 'cid'])
  const id = await create()
  t.equal((await post(id, 'send')).status, 202)
  await service.database.query(
    sql.unsafe`update subscriptions set email_limit = 2 where team_id = ${team.id}`,
  )
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it is paused', async () => (await get(id)).body.state === 'paused')
  t.match((await get(id)).body, { state_reason: 'quota_exceeded', figures: { made: 2, skipped: 0 } })
  await service.database.query(
    sql.unsafe`update subscriptions set email_limit = 9 where team_id = ${team.id}`,
  )
  t.equal((await post(id, 'resume')).status, 200)
  await until('it is sent', async () => (await get(id)).body.state === 'sent')
  t.match((await get(id)).body, { figures: { made: 3, sent: 3 } })
  t.equal(sink.messages().length, 3)
})

t.test('a resume that meets an email which is just being put back still brings it forward', async (t) => {
  const { service, create, post, contacts, get } = await beginBroadcasting(t)
  const { database } = service
  await contacts(['ana'])
  const id = await create()
  await post(id, 'send')
  const sink = await startSmtpSink(t)
  const pauses = (job: string) => Promise.resolve(job === 'deliver-broadcast')
  const walker = await startWorker(t, service, { smtp_url: sink.url, pauses })
  await until('its email waits', async () => (await get(id)).body.figures.queued === 1)
  await walker.stop()
  await post(id, 'pause')
  const [changed, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const resume = database.transaction(async (tx) => {
    // What a resume does, as yet uncommitted: the worker finds it paused.
    await tx.query(sql.unsafe`update broadcasts set state = 'sending' where id = ${id}`)
    changed.resolve()
    await commit.promise
  })
  await changed.promise
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the worker waits for the resume before it puts the email back', () =>
    database.exists(sql.unsafe`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and query ~ 'broadcasts b[^$]*for share'`),
  )
  commit.resolve()
  await resume
  await until('it is sent', async () => (await get(id)).body.state === 'sent')
  t.equal(sink.messages().length, 1)
})

t.test(
  'a schedule begins by itself; one that is an hour late is paused, and begins when it is resumed',
  async (t) => {
    const { service, create, post, contacts, get } = await beginBroadcasting(t)
    await contacts(['ana'])
    const [soon, late] = [await create(), await create()]
    const at = (ms: number) => ({ send_at: new Date(Date.now() + ms).toISOString() })
    t.match(await post(soon, 'send', at(1_000)), {
      status: 202,
      body: { state: 'scheduled', audience: null },
    })
    t.match(await post(late, 'send', at(-7_200_000)), { status: 202, body: { state: 'scheduled' } })
    await startWorker(t, service, { smtp_url: (await startSmtpSink(t)).url })
    await until('one is sent', async () => (await get(soon)).body.state === 'sent')
    await until('the other is paused', async () => (await get(late)).body.state === 'paused')
    t.match((await get(late)).body, { state_reason: 'overdue', audience: null })
    t.match(await post(late, 'resume'), { status: 200, body: { state: 'sending', audience: 1 } })
    await until('the other is sent', async () => (await get(late)).body.state === 'sent')
  },
)

t.test('a broadcast of a restored database is paused, whatever it was doing', async (t) => {
  const { service, create, post, contacts, get } = await beginBroadcasting(t)
  await contacts(['ana'])
  const id = await create()
  await post(id, 'send')
  await service.database.query(sql.unsafe`update broadcasts set database = 'another'`)
  await startWorker(t, service)
  await until('it is paused', async () => (await get(id)).body.state === 'paused')
  t.match((await get(id)).body, { state_reason: 'restored', figures: { made: 0 } })
})

t.test('a test goes to a few addresses as a contact would get it, and counts in no figure', async (t) => {
  const { service, team, create, post, contacts, get } = await beginBroadcasting(t)
  await contacts(['ana'])
  const id = await create()
  const sent = await post(id, 'test', {
    to: ['Me <me@example.org>', 'you@example.org'],
    contact: 'ANA@example.org',
  })
  t.match(sent, { status: 200, body: { data: [{ index: 0 }, { index: 1 }] } })
  const rows = await service.database.any(sql.unsafe`
    select subject, to_emails, broadcast_id from emails where team_id = ${team.id} order by id`)
  t.match(rows, [
    { subject: 'News for ana', to_emails: ['Me <me@example.org>'], broadcast_id: null },
    { subject: 'News for ana', to_emails: ['you@example.org'], broadcast_id: null },
  ])
  t.match((await get(id)).body, { state: 'draft', figures: { made: 0 } })
  t.equal((await post(id, 'test', { to: [] })).status, 400)
  t.match(await post(id, 'test', { to: ['a@example.org'], contact: 'no@example.org' }), {
    status: 404,
    body: { error: { code: 'contact_not_found' } },
  })
})

t.test(
  'two that walk at once make one email for each contact, and what was made and skipped is who fitted',
  async (t) => {
    const { service, team, create, post, contacts } = await beginBroadcasting(t)
    await contacts(Array.from({ length: 12 }, (_, index) => `c${index}`))
    await contacts(['blank'], { country: 'FR' })
    const id = await create()
    t.match(await post(id, 'send'), { body: { audience: 13 } })
    const { deps, database } = service
    const step = () =>
      database.transaction((tx) =>
        walk({ ...deps, tx, ahead: 5, brakes: { bounce_percent: 5, complaint_percent: 0.1 } }, team.id, id),
      )
    for (let round = 0; round < 4; round++) {
      await Promise.all([step(), step()])
      await database.query(sql.unsafe`update email_states set status = 'sent' where broadcast_id = ${id}`)
    }
    const counted = await database.one(sql.unsafe`
    select count(*)::integer as made, count(distinct contact_id)::integer as people from emails where broadcast_id = ${id}`)
    t.match(counted, { made: 12, people: 12 })
    t.match((await service.call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body, {
      figures: { made: 12, skipped: 1 },
    })
  },
)

t.test('the broadcast of a suspended team is walked no further until the team goes on', async (t) => {
  const { service, team, create, post, contacts, get } = await beginBroadcasting(t)
  const { deps, database } = service
  await contacts(['ana'])
  const id = await create()
  await post(id, 'send')
  const step = () =>
    database.transaction((tx) =>
      walk({ ...deps, tx, ahead: 5, brakes: { bounce_percent: 5, complaint_percent: 0.1 } }, team.id, id),
    )
  const at = { tx: database, now: new Date(), actor: 'cli' }
  await suspendTeam(at, team.id)
  t.match(await step(), { kind: 'early' })
  await resumeTeam(at, team.id)
  t.match(await step(), { kind: 'moved' })
  t.match((await get(id)).body, { state: 'sending', figures: { made: 1 } })
})

t.test('what becomes of a broadcast is announced to webhooks, once each', async (t) => {
  const { service, team, create, post, contacts } = await beginBroadcasting(t)
  await adminCli({ DATABASE_URL: service.url }).json([
    'webhook',
    'add',
    team.id,
    '--url',
    'https://hooks.example.com/x',
  ])
  await contacts(['ana'])
  const id = await create()
  for (const verb of ['send', 'pause', 'resume', 'cancel']) await post(id, verb)
  const announced = await service.database.any(sql.unsafe`
    select type, body::json -> 'data' ->> 'broadcast_id' as id from webhook_messages
    where type like 'broadcast.%' order by created_at, id`)
  t.match(announced, [
    { type: 'broadcast.started', id },
    { type: 'broadcast.paused', id },
    { type: 'broadcast.cancelled', id },
  ])
})
