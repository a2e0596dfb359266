/**
 * The delivery of one channel in this process: claim as room comes free, send, settle each send as it ends.
 * Promises: nothing is claimed for a paused sender, so what waits for it is neither tried nor given up. A send begins
 * only on a claim that is surely held, and only while earlier sends can be recorded. A slow message holds its own slot
 * and nothing else. A killed process repeats only what had no answer yet, or whose answer was not on record, and fewer
 * of these than twice its slots. A message that kills its workers takes no other with it. Times are the database's,
 * not the machine's. DECISIONS: Order of refusals.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { DeliveryJob } from '../db/channels/channels.sql.ts'
import { isDatabaseUnavailable } from '../db/postgres/pool.ts'
import { createTurns } from '../db/process/turns.ts'
import type { FetchedJob } from '../db/queue/claims.ts'
import type { End } from '../db/queue/jobs.ts'
import { bookSends } from '../db/senders/pace.ts'
import { type Standing, standingOf } from '../db/senders/trouble.ts'
import { isReadable, UNREADABLE } from './batches.ts'
import type { DeliveryChannel, Outgoing } from './delivery-channel.ts'
import type { WorkerDeps } from './deps.ts'
import { createGatherer } from './gatherer.ts'
import { createRecorder, type Recording } from './recorder.ts'
import { createSenderWatch } from './sender-watch.ts'
import { createServiceClock } from './service-clock.ts'
import { suspectsAmong } from './suspects.ts'
import { verdictOf } from './verdict.ts'

export type Pipeline = {
  /** Ends it: begins nothing more, waits for what is in flight, and cuts it off after so many milliseconds. */
  drain(patience: number): Promise<void>
}

/** How far ahead sends are booked, in seconds: what is booked goes at the pace of its booking. */
const HORIZON = 5
/** How long a claimed message waits for its turn before another worker may have it, in milliseconds. */
const PATIENCE = 15_000
/** How often a pipeline that must not claim looks again, in milliseconds: a pause may be lifted early. */
const LOOK = 500
/** For each slot, the messages in hand beyond the one being sent: no slot waits for a claim, and lots stay large. */
const AHEAD = 2
/** For how long a worker keeps everything else from a message that may be what kills workers, in milliseconds. */
const ALONE = 5_000

