/** A team with a problem doesn't affect other teams. */
import { lockAccount } from '../../db/accounts/teams/limits.ts'
import { anEmail, makeTeam, startService } from '../support/service.ts'
import t from '../support/tap.ts'

// A team's calls wait for its lock one after another.
const service = await startService(t, { lockTimeout: 300 })
const { call, database } = service

t.test('only the team with locked rows waits, and gets 503', async (t) => {
  const [stuck, other] = [await makeTeam(service), await makeTeam(service)]
  const send = ({ key }: { key: string }) => call('POST', '/v1/emails', { key, body: anEmail() })
  await database.transaction(async (tx) => {
    await lockAccount(tx, stuck.id)
    const waiting = Array.from({ length: 12 }, () => send(stuck))
    t.equal((await send(other)).status, 201)
    t.equal((await call('GET', '/v1/contacts', { key: other.key })).status, 200)
    for (const { status, headers, body } of await Promise.all(waiting)) {
      t.strictSame([status, body.error?.code], [503, 'unavailable'])
      t.ok(Number(headers.get('retry-after')) >= 1)
    }
  })
  t.equal((await send(stuck)).status, 201)
})

const LINES = [
  { line: 'statements', turns: 3, path: '/v1/contacts/nobody@example.org', status: 404 },
  { line: 'searches', turns: 1, path: '/v1/contacts', status: 200 },
] as const
for (const { line, turns, path, status } of LINES) {
  t.test(`${line} have a limit per team, and other teams keep theirs`, async (t) => {
    const [busy, other] = [await makeTeam(service), await makeTeam(service)]
    const gate = Promise.withResolvers<void>()
    const held = Array.from({ length: turns }, () =>
      service.deps.semaphores[line].run(busy.id, () => gate.promise, 0),
    )
    let answered = false
    const waiting = call('GET', path, { key: busy.key }).finally(() => {
      answered = true
    })
    for (let round = 0; round < 5; round++)
      t.equal((await call('GET', path, { key: other.key })).status, status)
    t.notOk(answered)
    gate.resolve()
    await Promise.all(held)
    t.equal((await waiting).status, status)
  })
}
