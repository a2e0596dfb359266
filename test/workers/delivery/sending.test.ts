/** The start time of a send, independent of this process's clock. */
import type { Sender } from '../../../db/delivery/senders/rate-limit.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { createServiceClock } from '../../../db/postgres/service-clock.ts'
import { createAdmission, type Message } from '../../../workers/delivery/admission.ts'
import { createBreakers } from '../../../workers/delivery/breaker.ts'
import type { Recording } from '../../../workers/delivery/recorder.ts'
import type { AttemptOutcome } from '../../../workers/delivery/retry-policy.ts'
import { deliver, type Parts } from '../../../workers/delivery/sending.ts'
import { createSlots } from '../../../workers/delivery/slots.ts'
import { createWriteBuffer } from '../../../workers/delivery/write-buffer.ts'
import { stopClock } from '../../support/clock.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'

type Job = 'deliver-webhook'
type Answer = readonly AttemptOutcome[]

const NOW = new Date('2026-03-01T12:00:00.000Z')
const sender: Sender = { key: 'webhook:one', ceiling: 10 }

t.test('a send starts after its reservation by any clock', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openDatabase(url, { size: 2 })
  t.teardown(() => database.end())
  await stopClock(database, NOW)
  const [breakers, clock, slots] = [createBreakers(), createServiceClock(), createSlots(1).share()]
  const recorded = Promise.withResolvers<readonly Recording<Job, Answer>[]>()
  const buffer = createWriteBuffer<Recording<Job, Answer>>(async (all) => recorded.resolve(all), {
    room: 2 * slots.size,
  })
  const delivery = {
    ...{ channel: { job: 'deliver-webhook' }, senders: { prefix: 'webhook:' }, unknown_wait: 0 },
    ...{ judge: (answer: Answer) => answer, outcomesOf: (answer: Answer) => answer },
  }
  const [closing, cut] = [new AbortController().signal, new AbortController().signal]
  const parts = {
    ...{ delivery, deps: { database }, slots, clock, breakers, buffer, closing, cut },
    ...{ claims: { isHeld: () => true }, recorder: { isStuck: () => false } },
  } as unknown as Parts<Job, Answer>
  const answer = [{ kind: 'sender', detail: 'down', trouble: 'connection' }] as const
  const outgoing = {
    ref: { team_id: 't', id: '1' },
    sender,
    cost: 1,
    history: { since: null, deferrals: 0, unknowns: 0 },
    send: async () => answer,
  }
  const message = { job: { id: '1' }, outgoing } as unknown as Message<Job, Answer>

  const admission = createAdmission(parts.delivery, parts.deps, parts)
  const { released } = await admission.release([message], await admission.look())
  await clock.setBy(Promise.resolve(new Date(NOW.getTime() - 60_000)), (at) => at)
  for (const each of released) await deliver(parts, each)
  const [recording] = await recorded.promise
  t.strictSame(recording?.sent?.signal?.began_at, NOW)
})