/** Starts delivering. */
export function startPipeline<J extends DeliveryJob, A>(
  delivery: DeliveryChannel<J, A>,
  deps: WorkerDeps,
): Pipeline {
  type Job = FetchedJob<J>
  const { job } = delivery.channel
  const { database, concurrency } = deps
  const clock = createServiceClock()
  const log = deps.log.child({ job })
  const claims = deps.queue.claims(job)
  const watch = createSenderWatch()
  const turns = createTurns(concurrency)
  const recorder = createRecorder(delivery, claims, { ...deps, log })
  const gatherer = createGatherer<Recording<J, A>>(recorder.write, { room: concurrency })
  const cut = new AbortController()
  const closing = new AbortController()
  const inHand = new Set<Promise<void>>()
  const most = concurrency * (1 + AHEAD)
  let room = Promise.withResolvers<void>()
  let standing: Standing | null = null

  const pause = (ms: number) => sleep(ms, undefined, { signal: closing.signal }).catch(() => {})

  /** How many messages may be claimed now. 0 when it is to look again in a moment. */
  async function admitted(): Promise<number> {
    if (recorder.isStuck() || (await deps.pauses(job))) return 0
    const { key } = await delivery.sender()
    deps.figures?.sendsThrough(job, key)
    standing = await standingOf(database, key)
    clock.tell(standing.now)
    if (standing.wait_seconds > 0) return 0
    return standing.probing ? Math.min(1, most - inHand.size) : most - inHand.size
  }

  /** Claims, reads and books a lot. @returns for how many milliseconds there is nothing more to claim. */
  async function claim(limit: number): Promise<number> {
    const claimed = await claims.fetch(limit)
    if (claimed.length === 0) {
      await claims.idle()
      return 0
    }
    // One payload that cannot be read must not hold up the others of its lot.
    const jobs = claimed.filter(({ data }) => isReadable(job, data))
    settleUnsent(claimed.filter((each) => !jobs.includes(each)).map((each) => [each, UNREADABLE]))
    const suspects = await suspectsAmong(database, job, jobs).catch((error: unknown) => {
      letGo(jobs, 1)
      throw error
    })
    const wait = await take(jobs.filter((each) => !suspects.includes(each))).catch((error: unknown) => {
      letGo(suspects, 1)
      throw error
    })
    if (suspects.length > 0) await takeAlone(suspects)
    return wait
  }

  /** Takes any one of them, so that the same does not come first each time, with nothing else in hand. */
  async function takeAlone(suspects: readonly Job[]): Promise<void> {
    const chosen = suspects[Math.floor(Math.random() * suspects.length)]
    const others = suspects.filter((each) => each !== chosen)
    letGo(others, 1)
    await quiet()
    await take(suspects.filter((each) => each === chosen))
    await quiet()
  }

  /** Until all that is in hand has ended and is recorded, or the others have waited for long enough. */
  const quiet = () => Promise.race([Promise.all(inHand).then(() => gatherer.flush()), pause(ALONE)])

  /** Reads and books claimed jobs. */
  async function take(jobs: readonly Job[]): Promise<number> {
    if (jobs.length === 0) return 0
    const lot = await delivery.read(jobs).catch((error: unknown) => {
      letGo(jobs, 1)
      throw error
    })
    settleUnsent(jobs.filter((each) => !lot.has(each)).map((each) => [each, { end: 'completed' }]))
    const resting = [...lot].filter(([, { resting_seconds }]) => resting_seconds > 0)
    settleUnsent(resting.map(([each, { resting_seconds: seconds }]) => [each, { end: 'snoozed', seconds }]))
    const ready = [...lot].filter(([, { resting_seconds }]) => resting_seconds <= 0)
    return ready.length === 0 ? 0 : book(ready)
  }

  async function book(ready: readonly [Job, Outgoing<A>][]): Promise<number> {
    const bookedAt = performance.now()
    const costs = ready.map(([, { cost }]) => cost)
    const jobs = ready.map(([each]) => each)
    const { delays, wait_seconds } = await bookSends(database, await delivery.sender(), costs, HORIZON).catch(
      (error: unknown) => {
        letGo(jobs, 1)
        throw error
      },
    )
    for (const [index, delay] of delays.entries()) {
      const [each, outgoing] = ready[index] ?? []
      if (each && outgoing) track(deliver(each, outgoing, { delay: delay * 1_000, bookedAt }))
    }
    // A pause may end early, another worker's probe within a moment: who is let go looks again soon.
    const wait = Math.min(wait_seconds, HORIZON)
    letGo(jobs.slice(delays.length), wait)
    return delays.length < jobs.length ? wait * 1_000 : 0
  }

  function track(sending: Promise<void>): void {
    inHand.add(sending)
    sending.finally(() => {
      inHand.delete(sending)
      room.resolve()
      room = Promise.withResolvers()
    })
  }

  const settleUnsent = (ends: readonly (readonly [Job, End])[]): void => {
    for (const [each, end] of ends) {
      deps.figures?.ended(job, end.end)
      gatherer.add({ job: each, end })
    }
  }
  const letGo = (jobs: readonly Job[], seconds: number): void =>
    settleUnsent(jobs.map((each) => [each, { end: 'snoozed', seconds }]))

  /** One message, from its claim to its record. */
  async function deliver(
    each: Job,
    outgoing: Outgoing<A>,
    { delay, bookedAt }: { delay: number; bookedAt: number },
  ): Promise<void> {
    if (delay > 0) await pause(delay)
    const sent = await turns.run('send', () => send(each, outgoing, bookedAt), PATIENCE)
    if (sent === null) letGo([each], closing.signal.aborted ? 0 : 1)
  }

  /** Begins a send, unless it must not begin any more. @returns null when it has not begun. */
  async function send(each: Job, outgoing: Outgoing<A>, bookedAt: number): Promise<true | null> {
    const stopped = closing.signal.aborted || recorder.isStuck() || watch.isHalted(bookedAt)
    if (stopped || !claims.isHeld(each)) return null
    const began_at = clock.now()
    const started = performance.now()
    const given = await outgoing.send(cut.signal)
    const accepted_at = latest(watch.acceptedAt(), standing?.accepted_at ?? null)
    const answer = delivery.judge(given, { held_at: outgoing.held_at, accepted_at })
    const outcomes = delivery.outcomesOf(answer)
    const finding = watch.note(outcomes, began_at)
    const now = clock.now()
    const end = verdictOf(outcomes, outgoing.tried, {
      now,
      unknown_wait: delivery.unknown_wait,
      rest: recorder.restAfter(finding),
      spread: Math.random(),
    })
    const told = finding?.kind === 'accepted' && !standing?.probing ? null : finding
    gatherer.add({ job: each, end, sent: { outgoing, answer, at: now, finding: told } })
    const seconds = (performance.now() - started) / 1_000
    deps.figures?.ended(job, end.end)
    deps.figures?.tried({
      job,
      outcomes: outcomes.map(({ kind }) => kind),
      seconds,
      since: outgoing.since,
      at: now,
    })
    // A relay that answers faster than the database records would leave ever more to repeat after a kill.
    await gatherer.room()
    return true
  }

  async function pump(): Promise<void> {
    while (!claims.isClosed()) {
      try {
        if (most - inHand.size < concurrency) await room.promise
        else {
          const limit = await admitted()
          await pause(limit > 0 ? await claim(limit) : LOOK)
        }
      } catch (error) {
        // A database that is away is told by the queue, for all its loops together.
        if (!isDatabaseUnavailable(error))
          log.error({ err: error }, 'cannot claim or read what is to be sent')
        await pause(LOOK)
      }
    }
  }
  const pumping = pump()

  return {
    async drain(patience) {
      claims.close()
      closing.abort()
      room.resolve()
      turns.close()
      const late = setTimeout(() => cut.abort(), patience)
      await pumping
      await Promise.all(inHand)
      clearTimeout(late)
      await gatherer.flush()
    },
  }
}

const latest = (one: Date | null, other: Date | null): Date | null =>
  one !== null && (other === null || one > other) ? one : other
