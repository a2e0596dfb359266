/**
 * Expands broadcasts into emails (db/messages/broadcasts/expand.ts). Each claim lasts a few seconds, so that many
 * broadcasts progress at the same time. A job ends in the transaction that found nothing left to do, so an immediate
 * resume isn't lost.
 */
import { BROADCAST_QUEUES } from '../../db/channels/channels.sql.ts'
import { type ExpansionStep, expandStep } from '../../db/messages/broadcasts/expand.ts'
import type { End } from '../../db/queue/jobs.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'
import { isSuppressedByName } from '../providers/test/magic-recipients.ts'

type ExpandBatch = Batch<'expand-broadcast'>

/** How long one claim works on a broadcast, in milliseconds. */
const EXPAND_TURN_MS = 3_000
/** The maximum number of waiting emails: this many, or as many as the sender accepts in this many seconds. */
const MAX_AHEAD = { emails: 2_000, seconds: 10 }
/** How often to check whether emails have been sent, in seconds, and the longest wait for a later start. */
const RECHECK_S = 1
const MAX_SNOOZE_S = 86_400

async function limitAhead({ bulk }: WorkerDeps): Promise<number> {
  const rate = bulk ? (await bulk.sender()).ceiling : 0
  return Number.isFinite(rate)
    ? Math.max(MAX_AHEAD.emails, Math.ceil(rate * MAX_AHEAD.seconds))
    : MAX_AHEAD.emails
}

/** Returns the end of the job after a step, or null if another step may follow. */
function endAfter(step: ExpansionStep, hasTime: boolean): End | null {
  if (step.kind === 'over') return { end: 'completed' }
  if (step.kind === 'early') return { end: 'snoozed', seconds: Math.min(step.seconds, MAX_SNOOZE_S) }
  if (step.kind === 'moved') return hasTime ? null : { end: 'snoozed', seconds: 0 }
  return { end: 'snoozed', seconds: RECHECK_S }
}

async function expand(
  job: ExpandBatch['jobs'][number],
  settle: ExpandBatch['settle'],
  deps: WorkerDeps,
): Promise<void> {
  const { database, queue, versions, secrets, brakes, ramp, simulated_recipients } = deps
  const ahead = await limitAhead(deps)
  const isNamed = (address: string, test: boolean) =>
    (test || simulated_recipients) && isSuppressedByName(address)
  const until = performance.now() + EXPAND_TURN_MS
  for (let ended = false; !ended; ) {
    const step = await database.transaction(async (tx) => {
      const walking = { tx, queue, versions, secrets, ahead, brakes, ramp, isSuppressedByName: isNamed }
      const taken = await expandStep(walking, job.data.team_id, job.data.broadcast_id)
      const end = endAfter(taken, performance.now() < until)
      if (end !== null) await settle(tx, new Map([[job, end]]))
      ended = end !== null
      return taken
    })
    if (step.kind === 'moved') for (const { job: from } of BROADCAST_QUEUES) queue.wake(from)
  }
}

export async function expandBroadcasts({ jobs, settle }: ExpandBatch, deps: WorkerDeps): Promise<void> {
  for (const job of jobs) await expand(job, settle, deps)
}
