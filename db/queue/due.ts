/**
 * Checks whether queues have due jobs, with one statement for all queues that check at the same time. The polls of a
 * process coincide (claims.ts), so that an idle worker sends one query per second.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** Timers for the same time end some milliseconds apart. Polls within this time share a query. */
const SAME_MOMENT_MS = 20

type Question = { jobs: Set<string>; answer: Promise<ReadonlySet<string>> }

/**
 * Returns a function that checks whether a job of a queue is due. @param queuesDue which of these queues have one.
 */
export function createDueQuestions(queuesDue: (jobs: readonly string[]) => Promise<ReadonlySet<string>>) {
  let next: Question | null = null

  const collect = (): Question => {
    const jobs = new Set<string>()
    const answer = sleep(SAME_MOMENT_MS).then(() => {
      next = null
      return queuesDue([...jobs])
    })
    return { jobs, answer }
  }

  return async (job: string): Promise<boolean> => {
    next ??= collect()
    next.jobs.add(job)
    return (await next.answer).has(job)
  }
}
