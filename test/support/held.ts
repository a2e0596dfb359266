/** A transaction that stays open for as long as a test likes. */
import type { Test } from 'tap'
import type { Database, Tx } from '../../db/postgres/pool.ts'

type Act = (tx: Tx) => Promise<unknown>

/**
 * Starts one and runs `act` in it.
 * @returns a function that commits it, after an optional last act. A failing test commits it at its end.
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
