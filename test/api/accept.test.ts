/** A 201 means that row and job are committed. A failed send stores neither. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startApi } from '../support/api-process.ts'
import { atCommit, rowCounts, usedBy } from '../support/rows.ts'
import { anEmail, world } from '../support/service.ts'
import t from '../support/tap.ts'

t.test('a rolled-back send stores and charges nothing', async (t) => {
  const { service, team } = await world(t)
  const restore = await atCommit(service, "raise exception 'no commit'")
  const refused = await service.call('POST', '/v1/emails', {
    key: team.key,
    body: anEmail({ idempotency_key: 'k' }),
  })
  t.equal(refused.status, 500)
  t.strictSame(await rowCounts(service, team.id), { emails: 0, jobs: 0 })
  t.equal((await usedBy(service, team.id)).emails, 0)
  await restore()
  const taken = await service.call('POST', '/v1/emails', {
    key: team.key,
    body: anEmail({ idempotency_key: 'k' }),
  })
  t.equal(taken.status, 201)
  t.strictSame(await rowCounts(service, team.id), { emails: 1, jobs: 1 })
})

t.test('a killed API process has stored everything it accepted', async (t) => {
  const { service, team } = await world(t)
  // Delays every commit, so that the kill happens during commits.
  await atCommit(service, 'perform pg_sleep(0.3)')
  const answered = new Map<string, string>()
  for (let round = 0; round < 3; round++) {
    const api = await startApi(t, service.url)
    const calls = Array.from({ length: 10 }, async (_, index) => {
      const idempotency_key = `round ${round}, call ${index}`
      const reply = await api
        .call('POST', '/v1/emails', { key: team.key, body: anEmail({ idempotency_key }) })
        .catch(() => null)
      if (reply?.status === 201) answered.set(idempotency_key, reply.body.id)
    })
    await sleep(900)
    api.kill('SIGKILL')
    await Promise.all(calls)
  }
  t.ok(answered.size < 30, 'some were cut off')
  for (let round = 0; round < 3; round++) {
    for (let index = 0; index < 10; index++) {
      const idempotency_key = `round ${round}, call ${index}`
      const { status, body } = await service.call('POST', '/v1/emails', {
        key: team.key,
        body: anEmail({ idempotency_key }),
      })
      t.match(status, answered.has(idempotency_key) ? 200 : /^20[01]$/)
      if (answered.has(idempotency_key)) t.equal(body.id, answered.get(idempotency_key))
    }
  }
  t.strictSame(await rowCounts(service, team.id), { emails: 30, jobs: 30 })
  t.equal((await usedBy(service, team.id)).emails, 30)
})
