/** A connection pool for a test, separate from its service's. */
import { type Database, openDatabase } from '../../db/postgres/pool.ts'

/** Opens a pool that closes with the test. */
export async function openPool(
  t: { teardown(end: () => Promise<void>): unknown },
  ...[url, options]: Parameters<typeof openDatabase>
): Promise<Database> {
  const database = await openDatabase(url, options)
  t.teardown(() => database.end())
  return database
}
