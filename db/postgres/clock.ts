/**
 * The time as the database has it, for processes whose own clocks may be wrong: pauses, tries and timelines are shared
 * by all of them. Promises: costs one statement a minute. While the database is away time goes on from its last
 * answer, at the pace of a clock that nobody sets.
 */
import { sql } from 'slonik'
import { number, object } from 'yup'
import type { Database } from './pool.ts'

/** How often it is asked for again, in milliseconds. */
const EVERY = 60_000
/** An answer that took longer than this says too little about now, in milliseconds. */
const TOO_LATE = 1_000

const timeRow = object({ now: number().defined() })

/** @returns the time, whenever it is called. @throws Error when the database cannot be asked at first. */
export async function followClock(
  database: Database,
  { every = EVERY }: { every?: number } = {},
): Promise<() => Date> {
  // What the database's time is ahead of the milliseconds since this process began.
  let ahead: number | undefined
  const ask = async (): Promise<void> => {
    const asked = performance.now()
    const { now } = await database.one(sql.type(timeRow)`
      select extract(epoch from service_time())::float8 * 1000 as now`)
    const took = performance.now() - asked
    if (ahead === undefined || took < TOO_LATE) ahead = now - asked - took / 2
  }
  await ask()
  setInterval(() => void ask().catch(() => {}), every).unref()
  return () => new Date(performance.now() + (ahead ?? 0))
}
