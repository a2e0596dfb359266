/** Deletion of session tokens. */
import { sessionsOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import { issueSession } from '../../../db/accounts/credentials/issue.ts'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { purgeSessions } from '../../../workers/jobs/purge-sessions.ts'
import { stopClock } from '../../support/clock.ts'
import { world } from '../../support/service.ts'
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
