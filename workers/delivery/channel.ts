/**
 * What a channel brings to the delivery engine (engine.ts): how its messages are read, sent, judged and recorded.
 * Owns the types that both sides share. Must not know a channel.
 */
import type { Deliverable, DeliveryJob, DeliveryRef } from '../../db/channels/channel.sql.ts'
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import type { Consumer } from '../../db/queue/boss.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import type { End } from '../../db/queue/jobs.ts'
import type { BatchDeps } from '../batches/batches.ts'
import type { AttemptHistory, AttemptOutcome, PolicyContext, VerdictContext } from './retry-policy.ts'

export type DeliveryDeps = BatchDeps & { queue: Consumer }

/** One message that is to be sent. `A` is what the channel keeps of a try, from the answer to the record. */
export type Outgoing<A> = {
  ref: DeliveryRef
  /** The X-Request-Id of the call that sent it, if any. */
  http_request_id: string | null
  /** From when its tries count: it was accepted, or requeued by a person. */
  since: string
  history: AttemptHistory
  /** When it was held back last because its sender may be at fault. */
  held_at: Date | null
  /** From when on it is not handed over any more. */
  expires_at?: Date | null
  /** What it goes out through: messages of one key share a pace and a circuit breaker. */
  sender: Sender
  /** Tokens of its sender's pace. */
  cost: number
  /** How many seconds it waits for what is its own, such as a paused recipient or room for its files; 0: it may go. */
  own_wait_seconds: number
  /** What became of it without asking the provider; absent if the provider is asked. */
  answered?: A
  /** Why it is given up without another try; absent where it is not. */
  given_up?: string
  /** Whether it holds a slot for long, by its size: others do not wait for it. Not so when absent. */
  is_large?: boolean
  /**
   * Reads what is not read ahead, such as a large body, and looks once more whether it may go: once its slot is free.
   * When it throws, the message is let go without a try. Absent: all is read.
   * @returns false when it needs no delivery any more.
   */
  load?: (() => Promise<boolean>) | undefined
  /** Hands it to the provider. Never throws. @param cut ends the wait for an answer: the process has to end. */
  send(cut: AbortSignal): Promise<A>
}

/** A try that is over, and how its job ends. */
export type Delivered<A> = { answer: A; end: End; at: Date }

/**
 * What a channel's messages go out through.
 * - one: the same sender for all; nothing is claimed while it is paused.
 * - many: each message names its own (Outgoing.sender), whose key begins with `prefix` and is its job's group
 *   (db/queue/jobs.ts). Messages of paused senders are not claimed, of the others only what is soon sent. `paused`
 *   returns the keys of further ones that are paused.
 */
type Senders = { one(): Promise<Sender> } | ManySenders
export type ManySenders = { prefix: string; paused?(): Promise<readonly string[]> }

/** What a channel judges an answer by. */
export type JudgeContext = PolicyContext & { history: AttemptHistory; now: Date }

export type DeliveryChannel<J extends DeliveryJob, A> = {
  channel: Deliverable<J>
  /** After a lost answer: how long to wait for a report before another try, in seconds. */
  unknown_wait: number
  senders: Senders
  /**
   * For each slot, the messages in flight beyond the one being sent: no slot waits for a claim, and batches stay large.
   * 2 when absent; with 0, a message is claimed and read only when a slot may take it at once.
   */
  ahead?: number
  /** How far ahead sends are reserved, in seconds: what is reserved goes at that pace. 5 when absent. */
  horizon?: number
  /** Reads what claimed jobs are to send, in a few statements. Leaves out jobs whose row needs nothing more. */
  read(jobs: readonly FetchedJob<J>[]): Promise<ReadonlyMap<FetchedJob<J>, Outgoing<A>>>
  /** The answer, after deciding whose fault each rejection by policy is, and what its time for attempts ends. */
  judge(answer: A, context: JudgeContext): A
  outcomesOf(answer: A): readonly AttemptOutcome[]
  /** How the delivery ends, where the channel has rules of its own; `nextStep` its outcomes when absent. */
  verdict?(answer: A, history: AttemptHistory, context: VerdictContext): End
  /**
   * Asked in the transaction that puts messages back: which of these jobs need not wait after all, since what they
   * were to wait for has come in the meantime. None when absent.
   */
  mayGoAfterAll?(tx: Tx, jobs: readonly FetchedJob<J>[]): Promise<ReadonlySet<FetchedJob<J>>>
  /**
   * Asked in the transaction that records tries: which of them say nothing any more, since what was asked is not their
   * sender now. They are no tries: nothing of them is stored, and their messages are put back. None when absent.
   */
  outdated?(tx: Tx, answers: readonly A[]): Promise<ReadonlySet<A>>
  /** Stores the results of tries, in the caller's transaction. Safe to repeat. */
  record(tx: Tx, delivered: readonly Delivered<A>[]): Promise<void>
}
