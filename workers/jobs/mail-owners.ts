/**
 * Emails a team's owners about problems that need them (db/messages/notice.ts), one email per owner. A notice that
 * can't be accepted is logged.
 */
import { RequestError } from '../../db/errors.ts'
import { emailOwners } from '../../db/messages/notice.ts'
import type { End } from '../../db/queue/jobs.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

const DONE: End = { end: 'completed' }

const WHY = {
  'no address': 'DASHBOARD_FROM is not set, so owners aren’t notified of problems by email',
  'no domain':
    'no team has verified the domain of DASHBOARD_FROM, so owners aren’t notified of problems by email',
}

export async function mailOwners(
  { jobs, settle }: Batch<'mail-owners'>,
  { database, queue, versions, notices, log }: WorkerDeps,
): Promise<void> {
  for (const job of jobs) {
    try {
      const written = await database.transaction(async (tx) => {
        const count = await emailOwners({ tx, queue, versions }, job.data, notices)
        await settle(tx, new Map([[job, DONE]]))
        return count
      })
      if (typeof written === 'string') log.warn({ team_id: job.data.team_id }, WHY[written])
      else if (written > 0) queue.wake('deliver-email')
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      log.error({ team_id: job.data.team_id, code: error.code }, 'failed to notify owners by email')
      await database.transaction((tx) => settle(tx, new Map([[job, DONE]])))
    }
  }
}
