/** The interface of a channel: everything that other code needs to know about it (email.sql.ts and others). */
import { type FragmentSqlToken, sql } from 'slonik'
import type { Payload, SharedJob } from '../queue/jobs.ts'
import type { Facts } from './facts.ts'
import type { ChannelFacts, ChannelName } from './list.ts'

/** A message, whatever its channel. */
export type DeliveryRef = { team_id: string; id: string }

export type DeliveryJob = SharedJob

/** The forms of an ID: our own, a provider's, a request's, or an idempotency key. */
type Spellings = { uuids: readonly string[]; texts: readonly string[] }
/** A team, and an id. */
type SpeltInTeam = Spellings & { team: FragmentSqlToken }

/** What delivery, requeueing and the sweep know of a kind of message. */
export type Deliverable<J extends DeliveryJob = DeliveryJob> = {
  name: ChannelName | 'webhook'
  noun: string
  job: J
  /**
   * True if it only delivers messages of test teams, for the simulator. Otherwise it never does (DECISIONS: Test
   * teams).
   */
  test: boolean
  /** Converts between a message and a job's payload. `sender`: from `sender_of`. */
  payload: {
    of(message: DeliveryRef & { sender: string | null }): Payload<J>
    ref(payload: Payload<J>): DeliveryRef
  }
  /** The queue that a row is delivered by. */
  job_of: FragmentSqlToken
  /** What else an update of a row `m` sets that releases or requeues it. */
  queued_again?: FragmentSqlToken
  /** The sender for a row's job, if messages have their own senders. */
  sender_of: FragmentSqlToken
  /**
   * The table of its messages' states. Its column `unfinished` marks messages waiting to be delivered now. Counts,
   * sweeps, requeues, redrives and alerts only use this column.
   */
  rows: FragmentSqlToken
  /** True if a row has something left to deliver, now or when it is due, or if it has expired. */
  undelivered: FragmentSqlToken
  /** True if a row is scheduled: it isn't unfinished and has no job, but is kept. */
  scheduled: FragmentSqlToken
  /** True if a row has expired. It stays unfinished until a worker notices. */
  expired: FragmentSqlToken
  events: FragmentSqlToken
  message: FragmentSqlToken
  further: {
    columns: FragmentSqlToken
    types: Partial<Record<'recipient' | 'contact_id' | 'effect' | 'code', string>>
  }
  /** True if a row `m` was permanently rejected and never accepted, so that `requeue --force` includes it. */
  refused: FragmentSqlToken
  /** True if servers deferred a row `m` until its deadline, so that `requeue` includes it. */
  timed_out: FragmentSqlToken
  /** True if the content of a row `m` was purged or erased. Never true for waiting messages. */
  emptied: FragmentSqlToken
  /** The recipients of a row `m` if suppressions can stop some of them. Otherwise null, or absent. */
  suppressible?: FragmentSqlToken
  /** Why a row `m` waits for its team's bulk email to be resumed, as JSON, or null. Absent if no row ever does. */
  bulk_pause?: FragmentSqlToken
  /** The ramp of a row `m` that waits for it, as JSON, or null. Absent if no row ever does. */
  ramp?: FragmentSqlToken
  /** The status of a failed message. Null: it stays `queued` and unfinished. */
  given_up_as: string | null
}

export type Channel<J extends DeliveryJob = DeliveryJob> = Facts &
  Deliverable<J> & {
    name: ChannelName
    quota: ChannelFacts['quota']
    /** True for the team's own messages, false for internal ones. */
    customers: FragmentSqlToken
    /**
     * The requests that several messages share, if any: their table, the message column that references it, and the
     * JSON of the content.
     */
    requests: { rows: FragmentSqlToken; named_by: FragmentSqlToken; content: FragmentSqlToken } | null
    /** The table of the provider's templates. Null: it uses those of db/content/. */
    templates: FragmentSqlToken | null
    /** The broadcast of a row. */
    broadcast: FragmentSqlToken
    /** The query for a team's messages with an ID. Each part uses an index. */
    findInTeam: (by: SpeltInTeam) => FragmentSqlToken
    /** The query for messages of any team with an ID. Each part uses an index. */
    findAnywhere: (by: Spellings) => FragmentSqlToken
    /**
     * The query for a team's messages to numbers in E.164 format, newest first: id, recipient, template_id, status,
     * created_at. Null: the channel has no numbers.
     */
    to_numbers:
      | ((to: {
          team: string | FragmentSqlToken
          numbers: readonly string[]
          limit: number
        }) => FragmentSqlToken)
      | null
  }

/** True for rows of test teams, in any table with a team_id. */
export const ofTestTeam = sql.fragment`team_id in (select id from teams where test)`

/** The times of a channel's rows: when they are due, and when they expire. */
export const timed = {
  scheduled: sql.fragment`due_at is not null`,
  expired: sql.fragment`(expired_at is not null or coalesce(expires_at <= service_time(), false))`,
}

/** Conditions on the forms of IDs. */
export const anyUuid = (uuids: readonly string[]) => sql.fragment`any(${sql.array(uuids, 'uuid')})`
export const anyText = (texts: readonly string[]) => sql.fragment`any(${sql.array(texts, 'text')})`

export const REF = { team_id: 'uuid', id: 'uuid' }
