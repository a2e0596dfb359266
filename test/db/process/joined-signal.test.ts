/** A joined signal aborts like its first signal, and leaves no listeners on long-lived ones. */
import { getEventListeners } from 'node:events'
import { joinSignals } from '../../../db/process/joined-signal.ts'
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
