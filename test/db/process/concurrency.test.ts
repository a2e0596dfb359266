/** Joined signals abort like the first one, and a keyed semaphore limits concurrent tasks per key, in order. */
import { getEventListeners } from 'node:events'
import { joinSignals } from '../../../db/process/joined-signal.ts'
import { createKeyedSemaphore } from '../../../db/process/keyed-semaphore.ts'
import t from '../../support/tap.ts'

t.test('aborts with the reason of its first signal', async (t) => {
  const [one, other] = [new AbortController(), new AbortController()]
  const { signal } = joinSignals(one.signal, undefined, other.signal)
  t.equal(signal.aborted, false)
  other.abort('too late')
  one.abort('later still')
  t.equal(signal.reason, 'too late')
  t.equal(joinSignals(undefined, other.signal).signal.reason, 'too late', 'one that has ended before')
})

t.test('leaves no listeners after release or abort', async (t) => {
  const [process, work] = [new AbortController(), new AbortController()]
  const left = () => getEventListeners(process.signal, 'abort').length
  const released = joinSignals(work.signal, process.signal)
  t.equal(left(), 1)
  released.release()
  t.equal(left(), 0)
  process.abort()
  t.equal(released.signal.aborted, false)
  const living = new AbortController()
  joinSignals(work.signal, living.signal)
  work.abort()
  t.equal(getEventListeners(living.signal, 'abort').length, 0)
})

t.test('limits concurrent tasks per key, in order', async (t) => {
  const semaphore = createKeyedSemaphore(2)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const work = (kind: string, name: string) =>
    semaphore.run(
      kind,
      async () => {
        begun.push(name)
        await new Promise<void>((resolve) => ends.set(name, resolve))
        return name
      },
      60_000,
    )
  const all = [work('a', '1'), work('a', '2'), work('a', '3'), work('a', '4'), work('b', 'other')]
  await new Promise(setImmediate)
  t.strictSame(begun, ['1', '2', 'other'])
  ends.get('2')?.()
  await all[1]
  await new Promise(setImmediate)
  t.strictSame(begun, ['1', '2', 'other', '3'])
  for (const name of ['1', '3', 'other']) ends.get(name)?.()
  await all[2]
  await new Promise(setImmediate)
  ends.get('4')?.()
  t.strictSame(await Promise.all(all), ['1', '2', '3', '4', 'other'])
})

t.test('an error releases its permit, and expired waiters never start', async (t) => {
  const semaphore = createKeyedSemaphore(1)
  await t.rejects(
    semaphore.run('a', async () => Promise.reject(new Error('a fault')), 1),
    /a fault/,
  )
  const held = Promise.withResolvers<null>()
  const holder = semaphore.run('a', () => held.promise, 1)
  t.equal(await semaphore.run('a', async () => t.fail('begun'), 1), null)
  const waiting = semaphore.run('a', async () => t.fail('begun'), 60_000)
  semaphore.close()
  t.equal(await waiting, null)
  t.equal(await semaphore.run('b', async () => t.fail('begun'), 60_000), null)
  held.resolve(null)
  await holder
})
