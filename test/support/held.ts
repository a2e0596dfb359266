/** A transaction that stays open for as long as a test likes. */
import type { Test } from 'tap'
import type { Database, Tx } from '../../db/postgres/pool.ts'

/** Begins one and does `act` in it. @returns how it is committed; a test that fails commits it at its end. */
export async function hold(t: Test, database: Database, act: (tx: Tx) => Promise<unknown>) {
  const [done, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const whole = database.transaction(async (tx) => {
    await act(tx)
    done.resolve()
    await end.promise
  })
  const commit = (): Promise<void> => {
    end.resolve()
    return whole
  }
  t.teardown(async () => await commit().catch(() => {}))
  await Promise.race([done.promise, whole])
  return commit
}
