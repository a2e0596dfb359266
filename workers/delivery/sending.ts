/**
 * Takes one message from its release to its record: a slot, the last check, the provider, the verdict. A send starts
 * only if its claim is certainly valid, earlier sends can be recorded, and its sender hasn't failed since the
 * release. Otherwise the message is put back without an attempt.
 */
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import type { ServiceClock } from '../../db/postgres/service-clock.ts'
import type { Claims, FetchedJob } from '../../db/queue/claims.ts'
import type { End } from '../../db/queue/jobs.ts'
import type { Message, Released } from './admission.ts'
import type { Breakers } from './breaker.ts'
import type { DeliveryChannel, DeliveryDeps, Outgoing } from './channel.ts'
import type { Recorder, Recording } from './recorder.ts'
import { nextStep } from './retry-policy.ts'
import type { SlotShare } from './slots.ts'
import type { WriteBuffer } from './write-buffer.ts'

export type Parts<J extends DeliveryJob, A> = {
  delivery: DeliveryChannel<J, A>
  deps: DeliveryDeps
  claims: Claims<J>
  slots: SlotShare
  clock: ServiceClock
  breakers: Breakers
  recorder: Recorder<J, A>
  buffer: WriteBuffer<Recording<J, A>>
  /** Aborted when the process starts to exit. Nothing new starts. */
  closing: AbortSignal
  /** Aborted when its time is up. Sends are cut off. */
  cut: AbortSignal
  pause(ms: number): Promise<void>
}

/** How long a released message waits for a slot until others may have it. Shorter if its own sender may hang. */
const SLOT_WAIT_MS = { shared: 15_000, own: 3_000 }

const COMPLETED: End = { end: 'completed' }

/** Adds a record to be written, and counts the end of its job. */
function record<J extends DeliveryJob, A>(
  { delivery, deps, buffer }: Parts<J, A>,
  recording: Recording<J, A>,
): void {
  deps.stats?.ended(delivery.channel.job, recording.end.end)
  buffer.add(recording)
}

export function endUnsent<J extends DeliveryJob, A>(
  parts: Parts<J, A>,
  jobs: readonly FetchedJob<J>[],
  end: End,
): void {
  for (const job of jobs) record(parts, { job, end })
}

export const releaseJobs = <J extends DeliveryJob, A>(
  parts: Parts<J, A>,
  jobs: readonly FetchedJob<J>[],
  seconds: number,
): void => endUnsent(parts, jobs, { end: 'snoozed', seconds })

/**
 * Ends messages that have expired or failed already, or whose result is known, before they use their sender's rate
 * limit. An expired message isn't a dead letter, because it needs no manual action. @returns the others.
 */
export function leaveOutEnded<J extends DeliveryJob, A>(
  parts: Parts<J, A>,
  messages: readonly Message<J, A>[],
): Message<J, A>[] {
  return messages.filter(({ job, outgoing }) => {
    const { given_up: reason, answered: answer } = outgoing
    const now = () => ({ outgoing, at: parts.clock.now() })
    if (reason !== undefined) record(parts, { job, end: { end: 'given_up', reason }, given_up: now() })
    else if (hasExpired(parts, outgoing)) record(parts, { job, end: COMPLETED, expired: now() })
    else if (answer !== undefined)
      record(parts, { job, end: COMPLETED, sent: { ...now(), answer, signal: null } })
    else return true
    return false
  })
}

/** Waits for the message's time and a slot, and sends it or puts it back. Never throws. */
export async function deliver<J extends DeliveryJob, A>(
  parts: Parts<J, A>,
  message: Released<J, A>,
): Promise<void> {
  const { slots, breakers, closing, pause, deps } = parts
  const { sender, is_large = false } = message.outgoing
  if (message.delay > 0) await pause(message.delay)
  const patience = sender.at_once === undefined ? SLOT_WAIT_MS.shared : SLOT_WAIT_MS.own
  const isProven = () => breakers.of(sender).isProven()
  const begun = await slots
    .run({ sender, isProven, is_large }, () => attempt(parts, message), patience)
    .catch((error: unknown) => {
      deps.log.warn({ err: error, id: message.job.id }, 'failed to load message')
      return null
    })
  if (begun === null) releaseJobs(parts, [message.job], closing.aborted ? 0 : 1)
}

/** Sends the message, unless it may no longer start. @returns null if it didn't start. */
async function attempt<J extends DeliveryJob, A>(
  parts: Parts<J, A>,
  message: Released<J, A>,
): Promise<true | null> {
  const { job, outgoing, at } = message
  const { claims, recorder, breakers, closing, buffer } = parts
  if (outgoing.load && !(await outgoing.load())) {
    record(parts, { job, end: COMPLETED })
    return true
  }
  // If a provider responds faster than the database records, ever more would be repeated after a kill.
  const free = await buffer.reserve()
  try {
    const stopped = closing.aborted || recorder.isStuck() || breakers.of(outgoing.sender).isHalted(at)
    if (stopped || !claims.isHeld(job)) return null
    if (hasExpired(parts, outgoing))
      record(parts, { job, end: COMPLETED, expired: { outgoing, at: parts.clock.now() } })
    else record(parts, await send(parts, message))
    return true
  } finally {
    free()
  }
}

const hasExpired = <J extends DeliveryJob, A>(
  { clock }: Parts<J, A>,
  { expires_at }: Pick<Outgoing<A>, 'expires_at'>,
): boolean => expires_at instanceof Date && expires_at <= clock.now()

async function send<J extends DeliveryJob, A>(
  { delivery, deps, clock, breakers, cut }: Parts<J, A>,
  { job, outgoing, reserved_at }: Released<J, A>,
): Promise<Recording<J, A>> {
  const { sender, history, held_at, since } = outgoing
  const breaker = breakers.of(sender)
  // A clock that is a round trip behind must not date the send before its reservation. Otherwise this probe
  // would stay reserved.
  const began_at = new Date(Math.max(clock.now().getTime(), reserved_at?.getTime() ?? 0))
  const started = performance.now()
  const ended = breaker.began()
  const given = await outgoing.send(cut)
  ended()
  const seconds = (performance.now() - started) / 1_000
  const at = clock.now()
  const answer = delivery.judge(given, { held_at, accepted_at: breaker.acceptedAt(), history, now: at })
  const outcomes = delivery.outcomesOf(answer)
  const signal = breaker.note(outcomes, { message: outgoing.ref.id, began_at, seconds })
  const context = {
    now: at,
    unknown_wait: delivery.unknown_wait,
    sender_pause: breaker.waitAfter(signal),
    spread: Math.random(),
  }
  const end = delivery.verdict?.(answer, history, context) ?? nextStep(outcomes, history, context)
  deps.stats?.tried({
    job: delivery.channel.job,
    sender: sender.key,
    outcomes: outcomes.map(({ kind }) => kind),
    seconds,
    since,
    at,
  })
  const isNews = signal?.kind !== 'accepted' || breaker.isWatched()
  return { job, end, sent: { outgoing, answer, at, signal: isNews ? signal : null } }
}
