/** Credentials during changes: suspension, revocation, and the time of their last use. */
import { keysOfTeam, revokeSessions } from '../../db/accounts/credentials/credentials.sql.ts'
import { resumeTeam, suspendTeam } from '../../db/accounts/teams/suspend.ts'
import { anEmail, makeKey, makeSession, makeTeam, type Service, startService } from '../support/service.ts'
import t from '../support/tap.ts'

let service: Service
let now = new Date('2026-03-01T10:20:00Z')

t.before(async () => {
  service = await startService(t, { clock: () => now })
})

const statusOf = async (key: string) =>
  (await service.call('POST', '/v1/emails', { key, body: anEmail() })).status

t.test('a suspended team’s credentials return 401 until its resume', async (t) => {
  const { database } = service
  const team = await makeTeam(service)
  const other = await makeTeam(service)
  const session = await makeSession(service, team.id)
  const { status, body } = await service.call('GET', '/v1/contacts', { key: 'hg_nonsense' })
  await suspendTeam({ tx: database, now, actor: 'cli' }, team.id)
  for (const key of [team.key, session]) {
    const refused = await service.call('POST', '/v1/emails', { key, body: anEmail() })
    t.equal(refused.status, status)
    t.same(refused.body, body, 'like any credential that does not count')
  }
  t.equal(await statusOf(other.key), 201)
  await resumeTeam({ tx: database, now: new Date(), actor: 'cli' }, team.id)
  t.equal(await statusOf(team.key), 201)
  t.equal(await statusOf(session), 201)
})

t.test('a revoked session token gets 401 at the next request', async (t) => {
  const team = await makeTeam(service)
  const session = await makeSession(service, team.id)
  t.equal(await statusOf(session), 201)
  await revokeSessions(service.database, team.id, 'all', now)
  t.equal(await statusOf(session), 401)
})

t.test('stores the last use of a key once an hour', async (t) => {
  const team = await makeTeam(service)
  const second = await makeKey(service, team.id)
  const uses = async () => (await keysOfTeam(service.database, team.id)).map((key) => key.last_used_at)
  t.strictSame(await uses(), [null, null])
  t.equal(await statusOf(second), 201)
  t.strictSame(await uses(), [null, '2026-03-01T10:00:00.000Z'])
  now = new Date('2026-03-01T10:59:59Z')
  await statusOf(second)
  t.strictSame(await uses(), [null, '2026-03-01T10:00:00.000Z'])
  now = new Date('2026-03-01T11:00:00Z')
  await Promise.all([statusOf(second), statusOf(second), statusOf(team.key)])
  t.strictSame(await uses(), ['2026-03-01T11:00:00.000Z', '2026-03-01T11:00:00.000Z'])
})
