/** A transaction that stays open for as long as a test likes. */
import type { Test } from 'tap'
import type { Database, Tx } from '../../db/postgres/pool.ts'

type Act = (tx: Tx) => Promise<unknown>

/**
 * Begins one and does `act` in it. @returns how it is committed, after a last act of its own if it has one; a test that
 * fails commits it at its end.
 */
export async function hold(t: Test, database: Database, act: Act) {
  const [done, end] = [Promise.withResolvers<void>(), Promise.withResolvers<Act>()]
  const whole = database.transaction(async (tx) => {
    await act(tx)
    done.resolve()
    const last = await end.promise
    await last(tx)
  })
  const commit = (last: Act = async () => {}): Promise<void> => {
    end.resolve(last)
    return whole
  }
  t.teardown(async () => await commit().catch(() => {}))
  await Promise.race([done.promise, whole])
  return commit
}
