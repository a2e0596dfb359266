/** Pauses and resumes a broadcast for its team's reputation (messages/bulk-pause.ts). */
import { readBulkPause } from '../../accounts/teams/reputation.sql.ts'
import { BULK_PAUSE_REASONS, type BulkPause } from '../../accounts/teams/reputation.ts'
import { BROADCAST_QUEUES } from '../../channels/channels.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Producer } from '../../queue/producer.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { type BroadcastRow, saveAutoPause } from './broadcasts.sql.ts'
import { changeState } from './change-state.ts'
import { bringEmailsForward } from './waiting.sql.ts'

export const isPausedForTeam = ({ state, state_reason }: BroadcastRow): boolean =>
  state === 'paused' && BULK_PAUSE_REASONS.some((reason) => reason === state_reason)

export async function pauseForTeam(tx: Tx, row: BroadcastRow, pause: BulkPause, now: Date) {
  const { reason, sent, count, limit } = pause
  await saveAutoPause(tx, row, { left: sent, count, limit })
  return changeState(tx, row, { from: ['sending'], to: 'paused', reason }, now)
}

/** Pauses a locked broadcast that has just started if its team's bulk email is paused. @returns the current row. */
export async function pauseWithTeam(tx: Tx, row: BroadcastRow, now: Date): Promise<BroadcastRow> {
  if (row.state !== 'sending') return row
  const paused = await readBulkPause(tx, row.team_id)
  return (paused && (await pauseForTeam(tx, row, paused.pause, now))) ?? row
}

/** Wakes the workers that deliver broadcasts. */
export async function wakeBroadcasts(tx: Tx): Promise<void> {
  for (const { job } of BROADCAST_QUEUES) await wakeOnCommit(tx, job)
}

/** Enqueues the expansion again, and checks its waiting emails now. */
export async function expandAgain(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'reenqueue'> },
  row: BroadcastRow,
): Promise<void> {
  const { team_id, id: broadcast_id } = row
  await queue.reenqueue(tx, 'expand-broadcast', [{ team_id, broadcast_id }])
  await bringEmailsForward(tx, row)
  await wakeBroadcasts(tx)
}

/** Resumes a locked broadcast that was paused for its team. */
export async function goOn(
  by: { tx: Tx; queue: Pick<Producer, 'reenqueue'> },
  row: BroadcastRow,
  now: Date,
): Promise<void> {
  await changeState(by.tx, row, { from: ['paused'], to: 'sending' }, now)
  await expandAgain(by, row)
}
