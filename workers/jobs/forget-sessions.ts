/** Deletes session tokens that have expired: nobody can use them any more, revoked or not. */
import { deleteExpiredSessions } from '../../db/accounts/credentials/credentials.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import type { WorkerDeps } from '../deps.ts'

const LOT = 10_000

/** Deletes up to ten thousand sessions at a time, until none is left. */
export async function forgetSessions({ database, log }: WorkerDeps): Promise<void> {
  const now = await serviceTime(database)
  let forgotten = 0
  for (;;) {
    const lot = await deleteExpiredSessions(database, now, LOT)
    forgotten += lot
    if (lot < LOT) break
  }
  if (forgotten > 0) log.info({ forgotten }, 'deleted expired sessions')
}
