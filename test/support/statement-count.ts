/** Counts the statements of some work. */
import type { Database, Tx } from '../../db/postgres/pool.ts'

const QUERIES: ReadonlySet<unknown> = new Set([
  'any',
  'one',
  'maybeOne',
  'query',
  'exists',
] satisfies (keyof Tx)[])

/** Returns the number of statements that some work executes, in a separate transaction. */
export const statementsOf = (database: Database, work: (tx: Tx) => Promise<unknown>): Promise<number> =>
  database.transaction(async (tx) => {
    let count = 0
    const counting = new Proxy<Tx>(tx, {
      get(target, name, self) {
        if (QUERIES.has(name)) count += 1
        return Reflect.get(target, name, self)
      },
    })
    await work(counting)
    return count
  })
