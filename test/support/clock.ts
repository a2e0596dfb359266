/** Sets the database's clock for tests. Rates, quotas and periods only use that clock (DECISIONS: Bucket). */
import { sql } from 'slonik'
import type { Database } from '../../db/postgres/pool.ts'

const replaced = (body: ReturnType<typeof sql.literalValue>) => sql.unsafe`
  create or replace function service_time() returns timestamptz language sql volatile as ${body}`

/** Stops the clock of a test's database at a time. */
export const stopClock = async (database: Database, time: Date): Promise<void> =>
  void (await database.query(replaced(sql.literalValue(`select timestamptz '${time.toISOString()}'`))))

/** Moves the clock ahead by these seconds, so that waits end earlier. */
export const shiftClock = async (database: Database, seconds: number): Promise<void> =>
  void (await database.query(
    replaced(sql.literalValue(`select clock_timestamp() + interval '${seconds} s'`)),
  ))

/** Restores the real clock. */
export const runClock = async (database: Database): Promise<void> =>
  void (await database.query(replaced(sql.literalValue('select clock_timestamp()'))))
