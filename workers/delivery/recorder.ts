/**
 * Records the results of a channel's sends: rows, timelines, jobs and senders, in one transaction for many sends. It
 * retries for as long as the database is unavailable, with short lock timeouts. A record that can't be stored delays
 * no other, and its message isn't sent again. While records can't be stored, no send may start.
 */
import type { DeliveryJob } from '../../db/channels/channel.sql.ts'
import { storeEvents } from '../../db/channels/events/store-events.ts'
import { gaveUpNote } from '../../db/delivery/requeue.ts'
import { type Expired, failExpired } from '../../db/delivery/schedule.ts'
import { applySignals, type Change, type SenderSignal } from '../../db/delivery/senders/circuit-breaker.ts'
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'
import { errorWords } from '../../db/errors.ts'
import { limitWaits, type Tx } from '../../db/postgres/pool.ts'
import type { Claims, FetchedJob } from '../../db/queue/claims.ts'
import type { End } from '../../db/queue/jobs.ts'
import { impersonal, storableWords } from '../../db/validation/words.ts'
import { retryWhileUnavailable } from '../batches/retry-while-unavailable.ts'
import type { Breakers } from './breaker.ts'
import type { DeliveryChannel, DeliveryDeps, Outgoing } from './channel.ts'
import type { AttemptOutcome } from './retry-policy.ts'

/** A job and its end. `sent` is set after a request to the provider, `expired` if the message expired first. */
export type Recording<J extends DeliveryJob, A> = {
  job: FetchedJob<J>
  end: End
  sent?: { outgoing: Outgoing<A>; answer: A; at: Date; signal: SenderSignal | null }
  expired?: { outgoing: Outgoing<A>; at: Date }
  given_up?: { outgoing: Outgoing<A>; at: Date }
}

export type Recorder<J extends DeliveryJob, A> = {
  /** Stores recordings together, or one by one if that fails. Never throws. */
  write(recordings: readonly Recording<J, A>[]): Promise<void>
  isStuck(): boolean
}

/** Milliseconds. A longer lock wait is retried, so that it doesn't occupy the connection. */
const RECORD_WAITS_MS = { lock: 2_000, statement: 10_000 }

/** The maximum number of ids in a log line. */
const MAX_NAMED_IDS = 5

const few = (values: readonly (string | null)[]): string[] =>
  [...new Set(values.filter((value) => value !== null))].slice(0, MAX_NAMED_IDS)

/** Returns the most frequent detail, without addresses and numbers. Undefined if all were accepted. */
function commonReason(judged: readonly AttemptOutcome[]): string | undefined {
  const words = judged.filter(({ kind }) => kind !== 'accepted').map(({ detail }) => impersonal(detail))
  const counts = [...Map.groupBy(words, (each) => each)].sort((one, other) => other[1].length - one[1].length)
  return counts[0]?.[0]
}

/** Logs one line for results recorded together: the number per outcome, and the first ids for tracing. */
function logSent<J extends DeliveryJob, A>(
  recordings: readonly Recording<J, A>[],
  { outcomesOf }: DeliveryChannel<J, A>,
  log: DeliveryDeps['log'],
): void {
  const sent = recordings.flatMap((recording) => recording.sent ?? [])
  if (sent.length === 0) return
  const judged = sent.flatMap(({ answer }) => outcomesOf(answer))
  const kinds = Map.groupBy(judged, ({ kind }) => kind)
  log.info(
    {
      messages: sent.length,
      ...Object.fromEntries([...kinds].map(([kind, own]) => [kind, own.length])),
      reason: commonReason(judged),
      ids: few(sent.map(({ outgoing }) => outgoing.ref.id)),
      request_ids: few(sent.map(({ outgoing }) => outgoing.http_request_id)),
    },
    'sent',
  )
}

function logChange({ sender, kind, seconds, words }: Change, log: DeliveryDeps['log']): void {
  const reason = impersonal(words)
  if (kind === 'paused') log.error({ sender, seconds, reason }, 'sender paused')
  else if (kind === 'slowed') log.warn({ sender, seconds, reason }, 'sender slowed down by its provider')
  else log.warn({ sender }, reason)
}

function signalsBySender<A>(sent: readonly { outgoing: Outgoing<A>; signal: SenderSignal | null }[]) {
  const senders = new Map<string, { sender: Sender; signals: SenderSignal[] }>()
  for (const { outgoing, signal } of sent) {
    if (signal === null) continue
    const { sender } = outgoing
    const { signals } = senders.get(sender.key) ?? { signals: [] }
    senders.set(sender.key, { sender, signals: [...signals, signal] })
  }
  return [...senders.values()]
}

