/** The database's time, the only clock for rate, quota, period and pauses (DECISIONS: Bucket). */
import { sql } from 'slonik'
import { string } from 'yup'
import type { Tx } from './pool.ts'
import { row } from './rows.ts'

const timeRow = row({ now: string() })

/** Returns the current time, for callers that don't lock a row that includes it. */
export const serviceTime = async (tx: Tx): Promise<Date> =>
  new Date(await tx.oneFirst(sql.prepared('service_time', timeRow)`select service_time() as now`))
