/**
 * Poison jobs: jobs that may be what kills workers. They are worked on one by one, so that they take no other with
 * them.
 * A job is suspect once its workers were lost with it twice: one loss may be anybody's, two are rarely chance.
 */
import type { Tx } from '../../db/postgres/pool.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import { oftenLost } from '../../db/queue/jobs.sql.ts'
import type { JobName } from '../../db/queue/jobs.ts'

const POISON_AFTER_LOSSES = 2

/** Claimed jobs that are worked on together; a suspect one is `alone`. */
export type Portion<J extends JobName> = { jobs: FetchedJob<J>[]; alone: boolean }

/** Each of the jobs alone, in any order, so that the same does not come first each time. */
export const oneByOne = <J extends JobName>(jobs: readonly FetchedJob<J>[]): Portion<J>[] =>
  jobs.map((each) => ({ jobs: [each], alone: true })).sort(() => Math.random() - 0.5)

/**
 * Splits claimed jobs: the unsuspected together, then each suspect alone. Jobs that were never lost, nearly all, cost
 * no query.
 */
export async function portionsOf<J extends JobName>(
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
