/**
 * The interface between a channel and the delivery engine (engine.ts). A channel reads, sends, judges and records its
 * messages.
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

/** One message to send. `A` is the channel's data about an attempt, from the response to the record. */
export type Outgoing<A> = {
  ref: DeliveryRef
  http_request_id: string | null
  /** The start of its attempts: when it was accepted, or requeued manually. */
  since: string
  history: AttemptHistory
  /** The last time a problem of its sender delayed it. */
  held_at: Date | null
  /** When it expires. It isn't sent after that. */
  expires_at?: Date | null
  /** The sender that it goes through. Messages with the same key share a rate limit and a circuit breaker. */
  sender: Sender
  cost: number
  /** How many seconds it waits for its own reasons, such as a paused recipient or memory for its files, or 0. */
  own_wait_seconds: number
  /** Its result if that is known without calling the provider. */
  answered?: A
  /** Why it fails without another attempt, if it does. */
  given_up?: string
  /** True if it occupies a slot for long because of its size. Others don't wait for it. */
  is_large?: boolean
  /**
   * Once it has a slot, reads what wasn't read ahead, such as a large body, and checks again if it may be sent. If it
   * throws, the message is put back without an attempt. @returns false if it needs no delivery any longer.
   */
  load?: (() => Promise<boolean>) | undefined
  /**
   * Sends it to the provider. Never throws. @param cut ends the wait for a response because the process must exit.
   */
  send(cut: AbortSignal): Promise<A>
}

export type Delivered<A> = { answer: A; end: End; at: Date }

/**
 * The senders of a channel's messages.
 * - one: the same sender for all. Nothing is claimed while it is paused.
 * - many: each message names its own (Outgoing.sender), whose key starts with `prefix` and is its job's group
 *   (db/queue/jobs.ts). Messages of paused senders aren't claimed, and others only if they can be sent soon.
 *   `paused` returns the keys of additional paused senders.
 */
export type Senders = { one(): Promise<Sender> } | ManySenders
export type ManySenders = { prefix: string; paused?(): Promise<readonly string[]> }

export type JudgeContext = PolicyContext & { history: AttemptHistory; now: Date }

export type DeliveryChannel<J extends DeliveryJob, A> = {
  channel: Deliverable<J>
  /** How long to wait for a report after a lost response before the next attempt, in seconds. */
  unknown_wait: number
  senders: Senders
  /**
   * The messages in flight per slot in addition to the one being sent, so that no slot waits for a claim. The default
   * is 2. With 0, a message is claimed and read only if a slot is free.
   */
  ahead?: number
  /** How far ahead sends are reserved, in seconds, at the rate of their reservation. The default is 5. */
  horizon?: number
  /** Reads what claimed jobs must send, in a few statements. Leaves out jobs whose row needs nothing more. */
  read(jobs: readonly FetchedJob<J>[]): Promise<ReadonlyMap<FetchedJob<J>, Outgoing<A>>>
  /** Returns the response. Decides the subject of policy rejections (`judgePolicy`), and fails overdue deferrals. */
  judge(answer: A, context: JudgeContext): A
  outcomesOf(answer: A): readonly AttemptOutcome[]
  /** Decides how the delivery ends if the channel has its own rules. The default is `nextStep` on its outcomes. */
  verdict?(answer: A, history: AttemptHistory, context: VerdictContext): End
  /**
   * Runs in the transaction that puts messages back, unsent or after an attempt without effect. Returns the jobs that
   * needn't wait. By default, all wait.
   */
  mayGoAfterAll?(tx: Tx, jobs: readonly FetchedJob<J>[]): Promise<ReadonlySet<FetchedJob<J>>>
  /**
   * Runs in the transaction that records attempts. Returns outdated attempts, whose sender isn't their message's sender
   * now. They don't count: nothing is stored, and their messages are put back. By default, every attempt counts.
   */
  outdated?(tx: Tx, answers: readonly A[]): Promise<ReadonlySet<A>>
  /** Stores the results of attempts in the caller's transaction. Safe to repeat. */
  record(tx: Tx, delivered: readonly Delivered<A>[]): Promise<void>
}
