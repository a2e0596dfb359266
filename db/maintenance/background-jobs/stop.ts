/** Stops a background job between two slices. The remaining rows don't change. */
import { type By, record } from '../../accounts/audit/record.ts'
import {
  type BackgroundJobRow,
  backgroundJobById,
  endBackgroundJob,
  lockBackgroundJob,
} from './background-jobs.sql.ts'

/** The last parts of kinds whose rows don't depend on each other. An import or an erasure always has to finish. */
const STOPPABLE = /\.(requeue(_apart|_matching)?|delete(_apart)?|replay|redrive|lift)$/

export const isStoppable = ({ kind, finished_at }: Pick<BackgroundJobRow, 'kind' | 'finished_at'>): boolean =>
  finished_at === null && STOPPABLE.test(kind)

/** Returns who stopped a job, or null. */
export const stoppedBy = ({ result }: Pick<BackgroundJobRow, 'result'>): string | null =>
  typeof result.stopped_by === 'string' ? result.stopped_by : null

const formatProgress = ({ done, total }: BackgroundJobRow): string =>
  total === null ? `${done}` : `${done} of ${total}`

/**
 * Waits for the running slice, then stops the job.
 * @param team its team. Null: any, for operators.
 * @returns the job, or null if it doesn't exist, has finished, or can't be stopped.
 */
export async function stopBackgroundJob(by: By, team: string | null, id: string) {
  const { tx, now, actor } = by
  const known = await backgroundJobById(tx, team, id)
  const job = known && isStoppable(known) ? await lockBackgroundJob(tx, id) : null
  if (!job) return null
  const ended = await endBackgroundJob(tx, id, { ...job.result, stopped_by: actor }, now)
  const entry = { action: 'job.stop', subject: job.kind, detail: formatProgress(job) }
  await record(by, { team_id: job.team_id, ...entry })
  return ended
}
