/** Batching calls into lots: who goes with whom, and what becomes of each. */

import { type Batcher, type CallEnd, createBatcher } from '../../../api/http/batcher.ts'
import { Refusal } from '../../../db/errors.ts'
import t from '../../support/tap.ts'

type Lot = { calls: readonly string[]; alone: boolean } & PromiseWithResolvers<CallEnd<string>[]>

/** A batcher whose lots a test ends by hand; a call's key is its first letter. */
function heldBatcher() {
  const lots: Lot[] = []
  const batch: Batcher<string, string> = createBatcher({
    work(calls, alone) {
      const lot = { calls, alone, ...Promise.withResolvers<CallEnd<string>[]>() }
      lots.push(lot)
      return lot.promise
    },
    keyOf: (call) => call[0] ?? '',
    weightOf: () => 1,
    isSafe: (error) => error instanceof Error && error.message === 'safe',
  })
  return { lots, batch }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))
const done = async (lot: Lot | undefined) => {
  lot?.resolve(lot.calls.map((call) => `${call}!`))
  await turn()
}
const shown = (lots: readonly Lot[]) => lots.map(({ calls, alone }) => `${alone ? 'alone ' : ''}${calls}`)

t.test(
  'what arrives together goes together, at once; what arrives later goes into the next lot',
  async (t) => {
    const { lots, batch } = heldBatcher()
    const ends = ['a1', 'b1', 'a2'].map(batch)
    await turn()
    t.strictSame(shown(lots), ['a1,b1,a2'])
    ends.push(batch('a3'), batch('b2'))
    await turn()
    t.equal(lots.length, 1, 'their keys are under way')
    await done(lots[0])
    t.strictSame(shown(lots), ['a1,b1,a2', 'a3,b2'])
    await done(lots[1])
    t.strictSame(await Promise.all(ends), ['a1!', 'b1!', 'a2!', 'a3!', 'b2!'])
  },
)

t.test('a key that somebody else holds goes alone, with its later calls behind it', async (t) => {
  const { lots, batch } = heldBatcher()
  const ends = ['a1', 'b1', 'a2'].map(batch)
  await turn()
  lots[0]?.resolve([null, 'b1!', null])
  await turn()
  t.strictSame(shown(lots), ['a1,b1,a2', 'alone a1,a2'])
  ends.push(batch('a3'), batch('b2'))
  await turn()
  t.strictSame(shown(lots).slice(2), ['b2'])
  await done(lots[1])
  t.strictSame(shown(lots).slice(3), ['a3'])
  await done(lots[2])
  await done(lots[3])
  t.strictSame(await Promise.all(ends), ['a1!', 'b1!', 'a2!', 'a3!', 'b2!'])
})

t.test('calls of a lot that failed and left nothing are tried one by one', async (t) => {
  const { lots, batch } = heldBatcher()
  const ends = ['a1', 'b1'].map(batch)
  await turn()
  lots[0]?.reject(new Error('safe'))
  await turn()
  t.strictSame(shown(lots).slice(1), ['alone a1', 'alone b1'])
  const settled = Promise.allSettled(ends)
  lots[1]?.reject(new Error('safe'))
  await done(lots[2])
  t.match(await settled, [{ reason: { message: 'safe' } }, { value: 'b1!' }])
})

t.test('calls of a lot that may have been stored are not tried again', async (t) => {
  const { lots, batch } = heldBatcher()
  const ends = ['a1', 'b1'].map(batch)
  await turn()
  const settled = Promise.allSettled(ends)
  lots[0]?.reject(new Error('who knows'))
  t.match(await settled, [{ reason: { message: 'who knows' } }, { reason: { message: 'who knows' } }])
  t.equal(lots.length, 1)
})

t.test('a refusal is of its call alone', async (t) => {
  const { lots, batch } = heldBatcher()
  const ends = ['a1', 'a2'].map(batch)
  await turn()
  const settled = Promise.allSettled(ends)
  lots[0]?.resolve([new Refusal('quota_exceeded', 'full'), 'a2!'])
  t.match(await settled, [{ reason: { code: 'quota_exceeded' } }, { value: 'a2!' }])
})
