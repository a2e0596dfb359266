/** Replays: the same key returns the original row and charges nothing. DECISIONS: Idempotency. */
import { jobsOf, removeDomains, rowCounts, usedBy } from '../support/rows.ts'
import { anEmail, makeKey, makeTeam, startService, type TestTeam } from '../support/service.ts'
import t from '../support/tap.ts'

const service = await startService(t)
const send = async (team: TestTeam, changes: Record<string, unknown>, key = team.key) =>
  await service.call('POST', '/v1/emails', { key, body: anEmail(changes) })

t.test('a replay returns the original row and charges nothing', async (t) => {
  const team = await makeTeam(service)
  const first = await send(team, { idempotency_key: 'k' })
  const again = await send(team, { idempotency_key: 'k', subject: 'Another', to: ['else@example.org'] })
  t.equal(first.status, 201)
  t.equal(again.status, 200)
  t.strictSame(again.body, first.body)
  t.strictSame(await usedBy(service, team.id), { emails: 1, whatsapp: 0, contacts: 0, storage: 0 })
})

t.test('a replay needs neither the domain nor quota', async (t) => {
  const team = await makeTeam(service, { email_limit: 1 })
  const first = await send(team, { idempotency_key: 'k' })
  t.equal((await send(team, {})).body.error.code, 'quota_exceeded')
  await removeDomains(service, team.id)
  const again = await send(team, { idempotency_key: 'k' })
  t.equal(again.status, 200)
  t.equal(again.body.id, first.body.id)
  t.equal((await send(team, { idempotency_key: 'other' })).body.error.code, 'from_domain_not_verified')
})

t.test('a rejected send doesn’t use its key', async (t) => {
  const team = await makeTeam(service)
  t.equal((await send(team, { idempotency_key: 'k', from: 'a@example.net' })).status, 422)
  t.equal((await send(team, { idempotency_key: 'k' })).status, 201)
})

t.test('a key can’t replay an email of another domain', async (t) => {
  const team = await makeTeam(service)
  await send(team, { idempotency_key: 'k' })
  const bound = await makeKey(service, team.id, { domain: 'example.net' })
  const { status, body } = await send(team, { idempotency_key: 'k', from: 'a@example.net' }, bound)
  t.equal(`${status} ${body.error.code}`, '403 domain_not_allowed')
})

t.test('200 concurrent requests with one key store one row', async (t) => {
  const other = await startService(t, { url: service.url })
  const team = await makeTeam(service)
  const calls = Array.from({ length: 200 }, async (_, index) => {
    const { call } = index % 2 ? service : other
    return call('POST', '/v1/emails', { key: team.key, body: anEmail({ idempotency_key: 'one' }) })
  })
  const replies = await Promise.all(calls)
  const statuses = replies.map((reply) => reply.status)
  t.equal(statuses.filter((status) => status === 201).length, 1)
  t.equal(statuses.filter((status) => status === 200).length, 199)
  t.equal(new Set(replies.map((reply) => reply.body.id)).size, 1)
  t.strictSame(await rowCounts(service, team.id), { emails: 1, jobs: 1 })
  t.strictSame(await usedBy(service, team.id), { emails: 1, whatsapp: 0, contacts: 0, storage: 0 })
})

t.test('a job only contains IDs', async (t) => {
  const team = await makeTeam(service)
  const { body } = await send(team, {})
  t.strictSame(await jobsOf(service, team.id), [
    { name: 'deliver-email', data: { team_id: team.id, email_id: body.id } },
  ])
})
