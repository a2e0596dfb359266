/**
 * Delivers one queue's messages in this process through their channel (channel.ts). A loop claims messages
 * and is in one of these states:
 * - full: enough is in flight (in-flight-buffer.ts). It ends when a batch fits. Enough large messages block
 *   only large ones.
 * - barred: nothing may be claimed, because the queue or its only sender is paused, records can't be stored,
 *   or the queue yields to others (queue-priority.ts). The loop checks again after half a second, because a
 *   pause may be lifted early.
 * - idle: nothing was due, or, with many senders, their capacity is used up. It ends at the next poll or with
 *   a wake-up, which admission sends when half of the claimed messages are done.
 * - claiming: a batch is claimed, split from its poison jobs (poison-jobs.ts), read, and passed to admission
 *   (admission.ts), which releases each message after a delay, or puts it back.
 * - isolating: only a poison job is in flight, after all others have ended.
 * - waiting: the sender's rate is used up. It ends when the next send is due.
 * - closed: the process exits. Messages in flight are sent or put back.
 * A message in flight is claimed, released, in a slot (slots.ts), sending (sending.ts), answered, and
 * recorded (recorder.ts), in this order. Until it is sending it can be put back for some seconds without an
 * attempt.
 * A message that waits for a paused sender is neither attempted nor failed. A slow message occupies only its
 * own slot, and large ones at most half of the slots. A killed process repeats only sends without a recorded
 * response, fewer than twice its slots. A message that kills its workers affects no other. Times are the
 * database's.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import { isDatabaseUnavailable } from '../../db/postgres/pool.ts'
import { createServiceClock } from '../../db/postgres/service-clock.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import { LARGE } from '../../db/queue/jobs.ts'
import { splitReadable } from '../batches/batches.ts'
import { type Portion, splitIntoPortions } from '../batches/poison-jobs.ts'
import {
  type Admission,
  type ClaimLimits,
  createAdmission,
  type Message,
  type Released,
} from './admission.ts'
import { createBreakers } from './breaker.ts'
import type { DeliveryChannel, DeliveryDeps } from './channel.ts'
import { createInFlightBuffer, type InFlightBuffer, ROOM_WAIT_S } from './in-flight-buffer.ts'
import { createRecorder, type Recording } from './recorder.ts'
import { deliver, endUnsent, leaveOutEnded, type Parts, releaseJobs } from './sending.ts'
import type { SlotShare } from './slots.ts'
import { createWriteBuffer } from './write-buffer.ts'

export type Delivery = {
  /** Stops starting work and waits for messages in flight. @param patience milliseconds until they are cut off. */
  drain(patience: number): Promise<void>
}

/** How often a barred loop checks again, in milliseconds. */
const BARRED_RECHECK_MS = 500
/** The default number of messages in flight per slot in addition to the one being sent. */
const DEFAULT_AHEAD = 2
/** The maximum delay of other jobs in a worker because of a poison job, in milliseconds. */
const POISON_ALONE_MS = 5_000

export function startDelivery<J extends DeliveryJob, A>(
  delivery: DeliveryChannel<J, A>,
  deps: DeliveryDeps,
  slots: SlotShare,
): Delivery {
  const closing = new AbortController()
  const cut = new AbortController()
  const parts = assemble(delivery, deps, { slots, closing: closing.signal, cut: cut.signal })
  const inFlight = createInFlightBuffer(
    slots.size,
    delivery.ahead ?? DEFAULT_AHEAD,
    'one' in delivery.senders,
  )
  const admission = createAdmission(delivery, deps, parts)
  const pumping = pump({ parts, admission, inFlight })
  return {
    async drain(patience) {
      parts.claims.close()
      closing.abort()
      inFlight.close()
      slots.close()
      const late = setTimeout(() => cut.abort(), patience)
      await pumping
      await inFlight.empty()
      clearTimeout(late)
      await parts.buffer.flush()
    },
  }
}

function assemble<J extends DeliveryJob, A>(
  delivery: DeliveryChannel<J, A>,
  given: DeliveryDeps,
  { slots, closing, cut }: Pick<Parts<J, A>, 'slots' | 'closing' | 'cut'>,
): Parts<J, A> {
  const { job } = delivery.channel
  const deps = { ...given, log: given.log.child({ job }) }
  const claims = deps.queue.claims(job)
  const breakers = createBreakers()
  const recorder = createRecorder(delivery, claims, { ...deps, breakers })
  const buffer = createWriteBuffer<Recording<J, A>>(recorder.write, { room: 2 * slots.size })
  const clock = createServiceClock()
  const pause = (ms: number) => sleep(ms, undefined, { signal: closing }).catch(() => {})
  return { delivery, deps, claims, slots, clock, breakers, recorder, buffer, closing, cut, pause }
}

type Loop<J extends DeliveryJob, A> = {
  parts: Parts<J, A>
  admission: Admission<J, A>
  inFlight: InFlightBuffer
}

async function pump<J extends DeliveryJob, A>(loop: Loop<J, A>): Promise<void> {
  const { claims, deps, pause } = loop.parts
  while (!claims.isClosed()) {
    try {
      await loop.inFlight.roomForBatch()
      if (claims.isClosed()) return
      const claimLimits = await admit(loop)
      await pause(claimLimits.limit > 0 ? await claim(loop, claimLimits) : BARRED_RECHECK_MS)
    } catch (error) {
      // The queue logs a database outage once for all its loops.
      if (!isDatabaseUnavailable(error)) deps.log.error({ err: error }, 'failed to claim or load messages')
      await pause(BARRED_RECHECK_MS)
    }
  }
}

