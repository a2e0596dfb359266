/** Folds what moved into the figures that charts are drawn from. */
import { foldFigures } from '../../db/figures/fold.ts'
import type { WorkerDeps } from '../deps.ts'

/** Runs every minute. */
export const countFiguresJob = async ({
  database,
  clock,
}: Pick<WorkerDeps, 'database' | 'clock'>): Promise<void> => foldFigures(database, clock())
