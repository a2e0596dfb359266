/** What one team's trouble costs the others: nothing. */
import t from 'tap'
import { lockAccount } from '../../db/teams/limits.ts'
import { anEmail, makeTeam, startService } from '../support/service.ts'

const service = await startService(t)
const { call, database } = service

t.test('a team whose rows are locked waits by itself, and is told 503 unavailable', async (t) => {
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
