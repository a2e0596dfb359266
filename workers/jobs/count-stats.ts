/** Adds deltas to the stats of days and broadcasts, and checks the reputation of teams. */
import { judgeTeams } from '../../db/messages/bulk-pause.ts'
import { foldStats } from '../../db/stats/daily/fold.ts'
import type { WorkerDeps } from '../deps.ts'

export async function countStats({
  database,
  queue,
  reputation,
}: Pick<WorkerDeps, 'database' | 'reputation'> & {
  queue: Pick<WorkerDeps['queue'], 'enqueue'>
}): Promise<void> {
  await foldStats(database)
  await judgeTeams({ database, queue }, reputation)
}
