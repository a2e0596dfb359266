/** The database's clock, as tests choose it: rate, quota and period know no other (DECISIONS: Bucket). */
import { sql } from 'slonik'
import type { Database } from '../../db/postgres/pool.ts'

const replaced = (body: ReturnType<typeof sql.literalValue>) => sql.unsafe`
  create or replace function service_time() returns timestamptz language sql volatile as ${body}`

/** Stops the clock of the test's own database at a time. */
export const stopClock = async (database: Database, time: Date): Promise<void> =>
  void (await database.query(replaced(sql.literalValue(`select timestamptz '${time.toISOString()}'`))))

/** Moves it ahead by these seconds, so that timed things end earlier. */
export const shiftClock = async (database: Database, seconds: number): Promise<void> =>
  void (await database.query(
    replaced(sql.literalValue(`select clock_timestamp() + interval '${seconds} s'`)),
  ))

/** Lets it run again, as it does outside of tests. */
export const runClock = async (database: Database): Promise<void> =>
  void (await database.query(replaced(sql.literalValue('select clock_timestamp()'))))
