/** Deletes expired session tokens, revoked or not. */
import { deleteExpiredSessions } from '../../db/accounts/credentials/credentials.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import { deleteInBatches } from '../delete-in-batches.ts'
import type { WorkerDeps } from '../deps.ts'

export async function purgeSessions({ database, log }: WorkerDeps): Promise<void> {
  const now = await serviceTime(database)
  const deleted = await deleteInBatches(10_000, (most) => deleteExpiredSessions(database, now, most))
  if (deleted > 0) log.info({ deleted }, 'deleted expired sessions')
}
