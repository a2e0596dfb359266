/** Quotas and rates, with a database clock that the tests set. DECISIONS: Quota, Bucket, Limits of a team. */
import { auditEntries } from '../../db/accounts/audit/audit.sql.ts'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import { runClock, stopClock } from '../support/clock.ts'
import { hold } from '../support/held.ts'
import { lockWaits, rowCounts, usedBy } from '../support/rows.ts'
import { anEmail, byCli, makeTeam, startService, type TestTeam } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, makeTemplate, sendWhatsapp } from '../support/whatsapp.ts'
import { until } from '../support/worker.ts'

let now = new Date('2027-01-15T12:00:00.000Z')
const service = await startService(t, { lockTimeout: 30_000 })
const at = async (time: string | Date): Promise<void> => {
  now = new Date(time)
  await stopClock(service.database, now)
}
const wait = (ms: number) => at(new Date(now.getTime() + ms))
await at(now)
const send = async (team: TestTeam, changes: Record<string, unknown> = {}) =>
  await service.call('POST', '/v1/emails', { key: team.key, body: anEmail(changes) })
const codes = async (calls: Promise<{ status: number; body: { error?: { code: string } } }>[]) =>
  (await Promise.all(calls)).map((reply) => reply.body.error?.code ?? reply.status)

t.test('500 concurrent sends never exceed the quota', async (t) => {
  const other = await startService(t, { url: service.url, lockTimeout: 30_000 })
  const team = await makeTeam(service, { email_limit: 100 })
  await at('2027-01-15T12:01:00.000Z')
  const calls = Array.from({ length: 500 }, async (_, index) => {
    const { call } = index % 2 ? service : other
    return call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  })
  const results = await codes(calls)
  t.equal(results.filter((result) => result === 201).length, 100)
  t.equal(results.filter((result) => result === 'quota_exceeded').length, 400)
  t.strictSame(await rowCounts(service, team.id), { emails: 100, jobs: 100 })
  t.equal((await usedBy(service, team.id)).emails, 100)
})

t.test('a full quota is quota_exceeded and uses no token', async (t) => {
  const team = await makeTeam(service, { plan: 'free', email_limit: 1, rate: 1 })
  t.equal((await send(team)).status, 201)
  for (let index = 0; index < 10; index++) t.equal((await send(team)).body.error.code, 'quota_exceeded')
  t.equal((await showTeam(service.database, team.id)).bucket.tokens, 4)
})

t.test('a committed plan change applies to waiting calls', async (t) => {
  const team = await makeTeam(service)
  const { id } = await makeTemplate(service, team.id)
  const { key } = team
  const commit = await hold(t, service.database, (tx) =>
    subscribeTeam(byCli(tx), team.id, { plan: 'pro', email_limit: 0, whatsapp_limit: 0, contact_limit: 0 }),
  )
  const waiting = [
    send(team),
    service.call('POST', '/v1/emails/batch', { key, body: { emails: [anEmail()] } }),
    service.call('POST', '/v1/whatsapp/messages', { key, body: aMessage(id) }),
    service.call('POST', '/v1/contacts', { key, body: { email: 'waits@example.org' } }),
  ]
  await until('all wait for the account', async () => (await lockWaits(service)) === waiting.length)
  await commit()
  t.strictSame(await codes(waiting), Array(4).fill('quota_exceeded'))
  t.strictSame(await usedBy(service, team.id), { emails: 0, whatsapp: 0, contacts: 0, storage: 0 })
})

t.test('an empty bucket is rate_limited and doesn’t use the quota', async (t) => {
  const team = await makeTeam(service, { plan: 'free', rate: 1 })
  for (let index = 0; index < 5; index++) t.equal((await send(team)).status, 201)
  const refused = await send(team, { idempotency_key: 'k' })
  t.equal(refused.status, 429)
  t.equal(refused.body.error.code, 'rate_limited')
  t.equal(refused.headers.get('retry-after'), '1')
  t.equal((await usedBy(service, team.id)).emails, 5)
  await wait(999)
  t.equal((await send(team)).status, 429)
  await wait(1)
  t.equal((await send(team, { idempotency_key: 'k' })).status, 201)
  const slow = await makeTeam(service, { plan: 'free', rate: 0.2 })
  t.equal((await send(slow)).status, 201)
  t.equal((await send(slow)).headers.get('retry-after'), '5')
})

