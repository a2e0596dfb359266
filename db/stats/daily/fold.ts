/** Adds deltas to the stats of days, hours and broadcasts and to the counts of topics, one transaction per batch. */
import { foldTopicCounts } from '../../audience/contacts/topic-counts.sql.ts'
import type { Database } from '../../postgres/pool.ts'
import { deleteHours, foldDeltas, lockStats } from './stats.sql.ts'

const DAY = 86_400_000
const FOLD_BATCH = 20_000

/** Returns midnight UTC, this many days ago. */
export const dayBefore = (now: Date, days: number): Date =>
  new Date(Math.floor(now.getTime() / DAY) * DAY - days * DAY)

/** Folds all deltas stored so far, and deletes hours that are too old to be shown. */
export async function foldStats(database: Database): Promise<void> {
  for (const fold of [foldDeltas, foldTopicCounts, deleteHours]) {
    let folded: number
    do {
      folded = await database.transaction(async (tx) => {
        await lockStats(tx)
        return fold(tx, FOLD_BATCH)
      })
    } while (folded >= FOLD_BATCH)
  }
}
