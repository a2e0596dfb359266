/** Folds what moved: into the figures that charts are drawn from, and into one move for each figure of a broadcast. */

import { foldFigures } from '../../db/figures/daily/fold.ts'
import { foldMoves } from '../../db/messages/broadcasts/skips.sql.ts'
import type { WorkerDeps } from '../deps.ts'

/** What a broadcast may have before it is worth folding. */
const MOST_MOVES = 100

/** Runs every minute. */
export async function countFiguresJob({
  database,
  clock,
}: Pick<WorkerDeps, 'database' | 'clock'>): Promise<void> {
  await foldMoves(database, MOST_MOVES)
  await foldFigures(database, clock())
}
