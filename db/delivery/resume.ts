/**
 * Gives the waiting messages of resumed teams new jobs, because workers delete the jobs of a suspended team. Each
 * slice is a transaction. Slices alternate between teams, so that a large team delays no other.
 */
import { lockPass, movePass, type Pass } from '../accounts/teams/resumed.sql.ts'
import { DELIVERIES } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/producer.ts'
import { lostOfTeam } from './sweep.sql.ts'

const RESUME_BATCH = 500

/** Does the next slice of a pass. @returns true if it did one. */
export async function resumeSlice(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue'> },
  pass: Pass,
): Promise<boolean> {
  const after = await lockPass(tx, pass)
  if (after === null) return false
  const channel = DELIVERIES.find(({ job }) => job === pass.queue)
  // The workers of the newer version handle it.
  if (!channel) return false
  const { team_id } = pass
  const { lost, last } = await lostOfTeam(tx, channel, { team_id, after, size: RESUME_BATCH })
  const payloads = lost.map(({ id, sender }) => channel.payload.of({ team_id, id, sender }))
  await queue.enqueue(tx, channel.job, payloads)
  await movePass(tx, pass, last)
  return true
}
