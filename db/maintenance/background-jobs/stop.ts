/** Stops a background job between two slices. Rows that it hasn't reached stay as they are. */
import { type By, record } from '../../accounts/audit/record.ts'
import {
  type BackgroundJobRow,
  backgroundJobById,
  endBackgroundJob,
  lockBackgroundJob,
} from './background-jobs.sql.ts'
import type { BackgroundJobKind } from './kinds.ts'

/** The kinds whose rows don't depend on each other. An import or an erasure always has to finish. */
const STOPPABLE: readonly string[] = [
  'suppression.lift',
  'email.requeue',
  'email.requeue_apart',
  'email.delete',
  'email.delete_apart',
  'whatsapp.requeue',
  'webhook.requeue',
  'webhook.requeue_matching',
  'webhook.replay',
  'queue.redrive',
] satisfies BackgroundJobKind[]

export const isStoppable = ({ kind, finished_at }: Pick<BackgroundJobRow, 'kind' | 'finished_at'>): boolean =>
  finished_at === null && STOPPABLE.includes(kind)

/** Returns who stopped a job, or null. */
export const stoppedBy = ({ result }: Pick<BackgroundJobRow, 'result'>): string | null =>
  typeof result.stopped_by === 'string' ? result.stopped_by : null

const formatProgress = ({ done, total }: BackgroundJobRow): string =>
  total === null ? `${done}` : `${done} of ${total}`

/**
 * Stops a job. Waits for the slice that is running.
 * @param team its team. Null: any, for operators.
 * @returns the job, or null if it doesn't exist, has finished, or can't be stopped.
 */
export async function stopBackgroundJob(
  by: By,
  team: string | null,
  id: string,
): Promise<BackgroundJobRow | null> {
  const { tx, now, actor } = by
  const known = await backgroundJobById(tx, team, id)
  const job = known && isStoppable(known) ? await lockBackgroundJob(tx, id) : null
  if (!job) return null
  const ended = await endBackgroundJob(tx, id, { ...job.result, stopped_by: actor }, now)
  const entry = { action: 'job.stop', subject: job.kind, detail: formatProgress(job) }
  await record(by, { team_id: job.team_id, ...entry })
  return ended
}
