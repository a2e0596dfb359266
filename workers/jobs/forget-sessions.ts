/** Deletes session tokens that have expired: nobody can use them any more, revoked or not. */
import { deleteExpiredSessions } from '../../db/accounts/credentials/credentials.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import type { WorkerDeps } from '../deps.ts'

const FORGET_BATCH = 10_000

/** Deletes up to ten thousand sessions at a time, until none is left. */
export async function forgetSessions({ database, log }: WorkerDeps): Promise<void> {
  const now = await serviceTime(database)
  let forgotten = 0
  for (;;) {
    const batch = await deleteExpiredSessions(database, now, FORGET_BATCH)
    forgotten += batch
    if (batch < FORGET_BATCH) break
  }
  if (forgotten > 0) log.info({ forgotten }, 'deleted expired sessions')
}
