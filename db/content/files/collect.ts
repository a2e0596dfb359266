/**
 * Deletes the bytes of unused attachments and expired uploads. Keeps everything from the last day, and everything
 * that an unfinished email or an active upload needs. A file is orphaned and its storage refunded under the team's
 * account lock. A concurrent use either keeps the file or stores its bytes again.
 */

import { lockAccount, saveAccount } from '../../accounts/teams/limits.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { firstIdAt } from '../../validation/ids.ts'
import {
  deleteExpiredUploads,
  deleteOrphans,
  detachFiles,
  orphanDetached,
  orphanUnused,
  releaseFiles,
  unusedFiles,
} from './collect.sql.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Files per search, per transaction, and per statement that deletes bytes (up to 25 MiB each). */
const SEARCH_BATCH = 2_000
const COLLECT_BATCH = 200
const DELETE_BATCH = 10

async function refund(tx: Tx, teamId: string, orphaned: readonly { size: number }[]): Promise<number> {
  if (orphaned.length === 0) return 0
  // Read again, because earlier code in this transaction may have changed it.
  const account = await lockAccount(tx, teamId)
  account.used.storage -= orphaned.reduce((sum, { size }) => sum + size, 0)
  await saveAccount(tx, teamId, account)
  return orphaned.length
}

/** Deletes some orphaned files. @returns true if there may be more. */
export const deleteSomeOrphans = async (tx: Tx): Promise<boolean> =>
  (await deleteOrphans(tx, DELETE_BATCH)) === DELETE_BATCH

/** Deletes expired uploads, and files unused for `days` days, at least one. @returns the number of files. */
export async function collectFiles(database: Database, days: number, now: Date): Promise<number> {
  while ((await deleteExpiredUploads(database, COLLECT_BATCH)) === COLLECT_BATCH);
  while ((await releaseFiles(database, COLLECT_BATCH)) === COLLECT_BATCH);
  const before = new Date(now.getTime() - Math.max(1, days) * DAY)
  const accepted = firstIdAt(new Date(now.getTime() - HOUR))
  let total = 0
  for (;;) {
    const found = await unusedFiles(database, before, SEARCH_BATCH)
    let taken = 0
    for (const [teamId, files] of Map.groupBy(found, ({ team_id }) => team_id)) {
      const ids = files.map(({ id }) => id)
      for (let at = 0; at < ids.length; at += COLLECT_BATCH) {
        taken += await database.transaction(async (tx) => {
          await lockAccount(tx, teamId)
          return refund(
            tx,
            teamId,
            await orphanUnused(tx, teamId, ids.slice(at, at + COLLECT_BATCH), { before, accepted }),
          )
        })
      }
    }
    while (await deleteSomeOrphans(database));
    total += taken
    // The rest was just used, or belongs to the next run.
    if (found.length < SEARCH_BATCH || taken === 0) return total
  }
}

/**
 * Deletes the files of erased emails, except those that other emails need. The caller has locked the team's account.
 */
export async function eraseFiles(tx: Tx, teamId: string, emailIds: readonly string[]): Promise<void> {
  const contents = await detachFiles(tx, teamId, emailIds)
  if (contents.length > 0) await refund(tx, teamId, await orphanDetached(tx, teamId, contents))
}
