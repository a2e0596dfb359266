/** Whose place in the allowance a deletion gives back: messages of this period alone, and never more than were used. */
import { freePlaces, lockAccount } from '../../../../db/accounts/teams/limits.ts'
import { stopClock } from '../../../support/clock.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

const store = await openStore(t)
await stopClock(store.database, new Date('2026-02-10T00:00:00Z'))
const deletedAt = (...times: string[]) => times.map((created_at) => ({ created_at }))
const START = '2026-02-01T00:00:00.000Z'
const LAST = '2026-02-28T23:59:59.999Z'

/** What is counted as used once these are deleted, as it is then stored. */
async function usedAfter(teamId: string, deleted: ReturnType<typeof deletedAt>): Promise<number> {
  await store.database.transaction(async (tx) => {
    await freePlaces(tx, teamId, await lockAccount(tx, teamId), { quota: 'emails', deleted })
  })
  return store.database.transaction(async (tx) => (await lockAccount(tx, teamId)).used.emails)
}

t.test('what this period accepted gives its place back, from its first moment to its last', async (t) => {
  const id = await store.team('pro')
  for (const _ of [1, 2, 3, 4]) await store.email(id)
  t.equal(await usedAfter(id, []), 4)
  t.equal(await usedAfter(id, deletedAt('2026-01-31T23:59:59.999Z', '2026-03-01T00:00:00.000Z')), 4)
  t.equal(await usedAfter(id, deletedAt(START)), 3)
  t.equal(await usedAfter(id, deletedAt(LAST, '2026-01-01T00:00:00.000Z')), 2)
  t.equal(await usedAfter(id, deletedAt(START, START, START)), 0, 'never less than none')
})
