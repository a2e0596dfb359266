/** Folds deltas into the figures of days and of broadcasts. */
import { foldFigures } from '../../db/stats/daily/fold.ts'
import type { WorkerDeps } from '../deps.ts'

/** Runs every minute. */
export const countFiguresJob = ({ database }: Pick<WorkerDeps, 'database'>): Promise<void> =>
  foldFigures(database)
