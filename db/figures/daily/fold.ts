/**
 * Keeps the figures of days and of broadcasts, and the counts of topics, up: folds what moved into them.
 * Promises: each lot is a transaction of its own; a figure has the same sum before and after. Must not count rows, but
 * for the last days once where a migration asks for it.
 */
import { foldTopicCounts } from '../../audience/contacts/topic-counts.sql.ts'
import { CHANNELS } from '../../channels/channels.sql.ts'
import type { Database } from '../../postgres/pool.ts'
import { broadcastsBegun, countBroadcast } from './broadcasts.sql.ts'
import { countDay, foldMoves, takeRecount, takeTurn } from './figures.sql.ts'

const DAY = 86_400_000
/** Moves of one transaction. */
const LOT = 20_000
/** Days that reports still move much of. */
const LATE = 8

/** Midnight UTC, this many days ago. */
export const dayBefore = (now: Date, days: number): Date =>
  new Date(Math.floor(now.getTime() / DAY) * DAY - days * DAY)

async function recount(database: Database, now: Date): Promise<void> {
  for (let ago = 0; ago < LATE; ago++) {
    for (const channel of CHANNELS) {
      await database.transaction(async (tx) => {
        await takeTurn(tx)
        await countDay(tx, channel, dayBefore(now, ago))
      })
    }
  }
  for (const key of await broadcastsBegun(database)) {
    await database.transaction(async (tx) => {
      await takeTurn(tx)
      await countBroadcast(tx, key)
    })
  }
}

/** Folds all that has moved by now. */
export async function foldFigures(database: Database, now: Date): Promise<void> {
  if (await takeRecount(database)) await recount(database, now)
  for (const fold of [foldMoves, foldTopicCounts]) {
    let folded: number
    do {
      folded = await database.transaction(async (tx) => {
        await takeTurn(tx)
        return fold(tx, LOT)
      })
    } while (folded >= LOT)
  }
}
