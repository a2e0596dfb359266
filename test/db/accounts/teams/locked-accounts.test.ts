/**
 * Locked accounts: calls that wait, jobs that skip them, and the refunds of deleted messages. Only messages
 * of the current period are refunded, and never more than was used.
 */
import { lockAccount, lockAccounts, refundQuota } from '../../../../db/accounts/teams/limits.ts'
import { stopClock } from '../../../support/clock.ts'
import { hold } from '../../../support/held.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { touched } from '../../../support/touched.ts'

const store = await openStore(t)
await stopClock(store.database, new Date('2026-02-10T00:00:00Z'))
const deletedAt = (...times: string[]) => times.map((created_at) => ({ created_at }))
const START = '2026-02-01T00:00:00.000Z'
const LAST = '2026-02-28T23:59:59.999Z'

/** Returns the stored usage after a deletion of these messages. */
async function usedAfter(teamId: string, deleted: ReturnType<typeof deletedAt>): Promise<number> {
  await store.database.transaction(async (tx) => {
    await refundQuota(tx, teamId, await lockAccount(tx, teamId), { quota: 'emails', deleted })
  })
  return store.database.transaction(async (tx) => (await lockAccount(tx, teamId)).used.emails)
}

t.test('refunds deleted messages of the current period', async (t) => {
  const id = await store.team('pro')
  for (const _ of [1, 2, 3, 4]) await store.email(id)
  t.equal(await usedAfter(id, []), 4)
  t.equal(await usedAfter(id, deletedAt('2026-01-31T23:59:59.999Z', '2026-03-01T00:00:00.000Z')), 4)
  t.equal(await usedAfter(id, deletedAt(START)), 3)
  t.equal(await usedAfter(id, deletedAt(LAST, '2026-01-01T00:00:00.000Z')), 2)
  t.equal(await usedAfter(id, deletedAt(START, START, START)), 0, 'never less than none')
})

t.test('skips or waits for locked accounts as requested', async (t) => {
  const { database } = store
  const [free, held] = [await store.team('pro'), await store.team('free')]
  const locked = (lock: 'wait' | 'skip') =>
    database.transaction(async (tx) => [...(await lockAccounts(tx, [held, free, held], lock)).entries()])
  const release = await hold(t, database, (tx) => lockAccount(tx, held))
  t.match(await locked('skip'), [[free, { plan: 'pro' }]])
  t.equal((await locked('skip')).length, 1)
  const waiting = locked('wait')
  t.equal(await Promise.race([waiting, locked('skip').then(() => 'it waits')]), 'it waits')
  await release()
  const both = new Map(await waiting)
  t.equal(both.size, 2)
  t.match(both.get(held), { plan: 'free' })
  t.match(both.get(free), { plan: 'pro' })
})

t.test('the planner expects one subscription, so that JIT stays off', async (t) => {
  const teams = await Promise.all(Array.from({ length: 20 }, () => store.team('free')))
  const { nodes } = await touched(store.database, (tx) => lockAccounts(tx, teams, 'skip'))
  t.ok(nodes.some((node) => node['Function Name'] === 'subscription_now'))
  t.ok(Math.max(...nodes.map((node) => node['Total Cost'])) < 10_000)
})