t.test('a PATCH uses a token, a cancel doesn’t', async (t) => {
  const team = await makeTeam(service, { rate: 1 })
  const { key } = team
  const template = await makeTemplate(service, team.id)
  const after = (minutes: number) => new Date(now.getTime() + minutes * 60_000).toISOString()
  const email: string = (await send(team, { scheduled_at: after(60) })).body.id
  const [message] = await sendWhatsapp(service, team, template.id, { scheduled_at: after(60) })
  const paths = [`/v1/emails/${email}`, `/v1/whatsapp/messages/${message}`] as const
  const move = (path: string, minutes: number) =>
    service.call('PATCH', path, { key, body: { scheduled_at: after(minutes) } })
  const tokens = async () => (await showTeam(service.database, team.id)).bucket.tokens
  t.equal(await tokens(), 4)
  for (const [at, path] of paths.entries()) {
    const moved = await move(path, 61)
    t.equal(moved.status, 200)
    t.match(moved.headers.get('ratelimit'), `"sends";r=${3 - at};t=${2 + at}`)
    t.match(moved.headers.get('ratelimit-policy'), '"sends";q=5;w=5')
  }
  t.equal((await move(paths[0].replace(/.$/, 'x'), 62)).status, 404)
  t.equal((await move(paths[0], 62 * 60 * 24 * 30)).status, 400)
  t.equal(await tokens(), 2, 'rejected calls take none')
  for (const path of paths) t.equal((await move(path, 61)).status, 200, 'to the time that is stored')
  t.equal(await tokens(), 0)
  for (const path of paths) {
    const rejected = await move(path, 63)
    t.strictSame([rejected.status, rejected.body.error.code], [429, 'rate_limited'])
    t.equal(rejected.headers.get('retry-after'), '1')
    t.match(rejected.headers.get('ratelimit'), '"sends";r=0;t=5')
    t.match(rejected.headers.get('ratelimit-policy'), '"sends";q=5;w=5')
    t.equal((await move(path.replace(/.$/, 'x'), 63)).status, 404, 'comes first')
  }
  for (const path of paths) t.equal((await service.call('POST', `${path}/cancel`, { key })).status, 200)
  const entries = await auditEntries(service.database, { team: team.id, limit: 20 })
  const actions = entries
    .flatMap(({ action }) => (/reschedule|cancel/.test(action) ? [action] : []))
    .toSorted()
  t.strictSame(actions, ['email.cancel', 'email.reschedule', 'whatsapp.cancel', 'whatsapp.reschedule'])
})

t.test('the burst is five times the rate, and refills continuously', async (t) => {
  const team = await makeTeam(service, { plan: 'pro', rate: 10 })
  const burst = await codes(Array.from({ length: 60 }, () => send(team)))
  t.equal(burst.filter((result) => result === 201).length, 50)
  await wait(300)
  t.equal((await codes(Array.from({ length: 10 }, () => send(team)))).filter((r) => r === 201).length, 3)
  await wait(3_600_000)
  t.equal((await codes(Array.from({ length: 60 }, () => send(team)))).filter((r) => r === 201).length, 50)
})

t.test('processes with different clocks never exceed the rate limit', async (t) => {
  const early = await startService(t, { url: service.url, clock: () => new Date(Date.now() + 8_000) })
  const late = await startService(t, { url: service.url, clock: () => new Date(Date.now() - 8_000) })
  await runClock(service.database)
  const team = await makeTeam(service, { plan: 'pro', rate: 10 })
  const started = Date.now()
  const granted = { count: 0 }
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      // Until the burst is used, however slow the machine, and a while longer.
      while (granted.count < 50 || Date.now() - started < 1_500) {
        const { status } = await (index % 2 ? early : late).call('POST', '/v1/emails', {
          key: team.key,
          body: anEmail(),
        })
        if (status === 201) granted.count += 1
      }
    }),
  )
  const seconds = (Date.now() - started) / 1_000
  t.ok(granted.count <= 50 + 10 * seconds, `${granted.count} in ${seconds} s`)
})

t.test('free plans have a calendar month in UTC', async (t) => {
  await at('2028-02-29T23:59:59.999Z')
  const team = await makeTeam(service, { plan: 'free', email_limit: 2, rate: 1_000 })
  t.equal((await send(team)).status, 201)
  t.equal((await send(team)).status, 201)
  t.equal((await send(team)).status, 402)
  await at('2028-03-01T00:00:00.000Z')
  t.equal((await send(team)).status, 201)
  t.strictSame((await showTeam(service.database, team.id)).period, {
    start: '2028-03-01T00:00:00.000Z',
    end: '2028-04-01T00:00:00.000Z',
  })
  t.equal((await usedBy(service, team.id)).emails, 1)
})

/** Returns the policies in a RateLimit header by name. */
const policies = (header: string | null): Record<string, string> =>
  Object.fromEntries((header ?? '').split(', ').map((each) => each.match(/^"(\w+)";(.+)$/)?.slice(1) ?? []))
const onlySends = (header: string | null) => header && `"sends";${policies(header).sends}`

