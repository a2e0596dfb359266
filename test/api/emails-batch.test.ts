/** POST /v1/emails/batch: each item has its own result, and is charged if it is stored. DECISIONS: Quota. */
import { runClock, stopClock } from '../support/clock.ts'
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { rowCounts, usedBy } from '../support/rows.ts'
import { anEmail, makeTeam, startService, type TestTeam } from '../support/service.ts'
import t from '../support/tap.ts'

const NOON = new Date('2027-01-15T12:00:00.000Z')
const service = await startService(t)
await stopClock(service.database, NOON)
const batch = async (team: TestTeam, emails: unknown, key = team.key) =>
  await service.call('POST', '/v1/emails/batch', { key, body: { emails } })
const many = (count: number, changes: (index: number) => Record<string, unknown> = () => ({})) =>
  Array.from({ length: count }, (_, index) => anEmail(changes(index)))
const codeOf = (item: { id?: string; error?: { code: string } }) => item.error?.code ?? 'accepted'

t.test("returns a result per item, unaffected by others' errors", async (t) => {
  const team = await makeTeam(service)
  const { status, body } = await batch(team, [
    anEmail(),
    5,
    null,
    [],
    'x',
    anEmail({ subject: 5 }),
    anEmail({ from: 'nobody' }),
    anEmail({ headers: { From: 'x' } }),
    anEmail({ reply_to: 'nobody' }),
    anEmail({ from: 'a@example.net' }),
    anEmail({ subject: 'a\u0000' }),
    anEmail({ template_id: '00000000-0000-7000-8000-000000000000' }),
    anEmail(),
  ])
  t.equal(status, 200)
  const indexes = body.data.map((item: { index: number }) => item.index)
  t.strictSame(indexes, [...Array(13).keys()])
  t.strictSame(body.data.map(codeOf), [
    ...'accepted bad_request bad_request bad_request bad_request bad_request invalid_from'.split(' '),
    ...'invalid_headers invalid_reply_to from_domain_not_verified bad_request not_found accepted'.split(' '),
  ])
  const messages = body.data.map((item: { error?: { message: string } }) => item.error?.message ?? '')
  for (const [index, field] of Object.entries({
    5: 'subject',
    6: 'from',
    7: 'headers',
    8: 'reply_to',
    9: 'from',
  })) {
    t.ok(messages[Number(index)].startsWith(`emails[${index}].${field}`), messages[Number(index)])
  }
  for (const item of body.data) t.not('id' in item, 'error' in item)
  t.strictSame(await rowCounts(service, team.id), { emails: 2, jobs: 2 })
})

t.test("stores and charges a batch's repeated key once", async (t) => {
  const team = await makeTeam(service, { email_limit: 2 })
  const { body } = await batch(team, [
    anEmail({ idempotency_key: 'a' }),
    anEmail({ idempotency_key: 'a', subject: 'x' }),
    anEmail({ idempotency_key: 'b' }),
  ])
  t.strictSame(body.data.map(codeOf), ['accepted', 'accepted', 'accepted'])
  t.equal(body.data[0].id, body.data[1].id)
  t.not(body.data[0].id, body.data[2].id)
  t.equal((await usedBy(service, team.id)).emails, 2)
})

t.test('a repeated key is a replay, even with an invalid item', async (t) => {
  const team = await makeTeam(service, { email_limit: 1 })
  const refusedAlone = anEmail({ idempotency_key: 'a', from: 'a@example.net' })
  const { body } = await batch(team, [refusedAlone, anEmail({ idempotency_key: 'a' }), refusedAlone])
  t.equal(codeOf(body.data[0]), 'from_domain_not_verified', 'a refused item binds no key')
  t.ok(body.data[1].id)
  t.equal(body.data[2].id, body.data[1].id)
  t.equal((await usedBy(service, team.id)).emails, 1)
})

t.test('rejects a batch over the quota completely, except replays', async (t) => {
  const team = await makeTeam(service, { email_limit: 3 })
  const keyed = many(3, (index) => ({ idempotency_key: `k${index}` }))
  const first = await batch(team, keyed.slice(0, 2))
  const { status, body } = await batch(team, [...keyed, anEmail()])
  t.equal(`${status} ${body.error.code}`, '402 quota_exceeded')
  t.equal((await usedBy(service, team.id)).emails, 2)
  const fits = await batch(team, [...keyed, anEmail({ from: 'a@example.net' })])
  t.strictSame(fits.body.data.map(codeOf), ['accepted', 'accepted', 'accepted', 'from_domain_not_verified'])
  t.equal(fits.body.data[0].id, first.body.data[0].id)
  t.equal((await batch(team, keyed)).status, 200)
})

t.test('an empty bucket makes items rate_limited, except replays', async (t) => {
  const team = await makeTeam(service, { plan: 'free', rate: 1 })
  const first = await batch(team, [anEmail({ idempotency_key: 'old' })])
  const { status, body, headers } = await batch(team, [...many(6), anEmail({ idempotency_key: 'old' })])
  t.equal(status, 200)
  t.equal(headers.get('retry-after'), null)
  const codes = body.data.map(codeOf)
  t.strictSame(codes, [...Array(4).fill('accepted'), 'rate_limited', 'rate_limited', 'accepted'])
  t.equal(body.data[6].id, first.body.data[0].id)
  await stopClock(service.database, new Date(NOON.getTime() + 2_000))
  t.strictSame((await batch(team, many(3))).body.data.map(codeOf), ['accepted', 'accepted', 'rate_limited'])
})

t.test('concurrent batches fill the quota with complete batches only', async (t) => {
  const other = await startService(t, { url: service.url })
  const team = await makeTeam(service, { email_limit: 100 })
  await stopClock(service.database, new Date(NOON.getTime() + 60_000))
  const replies = await Promise.all(
    Array.from(
      { length: 50 },
      async (_, index) =>
        await (index % 2 ? service : other).call('POST', '/v1/emails/batch', {
          key: team.key,
          body: { emails: many(7) },
        }),
    ),
  )
  t.equal(replies.filter((reply) => reply.status === 200).length, 14)
  t.equal(replies.filter((reply) => reply.status === 402).length, 36)
  t.strictSame(await rowCounts(service, team.id), { emails: 98, jobs: 98 })
})

t.test('100 emails need as many statements as one', async (t) => {
  const proxy = await startDatabaseProxy(t, service.url)
  const counted = await startService(t, { url: proxy.url, wake: () => {} })
  const team = await makeTeam(counted)
  await runClock(service.database)
  const sendAll = async (emails: unknown[]) =>
    await counted.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })
  const keyed = (prefix: string) => (index: number) => ({
    idempotency_key: `${prefix}${index}`,
    to: [`${index}@example.org`],
  })
  await sendAll(many(1, keyed('warm')))
  const one = await proxy.during(() => sendAll(many(1, keyed('one'))))
  const hundred = await proxy.during(() => sendAll(many(100, keyed('hundred'))))
  // The authentication, BEGIN and references, lock, replays, rows with their charge, jobs and COMMIT, and
  // sometimes the position in the queue.
  t.ok(one <= 8, `${one}`)
  t.ok(hundred <= 8, `${hundred}`)
  t.strictSame(await rowCounts(service, team.id), { emails: 102, jobs: 102 })
})
