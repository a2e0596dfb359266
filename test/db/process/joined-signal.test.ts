/** A signal that several cut off, and that leaves nothing at the one which outlives it. */
import { getEventListeners } from 'node:events'
import { joinSignals } from '../../../db/process/joined-signal.ts'
import t from '../../support/tap.ts'

t.test('it ends as the first of its signals does, for the same reason', async (t) => {
  const [one, other] = [new AbortController(), new AbortController()]
  const { signal } = joinSignals(one.signal, undefined, other.signal)
  t.equal(signal.aborted, false)
  other.abort('too late')
  one.abort('later still')
  t.equal(signal.reason, 'too late')
  t.equal(joinSignals(undefined, other.signal).signal.reason, 'too late', 'one that has ended before')
})

t.test('released or over, it leaves nothing at a signal that lives on', async (t) => {
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
