/**
 * How much webhooks may claim while email waits: the rules with a test clock, and which queues have priority.
 */

import { createYielding } from '../../../workers/delivery/queue-priority.ts'
import type { SlotShare } from '../../../workers/delivery/slots.ts'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { openSlots } from '../../../workers/registry.ts'
import t from '../../support/tap.ts'

/** Sets the priority queue and the time from the test. */
function begin() {
  const state = { starved: true, starved_at: Number.NEGATIVE_INFINITY, begun: 0, now: 0 }
  const prior = {
    lastStarvedAt: () => (state.starved ? state.now : state.starved_at),
    begun: () => state.begun,
  }
  const yielding = createYielding([prior], () => state.now)
  /**
   * Claims the allowed number of jobs after some time and other starts, while more are waiting. @returns that
   * number.
   */
  const after = (milliseconds: number, begun: number): number => {
    state.now += milliseconds
    state.begun += begun
    const most = yielding.claimable()
    if (most > 0) yielding.claimed(most, most)
    return most
  }
  return { state, yielding, after }
}

t.test('nothing is limited while no one waits', async (t) => {
  const { state, after } = begin()
  state.starved = false
  t.equal(after(0, 1_000), Number.POSITIVE_INFINITY)
  t.equal(after(1, 0), Number.POSITIVE_INFINITY)
})

t.test('waiting ends after a moment without anyone waiting', async (t) => {
  const { state, yielding } = begin()
  Object.assign(state, { starved: false, starved_at: 1_000, now: 1_100 })
  t.equal(yielding.claimable(), 10)
  state.now = 1_101
  t.equal(yielding.claimable(), Number.POSITIVE_INFINITY)
})

t.test('claims one per eight others, every half second', async (t) => {
  const { after } = begin()
  t.equal(after(400, 160), 0, 'too early')
  t.equal(after(100, 0), 20, 'for all that have begun since')
  t.equal(after(499, 400), 0)
  t.equal(after(1, 400), 104, 'a little more: it has been behind for some time')
})

t.test('some are claimed even if none of the others starts', async (t) => {
  const { after } = begin()
  t.equal(after(500, 0), 10)
  t.equal(after(500, 0), 10)
})

t.test('the longer it is behind, the more it may claim', async (t) => {
  const { yielding, state, after } = begin()
  t.equal(after(500, 80), 10)
  t.equal(after(10_000, 80), 20)
  t.equal(after(10_000, 80), 40)
  t.equal(after(20_000, 80), 160, 'twice as many as of the others')
  yielding.claimed(159, 160)
  state.now += 500
  t.equal(yielding.claimable(), 10, 'it has caught up')
})

/** Starts more in a share than it has slots. @returns a function that ends them. */
function overfill(share: SlotShare): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const applicant = { sender: { key: 'a relay' }, isProven: () => true }
  const all = Array.from({ length: share.size + 1 }, () => share.run(applicant, () => promise, 60_000))
  return async () => {
    resolve()
    await Promise.all(all)
  }
}

for (const [first, gives] of [
  ['deliver-email', true],
  ['deliver-whatsapp', true],
  ['deliver-broadcast', false],
] as const)
  t.test(`webhooks ${gives ? '' : 'do not '}yield to ${first}`, async (t) => {
    const slots = openSlots({ concurrency: 4, webhooks: { concurrency: 4 } } as WorkerDeps)
    const most = () => slots['deliver-webhook'].yielding.claimable()
    t.equal(most(), Number.POSITIVE_INFINITY)
    const end = overfill(slots[first])
    t.equal(Number.isFinite(most()), gives)
    t.equal(slots[first].begun(), slots[first].size)
    const before = performance.now()
    for (const job of ['deliver-email', 'deliver-broadcast', 'deliver-whatsapp'] as const)
      t.equal(slots[job].yielding.claimable(), Number.POSITIVE_INFINITY, `${job} yields to nothing`)
    await end()
    t.equal(slots[first].begun(), slots[first].size + 1)
    t.ok(slots[first].lastStarvedAt() >= before, 'one has waited until then')
  })

t.test("large messages that wait for each other don't delay webhooks", async (t) => {
  const slots = openSlots({ concurrency: 4, webhooks: { concurrency: 4 } } as WorkerDeps)
  const { promise, resolve } = Promise.withResolvers<void>()
  const applicant = { sender: { key: 'a relay' }, isProven: () => true, is_large: true }
  const single = slots['deliver-email']
  const all = Array.from({ length: 3 }, () => single.run(applicant, () => promise, 60_000))
  t.equal(single.begun(), 2, 'one waits')
  t.equal(slots['deliver-webhook'].yielding.claimable(), Number.POSITIVE_INFINITY)
  resolve()
  await Promise.all(all)
  t.equal(slots['deliver-webhook'].yielding.claimable(), Number.POSITIVE_INFINITY)
})
