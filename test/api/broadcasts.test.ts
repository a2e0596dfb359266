/** Broadcasts with a worker and recipients: audience, quotas, schedules, tests, and webhooks. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { lockAccount } from '../../db/accounts/teams/limits.ts'
import { resumeTeam, suspendTeam } from '../../db/accounts/teams/suspend.ts'
import { removeTemplate } from '../../db/content/templates/remove.ts'
import { updateTemplate } from '../../db/content/templates/save.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { expandStep } from '../../db/messages/broadcasts/expand.ts'
import { insertSkips } from '../../db/messages/broadcasts/skips.sql.ts'
import { showEmail } from '../../db/messages/emails/show.ts'
import { adminCli } from '../support/admin.ts'
import { broadcastingOf, PUBLIC_URL } from '../support/broadcasting.ts'
import { verifyDkim } from '../support/dkim.ts'
import { publicKeyOf } from '../support/domain.ts'
import { deleteEmailRows } from '../support/email-rows.ts'
import { EMPTY } from '../support/empty.ts'
import { hold } from '../support/held.ts'
import { lockWaits } from '../support/rows.ts'
import { makeTeam, type Service, type TeamLimits } from '../support/service.ts'
import { shareService } from '../support/shared-service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t from '../support/tap.ts'
import { startWorker, until } from '../support/worker.ts'

const renewed = await shareService(t, { publicUrl: PUBLIC_URL })

async function begin(limits: TeamLimits = {}) {
  const service = await renewed()
  return broadcastingOf(service, await makeTeam(service, limits))
}

t.test('each matching contact gets one email with correct headers', async (t) => {
  const { service, team, topic_id, create, post, contacts, get } = await begin()
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
  const reached = sink.recipients().flat()
  t.strictSame(reached.toSorted(), ['ana@example.org', 'ben@example.org'])
  t.match((await get(id)).body, { stats: { made: 2, skipped: 1, queued: 0, sent: 2 } })
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
  // The link still works after the email was deleted.
  await deleteEmailRows(service, sql.fragment`broadcast_id = ${id}`)
  t.equal(
    (await call('POST', `/u/${token}`, { raw: 'List-Unsubscribe=One-Click', headers: FORM })).status,
    200,
  )
  t.match(await topicsOf(), { status: 'subscribed', subscribed_topic_ids: EMPTY })
  t.equal((await call('GET', `/u/${token}?preferences=1`)).body.match(/type="checkbox"/g)?.length, 1)
  const chosen = `scope=topics&topic=${topic_id}&topic=${other}&topic=${uuidv7()}`
  await call('POST', `/u/${token}`, { raw: chosen, headers: FORM })
  t.match(await topicsOf(), { status: 'subscribed', subscribed_topic_ids: [topic_id] })
  await call('POST', `/u/${token}`, { raw: 'scope=everything', headers: FORM })
  t.match(await topicsOf(), { status: 'unsubscribed' })
  t.equal((await call('POST', `/u/${token.slice(0, -2)}AA`)).status, 404, 'a forged one')
  await call('DELETE', '/v1/contacts/ana@example.org', { key })
  for (const method of ['GET', 'POST']) t.equal((await call(method, `/u/${token}`)).status, 200)
})

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

t.test('contacts that left the audience after the start no longer count at the end', async (t) => {
  const { service, team, create, post, contacts, get } = await begin()
  const { call } = service
  const { key } = team
  await contacts(['ana', 'off', 'left', 'gone'])
  await contacts(['blank'], { country: 'FR' })
  const id = await create()
  t.match(await post(id, 'send'), { status: 202, body: { audience: 5 } })
  await call('POST', '/v1/contacts/off@example.org/unsubscribe', { key })
  await call('PATCH', '/v1/contacts/left@example.org', { key, body: { topic_ids: [] } })
  await call('DELETE', '/v1/contacts/gone@example.org', { key })
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it is sent', async () => (await get(id)).body.state === 'sent')
  t.match((await get(id)).body, { audience: 2, stats: { made: 1, skipped: 1, sent: 1 } })
})

t.test('an exhausted quota pauses, and a resume continues', async (t) => {
  const { service, team, create, post, contacts, get } = await begin({ email_limit: 3 })
  const { database } = service
  await contacts(['ana', 'ben', 'cid'])
  const id = await create()
  t.equal((await post(id, 'send')).status, 202)
  await database.query(sql.unsafe`update subscriptions set email_limit = 2 where team_id = ${team.id}`)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it is paused', async () => (await get(id)).body.state === 'paused')
  t.match((await get(id)).body, { state_reason: 'quota_exceeded', stats: { made: 2, skipped: 0 } })
  await database.query(sql.unsafe`update subscriptions set email_limit = 9 where team_id = ${team.id}`)
  t.equal((await post(id, 'resume')).status, 200)
  await until('it is sent', async () => (await get(id)).body.state === 'sent')
  t.match((await get(id)).body, { stats: { made: 3, sent: 3 } })
  t.equal(sink.messages().length, 3)
})

t.test('a resume also releases an email that is being deferred', async (t) => {
  const { service, create, post, contacts, get } = await begin()
  const { database } = service
  await contacts(['ana'])
  const id = await create()
  await post(id, 'send')
  const sink = await startSmtpSink(t)
  const pauses = (job: string) => Promise.resolve(job === 'deliver-broadcast')
  const walker = await startWorker(t, service, { smtp_url: sink.url, pauses })
  await until('its email waits', async () => (await get(id)).body.stats.queued === 1)
  await walker.stop()
  await post(id, 'pause')
  const commit = await hold(t, database, async (tx) => {
    // Like a resume that isn't committed yet. The worker still sees the broadcast as paused.
    await tx.query(sql.unsafe`update broadcasts set state = 'sending' where id = ${id}`)
  })
  await startWorker(t, service, { smtp_url: sink.url })
  await until(
    'the worker waits for the resume before it puts the email back',
    async () => (await lockWaits(service, 'broadcasts b[^$]*for share')) > 0,
  )
  await commit()
  await until('it is sent', async () => (await get(id)).body.state === 'sent')
  t.equal(sink.messages().length, 1)
})

t.test('a start waiting for the account’s lock causes no deadlock', async (t) => {
  const { service, team, create, post, contacts } = await begin()
  const { database } = service
  const [contact_id = ''] = await contacts(['ana', 'ben'])
  const id = await create()
  const commit = await hold(t, database, (tx) => lockAccount(tx, team.id))
  const begun = post(id, 'send')
  await until(
    'the start, with the broadcast locked, waits for the account',
    async () => (await lockWaits(service, 'from allowances')) > 0,
  )
  await commit(async (tx) => {
    // Waiting for the start would be a deadlock.
    await tx.query(sql.unsafe`set local lock_timeout = 100`)
    // Like code that withdraws or deletes an email of a broadcast.
    const skip = { broadcast_id: id, contact_id, email: 'ana@example.org', detail: '' }
    await insertSkips(tx, [{ team_id: team.id, ...skip, reason: 'deleted' }], new Date())
  })
  t.match(await begun, { status: 202, body: { state: 'sending', audience: 2 } })
})

t.test('a scheduled broadcast starts on time, or pauses if overdue', async (t) => {
  const { service, create, post, contacts, get } = await begin()
  await contacts(['ana'])
  const [soon, late] = [await create(), await create()]
  const at = (ms: number) => ({ send_at: new Date(Date.now() + ms).toISOString() })
  t.match(await post(soon, 'send', at(1_000)), { status: 202, body: { state: 'scheduled', audience: null } })
  t.match(await post(late, 'send', at(60_000)), { status: 202, body: { state: 'scheduled' } })
  await service.database.query(sql.unsafe`
    update broadcasts set send_at = now() - interval '2 hours' where id = ${late}`)
  await startWorker(t, service, { smtp_url: (await startSmtpSink(t)).url })
  await until('one is sent', async () => (await get(soon)).body.state === 'sent')
  await until('the other is paused', async () => (await get(late)).body.state === 'paused')
  t.match((await get(late)).body, { state_reason: 'overdue', audience: null })
  t.match(await post(late, 'resume'), { status: 200, body: { state: 'sending', audience: 1 } })
  await until('the other is sent', async () => (await get(late)).body.state === 'sent')
})

t.test('a test is rendered for its contact and isn’t counted', async (t) => {
  const { service, team, create, post, contacts, get } = await begin()
  await contacts(['ana'])
  const id = await create()
  const sent = await post(id, 'test', {
    to: ['Me, too <me@example.org>', '<you@example.org>'],
    contact: 'ANA@example.org',
  })
  t.match(sent, { status: 200, body: { data: [{ index: 0 }, { index: 1 }] } })
  const rows = await service.database.any(sql.unsafe`
    select subject, to_emails, broadcast_id from emails where team_id = ${team.id} order by id`)
  t.match(rows, [
    { subject: 'News for ana', to_emails: ['"Me, too" <me@example.org>'], broadcast_id: null },
    { subject: 'News for ana', to_emails: ['you@example.org'], broadcast_id: null },
  ])
  t.match((await get(id)).body, { state: 'draft', stats: { made: 0 } })
  t.equal((await post(id, 'test', { to: [] })).status, 400)
  t.match(await post(id, 'test', { to: ['a@example.org'], contact: 'no@example.org' }), {
    status: 404,
    body: { error: { code: 'contact_not_found' } },
  })
})

t.test('tests of a scheduled broadcast use its fixed template version', async (t) => {
  const { service, team, template_id, create, post, contacts } = await begin()
  const { database } = service
  const by = { now: new Date(), actor: 'test' }
  await contacts(['ana'])
  const id = await create({ send_at: new Date(Date.now() + 86_400_000).toISOString() })
  t.match(await post(id, 'send'), { status: 202, body: { state: 'scheduled' } })
  const tested = async () => {
    const { status, body } = await post(id, 'test', { to: ['me@example.org'], contact: 'ana@example.org' })
    t.equal(status, 200, JSON.stringify(body))
    const versions = createVersions()
    const deps = {
      tx: database,
      versions,
      secrets: service.deps.secrets,
      now: new Date(),
      publicUrl: undefined,
    }
    return (await showEmail(deps, team.id, body.data?.[0]?.id)).html
  }
  const html = '<p>Another text for {{nobody}}</p>'
  await database.transaction((tx) => updateTemplate({ tx, ...by }, team.id, template_id, { html }))
  t.match(await tested(), /Dear ana/)
  await database.transaction((tx) => removeTemplate({ tx, ...by }, team.id, template_id))
  t.match(await tested(), /Dear ana/)
})

t.test('ten custom headers are sent in addition to our own', async (t) => {
  const { service, create, post, contacts, get } = await begin()
  await contacts(['ana'])
  const own = Array.from({ length: 10 }, (_, index) => [`X-Own-${index}`, `value ${index}`] as const)
  const id = await create({ headers: Object.fromEntries(own) })
  t.equal((await post(id, 'test', { to: ['me@example.org'] })).status, 200)
  t.equal((await post(id, 'send')).status, 202)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('both are sent', async () => sink.messages().length === 2)
  await until('it is over', async () => (await get(id)).body.state === 'sent')
  for (const { raw, rcpt_to } of sink.messages()) {
    const text = raw.toString()
    for (const line of [...own.map(([name, value]) => `${name}: ${value}`), 'Precedence: bulk'])
      t.ok(text.includes(`\r\n${line}\r\n`), `${line} to ${rcpt_to}`)
    t.match(text, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m)
  }
})

/** Scans a part of a broadcast's audience, as a worker does. */
const expand = ({ database, deps }: Service, team: string, id: string) => {
  const rules = { ahead: 5, brakes: { bounce_percent: 5, complaint_percent: 0.1 } }
  return database.transaction((tx) => expandStep({ ...deps, ...rules, tx }, team, id))
}