const BARRED: ClaimLimits = { limit: 0, except: [] }

async function admit<J extends DeliveryJob, A>({
  parts: { recorder, deps, delivery, slots },
  admission,
  inFlight,
}: Loop<J, A>): Promise<ClaimLimits> {
  const most = slots.yielding.claimable()
  if (most < 1 || recorder.isStuck() || (await deps.pauses(delivery.channel.job))) return BARRED
  const claimLimits = await admission.admit(Math.min(most, inFlight.room()))
  return inFlight.takesLarge() ? claimLimits : { ...claimLimits, except: [...claimLimits.except, LARGE] }
}

/** Claims a batch and sends it. @returns the milliseconds to wait before the next claim. */
async function claim<J extends DeliveryJob, A>(
  loop: Loop<J, A>,
  { limit, except, rooms }: ClaimLimits,
): Promise<number> {
  const { delivery, deps, claims, slots } = loop.parts
  const { channel } = delivery
  const claimed = await claims.fetch(limit, { except, rooms })
  slots.yielding.claimed(claimed.length, limit)
  if (claimed.length === 0) {
    await claims.idle()
    return 0
  }
  // An unreadable payload must not delay the rest of its batch.
  const { readable: jobs, others } = splitReadable(channel.job, claimed, deps.log)
  for (const [each, end] of others) endUnsent(loop.parts, [each], end)
  const portions = await orRelease(loop.parts, jobs, () =>
    splitIntoPortions(deps.database, channel.job, jobs),
  )
  const wait = await takePortions(loop, portions)
  // Everything due is claimed, or all that the senders have capacity for. Admission reports when there may be more.
  if (claimed.length < limit) await claims.idle()
  return wait
}

/** Takes the other jobs together and then one poison job. The other poison jobs wait for their turns. */
async function takePortions<J extends DeliveryJob, A>(
  loop: Loop<J, A>,
  portions: readonly Portion<J>[],
): Promise<number> {
  const poison = portions.filter(({ alone }) => alone).flatMap(({ jobs }) => jobs)
  const others = portions.filter(({ alone }) => !alone).flatMap(({ jobs }) => jobs)
  const wait = await orRelease(loop.parts, poison, () => take(loop, others))
  const [chosen, ...left] = poison
  releaseJobs(loop.parts, left, 1)
  if (chosen) {
    await quiet(loop)
    await take(loop, [chosen])
    await quiet(loop)
  }
  return wait
}

/** Waits until everything in flight has ended and is recorded, or until the timeout. */
const quiet = <J extends DeliveryJob, A>({ parts, inFlight }: Loop<J, A>): Promise<unknown> =>
  Promise.race([inFlight.empty().then(() => parts.buffer.flush()), parts.pause(POISON_ALONE_MS)])

/** Runs `work`, and releases these jobs if it throws. @throws the error of `work`. */
async function orRelease<J extends DeliveryJob, A, T>(
  parts: Parts<J, A>,
  jobs: readonly FetchedJob<J>[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    releaseJobs(parts, jobs, 1)
    throw error
  }
}

/** Puts back messages that must wait for themselves, or for large ones in flight. @returns the others. */
function putBack<J extends DeliveryJob, A>(
  { parts, inFlight }: Pick<Loop<J, A>, 'parts' | 'inFlight'>,
  messages: readonly Message<J, A>[],
): Message<J, A>[] {
  let room = inFlight.roomForLarge()
  return messages.filter(({ job, outgoing: { own_wait_seconds, is_large } }) => {
    const wait = own_wait_seconds > 0 || !is_large || room-- > 0 ? own_wait_seconds : ROOM_WAIT_S
    if (wait <= 0) return true
    releaseJobs(parts, [job], wait)
    if (is_large) inFlight.barLarge()
    return false
  })
}

/**
 * Reads claimed jobs, submits them to admission, and sends the released ones. @returns milliseconds until the next
 * claim.
 */
async function take<J extends DeliveryJob, A>(
  { parts, admission, inFlight }: Loop<J, A>,
  jobs: readonly FetchedJob<J>[],
): Promise<number> {
  if (jobs.length === 0) return 0
  // The pause was checked up to a second ago, when this may have been another database.
  const [batch, look] = await orRelease(parts, jobs, () =>
    Promise.all([parts.delivery.read(jobs), admission.look()]),
  )
  if (!look.is_home) {
    releaseJobs(parts, jobs, 1)
    return BARRED_RECHECK_MS
  }
  endUnsent(
    parts,
    jobs.filter((each) => !batch.has(each)),
    { end: 'completed' },
  )
  const messages = leaveOutEnded(
    parts,
    [...batch].map(([job, outgoing]) => ({ job, outgoing })),
  )
  const ready = putBack({ parts, inFlight }, messages)
  if (ready.length === 0) return 0
  const passed = await orRelease(
    parts,
    ready.map(({ job }) => job),
    () => admission.release(ready, look),
  )
  const send = async (each: Released<J, A>): Promise<void> => {
    await deliver(parts, each)
    const awaited = each.outgoing.is_large && !inFlight.takesLarge()
    if (admission.done(each) || awaited) parts.claims.wake()
  }
  for (const each of passed.released) inFlight.add(send(each), each.outgoing.is_large ?? false)
  for (const { messages: held, seconds } of passed.held)
    releaseJobs(
      parts,
      held.map(({ job }) => job),
      seconds,
    )
  return passed.wait
}