const toExpired = <J extends DeliveryJob, A>({ expired }: Recording<J, A>): Expired[] =>
  expired?.outgoing.expires_at
    ? [{ ...expired.outgoing.ref, expires_at: expired.outgoing.expires_at, at: expired.at }]
    : []

async function findOutdated<J extends DeliveryJob, A>(
  tx: Tx,
  recordings: readonly Recording<J, A>[],
  { outdated }: DeliveryChannel<J, A>,
): Promise<ReadonlySet<Recording<J, A>>> {
  const answers = recordings.flatMap(({ sent }) => (sent ? [sent.answer] : []))
  if (outdated === undefined || answers.length === 0) return new Set()
  const found = await outdated(tx, answers)
  return new Set(recordings.filter(({ sent }) => sent && found.has(sent.answer)))
}

/** Returns how the jobs end now. Outdated attempts are put back, and some jobs no longer have to wait. */
async function endsNow<J extends DeliveryJob, A>(
  tx: Tx,
  recordings: readonly Recording<J, A>[],
  outdated: ReadonlySet<Recording<J, A>>,
  { mayGoAfterAll }: DeliveryChannel<J, A>,
): Promise<Map<FetchedJob<J>, End>> {
  const ends = new Map(
    recordings.map((each): [FetchedJob<J>, End] => [
      each.job,
      outdated.has(each) ? { end: 'snoozed', seconds: 1 } : each.end,
    ]),
  )
  const putBack = recordings.filter(({ end }) => end.end === 'snoozed').map(({ job }) => job)
  if (mayGoAfterAll === undefined || putBack.length === 0) return ends
  for (const job of await mayGoAfterAll(tx, putBack)) ends.set(job, { end: 'snoozed', seconds: 0 })
  return ends
}

/** Stores recordings in one transaction. @returns the changes of their senders. */
async function store<J extends DeliveryJob, A>(
  tx: Tx,
  recordings: readonly Recording<J, A>[],
  { delivery, claims }: { delivery: DeliveryChannel<J, A>; claims: Claims<J> },
): Promise<Change[]> {
  await limitWaits(tx, RECORD_WAITS_MS)
  const outdated = await findOutdated(tx, recordings, delivery)
  const ends = await endsNow(tx, recordings, outdated, delivery)
  const sent = recordings.flatMap((each) =>
    each.sent && !outdated.has(each) ? [{ ...each.sent, end: each.end }] : [],
  )
  if (sent.length > 0) await delivery.record(tx, sent)
  const unsent = recordings.flatMap(({ given_up, end }) => (given_up ? [{ ...given_up, end }] : []))
  const given_up = [...sent, ...unsent].flatMap(({ end, outgoing, at }) =>
    end.end === 'given_up' ? [gaveUpNote({ ...outgoing.ref, since: outgoing.since }, end.reason, at)] : [],
  )
  await storeEvents(tx, delivery.channel, given_up)
  await failExpired(tx, delivery.channel, recordings.flatMap(toExpired))
  const signals = signalsBySender(sent)
  await claims.settle(tx, ends, signals.length === 0)
  // Last in its transaction: sends wait for the senders' rows.
  return signals.length === 0 ? [] : await applySignals(tx, signals)
}

export function createRecorder<J extends DeliveryJob, A>(
  delivery: DeliveryChannel<J, A>,
  claims: Claims<J>,
  { database, log, breakers }: Pick<DeliveryDeps, 'database' | 'log'> & { breakers: Breakers },
): Recorder<J, A> {
  let stuck = false

  async function commit(recordings: readonly Recording<J, A>[]): Promise<void> {
    const work = () => database.transaction((tx) => store(tx, recordings, { delivery, claims }))
    const changes = await retryWhileUnavailable(work, log, () => {
      stuck = true
    })
    for (const change of changes) {
      breakers.of({ key: change.sender }).changed(change.kind)
      logChange(change, log)
    }
    logSent(recordings, delivery, log)
  }

  /** A result that can't be stored must not lead to another send, so its job fails. */
  async function abandon({ job }: Recording<J, A>, error: unknown): Promise<void> {
    log.error({ err: error, id: job.id }, 'failed to record a result')
    const end: End = {
      end: 'given_up',
      reason: storableWords(`it was attempted, but its result can't be stored: ${errorWords(error)}`),
    }
    await commit([{ job, end }]).catch((fault: unknown) => {
      log.error({ err: fault, id: job.id }, 'failed to dead-letter the job')
    })
  }

  return {
    async write(recordings) {
      try {
        await commit(recordings)
      } catch (error) {
        const [only, ...others] = recordings
        if (only && others.length === 0) await abandon(only, error)
        else for (const each of recordings) await commit([each]).catch((fault) => abandon(each, fault))
      } finally {
        stuck = false
        claims.release(recordings.map(({ job }) => job))
      }
    },
    isStuck: () => stuck,
  }
}
