/** Deletion of session tokens, raw reports and bulk upserts. */

import { sql } from 'slonik'
import { sessionsOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import { issueSession } from '../../../db/accounts/credentials/issue.ts'
import { deleteUpserts, upsertResult } from '../../../db/audience/contacts/upserts.sql.ts'
import { claimTokens } from '../../../db/delivery/reports/relay-tokens.sql.ts'
import { endReports, pendingReports, reportsByState } from '../../../db/delivery/reports/reports.sql.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { purgeReports } from '../../../workers/jobs/purge-reports.ts'
import { purgeSessions } from '../../../workers/jobs/purge-sessions.ts'
import { stopClock } from '../../support/clock.ts'
import { startService, world } from '../../support/service.ts'
import { openStore } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'

t.test('expired sessions are deleted, others stay', async (t) => {
  const { database, deps, team } = await world(t)
  const day = 86_400_000
  const now = new Date()
  const later = (days: number) => new Date(now.getTime() + days * day)
  const old = await issueSession({ tx: database, now, actor: 'cli' }, team.id, null)
  const young = await issueSession({ tx: database, now: later(10), actor: 'cli' }, team.id, null)
  const purge = async (days: number) => {
    await stopClock(database, later(days))
    await purgeSessions(deps as unknown as WorkerDeps)
    return (await sessionsOfTeam(database, team.id, now)).map(({ id }) => id)
  }
  t.strictSame(await purge(29), [old.id, young.id])
  t.strictSame(await purge(31), [young.id])
  t.strictSame(await purge(41), [])
})

t.test('a post’s token is deleted once it is valid nowhere', async (t) => {
  const { database, deps } = await startService(t)
  const now = new Date()
  const token = { digest: 'token', body_digest: 'one', accepted_until: new Date(now.getTime() + 3_600_000) }
  const used = async (body_digest: string) =>
    (await claimTokens(database, [{ ...token, body_digest }])).has('token')
  t.notOk(await used('one'))
  for (const [hours, known] of [
    [1.9, true],
    [2.1, false],
  ] as const) {
    await stopClock(database, new Date(now.getTime() + hours * 3_600_000))
    await purgeReports({ ...deps, retention: { reports: 30 } } as unknown as WorkerDeps)
    t.equal(await used('another'), known, `after ${hours} h`)
  }
})

t.test('deletes finished and parked reports after 30 days', async (t) => {
  const service = await startService(t)
  const { database, deps } = service
  const day = 86_400_000
  const now = new Date()
  for (const name of ['done', 'parked', 'pending']) {
    await database.transaction(async (tx) => {
      const report = { provider: 'smtp' as const, event_key: name, body: Buffer.from(name), received_at: now }
      await storeReports({ tx, queue: deps.queue }, [report])
    })
  }
  const stored = await reportsByState(database, { limit: 10 })
  const idOf = (name: string) => stored.find(({ event_key }) => event_key === name)?.id ?? ''
  await endReports(database, [
    { id: idOf('done'), state: 'done', reason: null },
    { id: idOf('parked'), state: 'parked', reason: 'x' },
  ])
  const purge = async (days: number) => {
    await stopClock(database, new Date(now.getTime() + days * day))
    await purgeReports({ ...deps, retention: { reports: 30 } } as unknown as WorkerDeps)
    return (await reportsByState(database, { limit: 10 })).map(({ event_key }) => event_key).sort()
  }
  t.strictSame(await purge(29), ['done', 'parked', 'pending'])
  t.strictSame(await purge(31), ['pending'])
  t.equal((await pendingReports(database, [idOf('pending')])).length, 1)
})

t.test('deletes finished upserts in batches, and keeps newer ones', async (t) => {
  const { database, team } = await openStore(t)
  const id = await team()
  const kept = '00000000-0000-7000-8000-000000000001'
  await database.query(sql.unsafe`
    insert into contact_upserts (team_id, id, created_at, finished_at, result)
    select ${id}, gen_random_uuid(), '2026-01-01', '2026-01-01', '{"items": []}' from generate_series(1, 2001)`)
  await database.query(sql.unsafe`
    insert into contact_upserts (team_id, id, created_at, finished_at, result)
    values (${id}, ${kept}, '2026-03-01', '2026-03-01', '{"items": []}')`)
  const before = new Date('2026-02-01T00:00:00Z')
  const past = { finishedBefore: before, createdBefore: before }
  t.equal(await deleteUpserts(database, past), 2001)
  t.equal(await deleteUpserts(database, past), 0)
  t.strictSame(await upsertResult(database, id, kept), { items: [] })
})
