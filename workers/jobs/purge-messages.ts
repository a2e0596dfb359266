/** Deletes events, bodies and rows of messages as set by RETENTION_DAYS_, and the entries of killed processes. */

import { purgeMessages as purge } from '../../db/maintenance/retention/purge.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import { deleteSilentProcesses } from '../../db/stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S } from '../../db/stats/fleet/fleet.ts'
import type { WorkerDeps } from '../deps.ts'

export async function purgeMessages({ database, retention, log }: WorkerDeps): Promise<void> {
  await deleteSilentProcesses(database, LISTED_FOR_S)
  const deleted = await purge(database, retention, await serviceTime(database))
  if (Object.values(deleted).some((count) => count > 0)) log.info(deleted, 'deleted expired data')
}
