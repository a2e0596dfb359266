/** Groups the deferred jobs of a queue by their last response. */

import { DELIVERIES } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { deferredJobs } from '../queue/deferred.sql.ts'
import type { JobName } from '../queue/jobs.ts'
import { responsesTo } from './deferrals.sql.ts'

export type DeferredJobs = {
  /** Null if no attempt had a response. */
  response: string | null
  jobs: number
  /** The highest number of attempts of a job. */
  attempts: number
  /** When the first one is due, and its ID. */
  due_at: string
  id: string
}

/** Returns the last responses of the deferred jobs that are due first, the most frequent first. */
export async function listDeferrals(tx: Tx, job: JobName, most: number): Promise<DeferredJobs[]> {
  const waiting = await deferredJobs(tx, job, most)
  const channel = DELIVERIES.find((each) => each.job === job)
  const refs = waiting.flatMap(({ id, team_id }) => (team_id === null ? [] : [{ id, team_id }]))
  const known = channel && refs.length > 0 ? await responsesTo(tx, channel, refs) : []
  const responses = new Map(known.map((each) => [each.id, each]))
  const found = waiting.map(({ id, due_at, attempts, reason }) => ({
    ...{ id, due_at, response: reason, attempts },
    ...responses.get(id),
  }))
  const groups = [...Map.groupBy(found, ({ response }) => response).values()]
  return groups
    .flatMap((group) => {
      const attempts = Math.max(...group.map((each) => each.attempts))
      return group.slice(0, 1).map((first) => ({ ...first, jobs: group.length, attempts }))
    })
    .sort((one, other) => other.jobs - one.jobs)
}
