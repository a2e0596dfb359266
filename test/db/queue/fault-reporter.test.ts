/** What the log is told of the queue: each fault once in a while, and a lost database once for all loops together. */
import t from 'tap'
import { faultReporter } from '../../../db/queue/boss.ts'

/** Faults as pg-boss tells of them: plain objects, each naming the loop. */
const fault = (message: string, loop: number, code?: string) => ({
  message: `${message} (Queue: deliver-email, Worker: ${loop})`,
  ...(code ? { code } : {}),
})

t.test('a database that is away is told once for all loops, whatever the words', async (t) => {
  const told: Error[] = []
  const tell = faultReporter((error) => told.push(error))
  for (let loop = 0; loop < 10; loop++) {
    tell(fault('connect ECONNREFUSED 127.0.0.1:5432', loop, 'ECONNREFUSED'))
    tell(fault('Connection terminated unexpectedly', loop))
    tell(fault('the database system is starting up', loop, '57P03'))
  }
  t.match(told, [{ message: 'connect ECONNREFUSED 127.0.0.1:5432', code: 'ECONNREFUSED' }])
  t.equal(told.length, 1)
})

t.test('other faults are told each, once for all loops', async (t) => {
  const told: string[] = []
  const tell = faultReporter(({ message }) => told.push(message))
  for (let loop = 0; loop < 3; loop++) {
    tell(fault('permission denied', loop, '42501'))
    tell(fault('out of patience', loop))
  }
  t.strictSame(told, ['permission denied', 'out of patience'])
})
