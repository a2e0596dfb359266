/** Batching calls: which calls share a batch, and their results. */

import { type Batcher, type CallEnd, createBatcher } from '../../../api/http/batcher.ts'
import { RequestError } from '../../../db/errors.ts'
import t from '../../support/tap.ts'

type Batch = { calls: readonly string[]; alone: boolean } & PromiseWithResolvers<CallEnd<string>[]>

/** A batcher whose batches a test settles. The key of a call is its first letter. An `L` at its end makes it large. */
function heldBatcher() {
  const batches: Batch[] = []
  const batch: Batcher<string, string> = createBatcher({
    work(calls, alone) {
      const batch = { calls, alone, ...Promise.withResolvers<CallEnd<string>[]>() }
      batches.push(batch)
      return batch.promise
    },
    keyOf: (call) => call[0] ?? '',
    weightOf: (call) => (call.endsWith('L') ? 3 * 1024 * 1024 : 1),
    isSafe: (error) => error instanceof Error && error.message === 'safe',
  })
  return { batches, batch }
}
const immediate = () => new Promise((resolve) => setImmediate(resolve))
/** Waits until the next batches have started. */
const turn = async () => {
  await immediate()
  await immediate()
}
const done = async (batch: Batch | undefined) => {
  batch?.resolve(batch.calls.map((call) => `${call}!`))
  await turn()
}
const shown = (batches: readonly Batch[]) =>
  batches.map(({ calls, alone }) => `${alone ? 'alone ' : ''}${calls}`)

t.test('concurrent calls share a batch, and later ones the next', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['a1', 'b1', 'a2'].map(batch)
  await turn()
  t.strictSame(shown(batches), ['a1,b1,a2'])
  ends.push(batch('a3'), batch('b2'))
  await turn()
  t.equal(batches.length, 1, 'their keys are under way')
  await done(batches[0])
  t.strictSame(shown(batches), ['a1,b1,a2', 'a3,b2'])
  await done(batches[1])
  t.strictSame(await Promise.all(ends), ['a1!', 'b1!', 'a2!', 'a3!', 'b2!'])
})

t.test('calls that arrive right after a batch share the next one', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['a1', 'a2'].map(batch)
  await turn()
  ends.push(batch('a3'))
  batches[0]?.resolve(['a1!', 'a2!'])
  await Promise.all(ends.slice(0, 2))
  ends.push(batch('b1'))
  await turn()
  t.strictSame(shown(batches), ['a1,a2', 'a3,b1'])
  await done(batches[1])
  t.strictSame(await Promise.all(ends), ['a1!', 'a2!', 'a3!', 'b1!'])
})

t.test('a small call never overtakes a large call of its key', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['aL', 'bL', 'b2', 'c1'].map(batch)
  await turn()
  t.strictSame(shown(batches), ['aL,c1', 'bL,b2'])
  for (const each of batches) await done(each)
  t.strictSame(await Promise.all(ends), ['aL!', 'bL!', 'b2!', 'c1!'])
})

t.test('a locked key is processed separately, before its later calls', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['a1', 'b1', 'a2'].map(batch)
  await turn()
  batches[0]?.resolve([null, 'b1!', null])
  await turn()
  t.strictSame(shown(batches), ['a1,b1,a2', 'alone a1,a2'])
  ends.push(batch('a3'), batch('b2'))
  await turn()
  t.strictSame(shown(batches).slice(2), ['b2'])
  await done(batches[1])
  t.strictSame(shown(batches).slice(3), ['a3'])
  await done(batches[2])
  await done(batches[3])
  t.strictSame(await Promise.all(ends), ['a1!', 'b1!', 'a2!', 'a3!', 'b2!'])
})

t.test('calls of a safely failed batch are retried individually', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['a1', 'b1'].map(batch)
  await turn()
  batches[0]?.reject(new Error('safe'))
  await turn()
  t.strictSame(shown(batches).slice(1), ['alone a1', 'alone b1'])
  const settled = Promise.allSettled(ends)
  batches[1]?.reject(new Error('safe'))
  await done(batches[2])
  t.match(await settled, [{ reason: { message: 'safe' } }, { value: 'b1!' }])
})

t.test('calls of a batch that may be stored aren’t retried', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['a1', 'b1'].map(batch)
  await turn()
  const settled = Promise.allSettled(ends)
  batches[0]?.reject(new Error('who knows'))
  t.match(await settled, [{ reason: { message: 'who knows' } }, { reason: { message: 'who knows' } }])
  t.equal(batches.length, 1)
})

t.test('an error only affects its own call', async (t) => {
  const { batches, batch } = heldBatcher()
  const ends = ['a1', 'a2'].map(batch)
  await turn()
  const settled = Promise.allSettled(ends)
  batches[0]?.resolve([new RequestError('quota_exceeded', 'full'), 'a2!'])
  t.match(await settled, [{ reason: { code: 'quota_exceeded' } }, { value: 'a2!' }])
})
