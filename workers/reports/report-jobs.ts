/**
 * The reports of claimed jobs. A hook stores one job for all reports of a commit. After a failure or a lost worker,
 * each report gets its own job, to be retried and dead-lettered separately. So does each waiting report.
 */
import type { Database, Tx } from '../../db/postgres/pool.ts'
import type { Consumer } from '../../db/queue/boss.ts'
import type { Ends, FetchedJob } from '../../db/queue/claims.ts'
import type { End } from '../../db/queue/jobs.ts'
import type { Batch } from '../batches/batches.ts'

type IngestJob = FetchedJob<'ingest-report'>
/** A report, and the seconds until its next attempt. */
export type WaitingReport = { id: string; wait: number }

type Settle = Batch<'ingest-report'>['settle']
type Queue = Pick<Consumer, 'reenqueue' | 'wake'>

export const reportIds = ({ data: { report_id, reports = [report_id] } }: IngestJob): string[] => reports

/** True if a job may have several reports. */
export const isShared = ({ data: { reports } }: IngestJob): boolean => reports !== undefined

/** True if a worker was lost with several reports, or failed to ingest them. */
export const isToSeparate = (job: IngestJob): boolean => isShared(job) && job.retryCount > 0

/** Divides items into parts with a total size of at most `most` each. A larger item is a separate part. */
export function toParts<T>(items: readonly T[], sizeOf: (item: T) => number, most: number): T[][] {
  const parts: T[][] = []
  let left = 0
  for (const item of items) {
    const size = sizeOf(item)
    if (parts.length === 0 || left < size) {
      parts.push([])
      left = most
    }
    parts.at(-1)?.push(item)
    left -= size
  }
  return parts
}

/** Ends jobs, with the last statements of the caller's transaction. */
export async function endJobs(
  { tx, queue, settle }: { tx: Tx; queue: Pick<Queue, 'reenqueue'>; settle: Settle },
  jobs: readonly IngestJob[],
  waiting: readonly WaitingReport[],
): Promise<void> {
  const waits = new Map(waiting.map(({ id, wait }) => [id, wait]))
  const [shared, single] = [jobs.filter(isShared), jobs.filter((job) => !isShared(job))]
  const apart = shared.flatMap(reportIds).flatMap((report_id) => {
    const seconds = waits.get(report_id)
    return seconds === undefined ? [] : [{ payload: { report_id }, seconds }]
  })
  await queue.reenqueue(
    tx,
    'ingest-report',
    apart.map(({ payload }) => payload),
    apart.map(({ seconds }) => seconds),
  )
  const ends: Ends<'ingest-report'> = new Map([
    ...shared.map((job): [IngestJob, End] => [job, { end: 'completed' }]),
    ...single.map((job): [IngestJob, End] => {
      const seconds = waits.get(job.data.report_id)
      return [job, seconds === undefined ? { end: 'completed' } : { end: 'snoozed', seconds }]
    }),
  ])
  await settle(tx, ends, true)
}

/** Replaces shared jobs. Each report gets its own job. */
export async function separate(
  jobs: readonly IngestJob[],
  settle: Settle,
  { database, queue }: { database: Database; queue: Queue },
): Promise<void> {
  if (jobs.length === 0) return
  const waiting = jobs.flatMap(reportIds).map((id) => ({ id, wait: 0 }))
  await database.transaction((tx) => endJobs({ tx, queue, settle }, jobs, waiting))
  queue.wake('ingest-report')
}
