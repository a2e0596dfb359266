/**
 * Keeps the figures of days, hours and broadcasts, and the counts of topics, up: folds the deltas into them.
 * Promises: each batch is a transaction of its own; a figure has the same sum before and after. Must not count rows.
 */
import { foldTopicCounts } from '../../audience/contacts/topic-counts.sql.ts'
import type { Database } from '../../postgres/pool.ts'
import { deleteHours, foldDeltas, lockFigures } from './stats.sql.ts'

const DAY = 86_400_000
/** Deltas of one transaction. */
const FOLD_BATCH = 20_000

/** Midnight UTC, this many days ago. */
export const dayBefore = (now: Date, days: number): Date =>
  new Date(Math.floor(now.getTime() / DAY) * DAY - days * DAY)

/** Folds all deltas stored so far, and forgets hours that are too old to be shown. */
export async function foldFigures(database: Database): Promise<void> {
  for (const fold of [foldDeltas, foldTopicCounts, deleteHours]) {
    let folded: number
    do {
      folded = await database.transaction(async (tx) => {
        await lockFigures(tx)
        return fold(tx, FOLD_BATCH)
      })
    } while (folded >= FOLD_BATCH)
  }
}
