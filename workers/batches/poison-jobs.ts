/**
 * Runs jobs that may have crashed their workers one by one, so that they don't affect others. A job is suspect after
 * its worker was lost twice. One loss can be a coincidence.
 */
import type { Tx } from '../../db/postgres/pool.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import { oftenLost } from '../../db/queue/jobs.sql.ts'
import type { JobName } from '../../db/queue/jobs.ts'

const POISON_AFTER_LOSSES = 2

export type Portion<J extends JobName> = { jobs: FetchedJob<J>[]; alone: boolean }

/** Returns each job as a separate portion, in random order, so that the same job isn't always first. */
export const oneByOne = <J extends JobName>(jobs: readonly FetchedJob<J>[]): Portion<J>[] =>
  jobs.map((each) => ({ jobs: [each], alone: true })).sort(() => Math.random() - 0.5)

/**
 * Splits claimed jobs into one portion of unsuspected jobs and one per suspect. Jobs that were never lost need no
 * query.
 */
export async function splitIntoPortions<J extends JobName>(
  tx: Tx,
  job: J,
  jobs: readonly FetchedJob<J>[],
): Promise<Portion<J>[]> {
  const ids = jobs.filter(({ retryCount }) => retryCount >= POISON_AFTER_LOSSES).map(({ id }) => id)
  const suspects = ids.length === 0 ? new Set<string>() : await oftenLost(tx, job, ids, POISON_AFTER_LOSSES)
  const others = jobs.filter(({ id }) => !suspects.has(id))
  const alone = oneByOne(jobs.filter(({ id }) => suspects.has(id)))
  return others.length === 0 ? alone : [{ jobs: others, alone: false }, ...alone]
}