t.test('the emails left in the period are a separate policy', async (t) => {
  await at('2027-08-30T12:00:00.500Z')
  const emails = (reply: { headers: Headers }) =>
    ['ratelimit-policy', 'ratelimit'].map((name) => policies(reply.headers.get(name)).emails)
  const policy = `q=8;w=${31 * 86_400}`
  const untilReset = 86_400 + 43_200
  const team = await makeTeam(service, { plan: 'free', rate: 1, email_limit: 8 })
  t.strictSame(emails(await send(team, { idempotency_key: 'k' })), [policy, `r=7;t=${untilReset}`])
  t.strictSame(emails(await send(team, { idempotency_key: 'k' })), [undefined, undefined], 'not of a replay')
  const batch = (count: number) =>
    service.call('POST', '/v1/emails/batch', {
      key: team.key,
      body: { emails: Array.from({ length: count }, () => anEmail()) },
    })
  t.strictSame(emails(await batch(2)), [policy, `r=5;t=${untilReset}`])
  const tooMany = await batch(6)
  t.equal(tooMany.status, 402)
  t.strictSame(emails(tooMany), [policy, `r=5;t=${untilReset}`])
  t.match(policies(tooMany.headers.get('ratelimit')), { sends: /^r=2;t=3$/ })
  t.strictSame(emails(await batch(2)), [policy, `r=3;t=${untilReset}`])
  const late = await send(team)
  t.equal(late.status, 429)
  t.strictSame(emails(late), [policy, `r=3;t=${untilReset}`])
  await wait(60_000)
  await batch(3)
  const full = await send(team)
  t.equal(full.status, 402)
  t.strictSame(emails(full), [policy, `r=0;t=${untilReset - 60}`])
  const boundless = await makeTeam(service, { plan: 'enterprise', rate: 10 })
  const { headers } = await send(boundless)
  t.equal(headers.get('ratelimit'), '"sends";r=49;t=1', 'a team without a limit has that of the rate alone')
})

t.test('a paid team’s policy has its own period', async (t) => {
  await at('2027-01-20T00:00:00Z')
  const team = await makeTeam(service, { plan: 'pro', email_limit: 10 })
  const period = { start: new Date('2027-01-10T00:00:00Z'), end: new Date('2027-01-24T00:00:00Z') }
  await subscribeTeam({ tx: service.database, now, actor: null }, team.id, { period })
  const { headers } = await send(team)
  t.match(policies(headers.get('ratelimit-policy')), { emails: `q=10;w=${14 * 86_400}` })
  t.match(policies(headers.get('ratelimit')), { emails: `r=9;t=${4 * 86_400}` })
})

t.test('each 402 has the RateLimit headers', async (t) => {
  await at('2027-08-30T12:00:00Z')
  const team = await makeTeam(service, {
    ...{ plan: 'free', rate: 1, email_limit: 8 },
    ...{ contact_limit: 0, whatsapp_limit: 0, storage_gb: 0 },
  })
  const { key } = team
  const post = (path: string, body: unknown) => service.call('POST', path, { key, body })
  const { id } = await makeTemplate(service, team.id)
  const message = aMessage(id)
  const replies = [
    await post('/v1/whatsapp/messages', message),
    await post('/v1/whatsapp/messages/batch', { messages: [message] }),
    await post('/v1/contacts', { email: 'ana@example.com' }),
    await service.call('POST', '/v1/attachments?filename=a.txt', {
      key,
      raw: 'text',
      headers: { 'Content-Type': 'text/plain' },
    }),
  ]
  for (const { status, body, headers } of replies) {
    t.match({ status, code: body.error?.code }, { status: 402, code: 'quota_exceeded' })
    t.match(policies(headers.get('ratelimit-policy')), { sends: 'q=5;w=5', emails: /^q=8;/ })
    t.match(policies(headers.get('ratelimit')), { sends: 'r=5;t=0', emails: /^r=8;/ })
  }
})

t.test('responses have RateLimit headers if the bucket was used', async (t) => {
  const team = await makeTeam(service, { plan: 'free', rate: 1 })
  const rate = (reply: { headers: Headers }) => [
    onlySends(reply.headers.get('ratelimit-policy')),
    onlySends(reply.headers.get('ratelimit')),
  ]
  t.strictSame(rate(await send(team, { idempotency_key: 'k' })), ['"sends";q=5;w=5', '"sends";r=4;t=1'])
  t.strictSame(rate(await send(team, { idempotency_key: 'k' })), [null, null])
  t.strictSame(rate(await send(team, { subject: '' })), [null, null])
  const emails = Array.from({ length: 6 }, () => anEmail())
  const batch = await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  t.strictSame(rate(batch), ['"sends";q=5;w=5', '"sends";r=0;t=5'])
  const refused = await send(team)
  t.equal(refused.status, 429)
  t.strictSame(rate(refused), ['"sends";q=5;w=5', '"sends";r=0;t=5'])
})
