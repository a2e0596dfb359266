/** The log of queue errors: each error once in a while, and a database outage once for all loops. */
import { faultReporter } from '../../../db/queue/fault-reporter.ts'
import t from '../../support/tap.ts'

/** Errors as pg-boss reports them: plain objects that name the loop. */
const fault = (message: string, loop: number, code?: string) => ({
  message: `${message} (Queue: deliver-email, Worker: ${loop})`,
  ...(code ? { code } : {}),
})

t.test('logs a database outage once for all loops', async (t) => {
  const logged: Error[] = []
  const report = faultReporter((error) => logged.push(error))
  for (let loop = 0; loop < 10; loop++) {
    report(fault('connect ECONNREFUSED 127.0.0.1:5432', loop, 'ECONNREFUSED'))
    report(fault('Connection terminated unexpectedly', loop))
    report(fault('the database system is starting up', loop, '57P03'))
  }
  t.match(logged, [{ message: 'connect ECONNREFUSED 127.0.0.1:5432', code: 'ECONNREFUSED' }])
  t.equal(logged.length, 1)
})

t.test('other faults are logged each, once for all loops', async (t) => {
  const logged: string[] = []
  const report = faultReporter(({ message }) => logged.push(message))
  for (let loop = 0; loop < 3; loop++) {
    report(fault('permission denied', loop, '42501'))
    report(fault('out of patience', loop))
  }
  t.strictSame(logged, ['permission denied', 'out of patience'])
})
