/**
 * What a channel brings to the pipeline (pipeline.ts): how its messages are read, sent, judged and recorded.
 * Owns the types that both sides share. Must not know a channel.
 */
import type { Channel, DeliveryJob, DeliveryRef } from '../db/channels/channels.sql.ts'
import type { Tx } from '../db/postgres/pool.ts'
import type { FetchedJob } from '../db/queue/claims.ts'
import type { End } from '../db/queue/jobs.ts'
import type { Sender } from '../db/senders/pace.ts'
import type { Evidence, Judged, Tried } from './verdict.ts'

/** One message that is to be sent. `A` is what the channel keeps of a try, from the answer to the record. */
export type Outgoing<A> = {
  ref: DeliveryRef
  /** The X-Request-Id of the call that sent it, if any. */
  http_request_id: string | null
  /** From when its tries count: it was accepted, or requeued by a person. */
  since: string
  tried: Tried
  /** When it was held back last because its sender may be at fault. */
  held_at: Date | null
  /** Tokens of its sender's pace. */
  cost: number
  /** How many seconds its own recipient stays paused; 0 when it may go. */
  resting_seconds: number
  /** Hands it to the provider. Never throws. @param cut ends the wait for an answer: the process has to end. */
  send(cut: AbortSignal): Promise<A>
}

/** A try that is over, and how its job ends. */
export type Delivered<A> = { answer: A; end: End; at: Date }

export type DeliveryChannel<J extends DeliveryJob, A> = {
  channel: Channel<J>
  /** After a lost answer: how long to wait for a report before another try, in seconds. */
  unknown_wait: number
  sender(): Promise<Sender>
  /** Reads what claimed jobs are to send, in a few statements. Leaves out jobs whose row needs nothing more. */
  read(jobs: readonly FetchedJob<J>[]): Promise<ReadonlyMap<FetchedJob<J>, Outgoing<A>>>
  /** The answer, after deciding whose fault each refusal by policy is. */
  judge(answer: A, evidence: Evidence): A
  outcomesOf(answer: A): readonly Judged[]
  /** Stores the results of tries, in the caller's transaction. Safe to repeat. */
  record(tx: Tx, delivered: readonly Delivered<A>[]): Promise<void>
}
