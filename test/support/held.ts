/** A transaction that stays open until the test commits it. */
import type { Test } from 'tap'
import type { Database, Tx } from '../../db/postgres/pool.ts'

type Act = (tx: Tx) => Promise<unknown>

/**
 * Starts a transaction and runs `act` in it.
 * @returns a function that commits it, after another optional step. If the test fails, it is committed at the
 * end.
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
