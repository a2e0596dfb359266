/**
 * Finds the jobs that may be what kills workers, so that they are tried alone and take no other with them.
 * A job is suspect once its workers were lost with it twice: one loss may be anybody's, two are rarely chance.
 */
import type { Tx } from '../db/postgres/pool.ts'
import type { FetchedJob } from '../db/queue/claims.ts'
import { oftenLost } from '../db/queue/jobs.sql.ts'
import type { JobName } from '../db/queue/jobs.ts'

const LOST = 2

/** Those of these claimed jobs that are suspect. Asks nothing for jobs that were never lost, which are nearly all. */
export async function suspectsAmong<J extends JobName>(
  tx: Tx,
  job: J,
  jobs: readonly FetchedJob<J>[],
): Promise<FetchedJob<J>[]> {
  const ids = jobs.filter(({ retryCount }) => retryCount >= LOST).map(({ id }) => id)
  if (ids.length === 0) return []
  const lost = await oftenLost(tx, job, ids, LOST)
  return jobs.filter(({ id }) => lost.has(id))
}