t.test('concurrent scans create one email per contact', async (t) => {
  const { service, team, create, post, contacts } = await begin()
  await contacts(Array.from({ length: 12 }, (_, index) => `c${index}`))
  await contacts(['blank'], { country: 'FR' })
  const id = await create()
  t.match(await post(id, 'send'), { body: { audience: 13 } })
  const { database } = service
  const step = () => expand(service, team.id, id)
  for (let round = 0; round < 4; round++) {
    await Promise.all([step(), step()])
    await database.query(sql.unsafe`update email_states set status = 'sent' where broadcast_id = ${id}`)
  }
  const counted = await database.one(sql.unsafe`
    select count(*)::integer as made, count(distinct contact_id)::integer as people from emails where broadcast_id = ${id}`)
  t.match(counted, { made: 12, people: 12 })
  t.match((await service.call('GET', `/v1/broadcasts/${id}`, { key: team.key })).body, {
    stats: { made: 12, skipped: 1 },
  })
})

t.test('a suspended team’s broadcast continues after the team is resumed', async (t) => {
  const { service, team, create, post, contacts, get } = await begin()
  const { database } = service
  await contacts(['ana'])
  const id = await create()
  await post(id, 'send')
  const step = () => expand(service, team.id, id)
  const at = { tx: database, now: new Date(), actor: 'cli' }
  await suspendTeam(at, team.id)
  t.match(await step(), { kind: 'early' })
  await resumeTeam(at, team.id)
  t.match(await step(), { kind: 'moved' })
  t.match((await get(id)).body, { state: 'sending', stats: { made: 1 } })
})

t.test('starting, pausing and cancelling a broadcast cause one webhook each', async (t) => {
  const { service, team, create, post, contacts } = await begin()
  const url = 'https://hooks.example.com/x'
  await adminCli({ DATABASE_URL: service.url }).json(['webhook', 'add', team.id, '--url', url])
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
