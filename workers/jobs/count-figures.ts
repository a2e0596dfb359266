/** Folds what moved into the figures of days and of broadcasts. */
import { foldFigures } from '../../db/figures/daily/fold.ts'
import type { WorkerDeps } from '../deps.ts'

/** Runs every minute. */
export async function countFiguresJob({
  database,
  clock,
}: Pick<WorkerDeps, 'database' | 'clock'>): Promise<void> {
  await foldFigures(database, clock())
}
