/** Credentials: the access of each route, suspension, revocation, and the time of their last use. */
import { ROUTES } from '../../api/app.ts'
import { keysOfTeam, revokeSessions, SCOPES } from '../../db/accounts/credentials/credentials.sql.ts'
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

/** The routes for teams by scope, from README.md. A session token can only call some of them. */
const REQUIRED: Readonly<Record<string, { keys: readonly string[]; sessions?: readonly string[] }>> = {
  'contacts:read': { keys: ['GET /v1/contacts', 'GET /v1/contacts/:email'] },
  'contacts:write': {
    keys: [
      ...['POST /v1/contacts', 'PATCH /v1/contacts/:email', 'DELETE /v1/contacts/:email'],
      ...['POST /v1/contacts/:email/unsubscribe', 'POST /v1/contacts/:email/resubscribe'],
      'POST /v1/contacts/bulk',
    ],
  },
  'emails:send': {
    keys: ['POST /v1/emails/batch', 'POST /v1/attachments'],
    sessions: ['POST /v1/emails', 'POST /v1/emails/:id/cancel', 'PATCH /v1/emails/:id'],
  },
  'whatsapp:send': {
    keys: ['POST /v1/whatsapp/messages/batch'],
    sessions: [
      'POST /v1/whatsapp/messages',
      ...['POST /v1/whatsapp/messages/:id/cancel', 'PATCH /v1/whatsapp/messages/:id'],
    ],
  },
  'broadcasts:read': { keys: ['GET /v1/broadcasts', 'GET /v1/broadcasts/:id'] },
  'broadcasts:write': {
    keys: ['POST /v1/broadcasts', 'PATCH /v1/broadcasts/:id', 'DELETE /v1/broadcasts/:id'],
  },
  'broadcasts:send': {
    keys: ['test', 'send', 'pause', 'resume', 'cancel'].map((verb) => `POST /v1/broadcasts/:id/${verb}`),
  },
  none: { keys: [], sessions: ['POST /v1/marketing/unsubscribe'] },
}

t.test('each route requires its credential and scope, whatever the body', async (t) => {
  const team = await makeTeam(service)
  const session = await makeSession(service, team.id)
  const asked: string[] = []
  for (const [scope, { keys, sessions = [] }] of Object.entries(REQUIRED)) {
    const enough = await makeKey(service, team.id, { scopes: SCOPES.filter((each) => each === scope) })
    const others = await makeKey(service, team.id, { scopes: SCOPES.filter((each) => each !== scope) })
    for (const route of [...keys, ...sessions]) {
      const [method = '', path = ''] = route.split(' ')
      const send = (key?: string) =>
        service.call(method, path.replace(/:\w+/, 'x'), {
          ...(key && { key }),
          ...(method !== 'GET' && { raw: 'not even JSON', headers: { 'Content-Type': 'application/json' } }),
        })
      const isRefused = async (key: string, message: RegExp | string) =>
        t.match(
          await send(key),
          { status: 403, body: { error: { code: 'insufficient_scope', message } } },
          route,
        )
      const isAllowed = async (key: string) => {
        const { status } = await send(key)
        t.ok(status < 500 && ![401, 403].includes(status), `${route}: ${status}`)
      }
      t.match(await send(), { status: 401, body: { error: { code: 'unauthorized' } } }, route)
      await isAllowed(enough)
      await (scope === 'none' ? isAllowed(others) : isRefused(others, scope))
      await (sessions.includes(route) ? isAllowed(session) : isRefused(session, 'only accepts API keys'))
      asked.push(route)
    }
  }
  const ofTeams = ROUTES.filter(({ access }) => access !== 'public')
  t.strictSame(
    asked.sort(),
    ofTeams.map(({ method, path }) => `${method} ${path}`).sort(),
    'REQUIRED in this file lists each route',
  )
})

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
