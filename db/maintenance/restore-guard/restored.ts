/**
 * Pauses a restored copy of the database, and resumes all of it with one action (DECISIONS: A restored copy).
 * Anything paused before the copy was made stays paused.
 */
import { type By, record } from '../../accounts/audit/record.ts'
import { pauseUnderWay, resumeRestoredBroadcasts } from '../../messages/broadcasts/restored.ts'
import { plural } from '../../plural.ts'
import type { At } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { idNow } from '../../process/ids.ts'
import { DELIVERY_QUEUES, deletePausesFor, RESTORED, storePauses } from '../../queue/pauses.sql.ts'
import type { Producer } from '../../queue/producer.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { claimDatabase, lockIdentity } from './restore-guard.sql.ts'

/**
 * Pauses deliveries and active broadcasts until they are resumed manually.
 * @param home_id the identity that was found. Does nothing if another process has decided since.
 */
export async function stopCopy(tx: At['tx'], home_id: string | null): Promise<boolean> {
  const home = await lockIdentity(tx)
  if (home === null || home.home_id !== home_id) return false
  const now = await serviceTime(tx)
  await storePauses(tx, DELIVERY_QUEUES, { reason: RESTORED }, now)
  await pauseUnderWay(tx, RESTORED, now)
  await claimDatabase(tx, idNow(), 'restored')
  return true
}

/** Resumes everything paused by the restore. @returns the resumed queues and broadcasts. */
export async function resumeRestored({ queue, ...by }: By & { queue: Pick<Producer, 'reenqueue'> }) {
  const { tx, now } = by
  const home = await lockIdentity(tx)
  // No process has run on this copy yet. It is paused first, so that there is only one way to resume.
  if (home?.is_home === false) await stopCopy(tx, home.home_id)
  const queues = await deletePausesFor(tx, RESTORED)
  const broadcasts = await resumeRestoredBroadcasts({ tx, now, queue }, RESTORED)
  for (const each of queues) await wakeOnCommit(tx, each)
  const detail = `${plural(queues.length, 'queue')}, ${plural(broadcasts, 'broadcast')}`
  if (queues.length + broadcasts > 0)
    await record(by, { team_id: null, action: 'queue.resume', subject: RESTORED, detail })
  return { queues, broadcasts }
}
