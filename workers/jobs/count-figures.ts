/** Counts the figures that charts are drawn from: today and yesterday, and once an hour the week before. */
import { countFigures } from '../../db/figures/count.ts'
import type { WorkerDeps } from '../deps.ts'

/** Runs every five minutes. */
export async function countFiguresJob({
  database,
  clock,
}: Pick<WorkerDeps, 'database' | 'clock'>): Promise<void> {
  const now = clock()
  await countFigures(database, now, now.getUTCMinutes() < 5 ? 8 : 2)
}
