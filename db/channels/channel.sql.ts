/**
 * What a channel is: everything that code beyond a channel's own folder needs to know of it, as one value each
 * (email.sql.ts and its neighbours). Must not know any one of them: channels.sql.ts lists them.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import type { Payload, SharedJob } from '../queue/jobs.ts'
import type { Facts } from './facts.ts'
import type { ChannelFacts, ChannelName } from './list.ts'

/** A message, whatever its channel. */
export type DeliveryRef = { team_id: string; id: string }

export type DeliveryJob = SharedJob

/** An id as it may be spelt: our own, a provider's, a request's, or an idempotency key. */
type Spellings = { uuids: readonly string[]; texts: readonly string[] }
/** A team, and an id. */
type SpeltInTeam = Spellings & { team: FragmentSqlToken }

/** What delivery, requeueing and the sweep know of messages, whether or not they are of a channel. */
export type Deliverable<J extends DeliveryJob = DeliveryJob> = {
  /** Its name in figures, metrics and rows. */
  name: ChannelName | 'webhook'
  noun: string
  job: J
  /** Whether it is test teams' alone, for the simulator; else never theirs (DECISIONS: Test teams). */
  test: boolean
  /** A message as a job's payload names it, and back. `sender`: as `sender_of` says. */
  payload: {
    of(message: DeliveryRef & { sender: string | null }): Payload<J>
    ref(payload: Payload<J>): DeliveryRef
  }
  /** The queue that a row is delivered by. */
  job_of: FragmentSqlToken
  /** What a row's job must say of its sender, where messages have senders of their own. */
  sender_of: FragmentSqlToken
  /**
   * The table of what becomes of its messages: their status, and what else changes. Its column `unfinished` says which
   * wait to be delivered now: whatever counts, sweeps, requeues, redrives and alerts goes by that alone.
   */
  rows: FragmentSqlToken
  /** Whether a row has something left to deliver: now, at its time, or, when it has expired, never by itself. */
  undelivered: FragmentSqlToken
  /** Whether a row waits for its time: then it is not unfinished, has no job, and is kept all the same. */
  scheduled: FragmentSqlToken
  /** Whether a row's time is over. It is unfinished until a worker has noticed. */
  expired: FragmentSqlToken
  events: FragmentSqlToken
  /** The column that names a message in its events. */
  message: FragmentSqlToken
  /** What its events have beside what every channel's have: these columns, and the types of their values. */
  further: {
    columns: FragmentSqlToken
    types: Partial<Record<'recipient' | 'contact_id' | 'effect' | 'code', string>>
  }
  /** Whether a row `m` was refused for good and surely never handed over: `requeue --force` takes it back. */
  refused: FragmentSqlToken
  /** Whether servers deferred a row `m` until its time for attempts was over: `requeue` takes it back. */
  timed_out: FragmentSqlToken
  /**
   * Whether what a row `m` said is gone, since it was emptied for its age, or its person was erased: it would be sent
   * blank. What waits to be delivered never is.
   */
  emptied: FragmentSqlToken
  /** How many recipients of a row `m` are left, and how many are suppressed, where recipients can be suppressed. */
  suppressible?: { left: FragmentSqlToken; suppressed: FragmentSqlToken }
  /** Why a row `m` waits for its team's bulk email to be resumed, as JSON; null: it doesn't. Absent: none ever does. */
  bulk_pause?: FragmentSqlToken
  /** The ramp that a row `m` waits for, as JSON; null: it doesn't. Absent: none ever does. */
  ramp?: FragmentSqlToken
  /** The status of a message that was given up; null: it stays `queued`, and unfinished. */
  given_up_as: string | null
}

/** A channel: its facts, and its tables. */
export type Channel<J extends DeliveryJob = DeliveryJob> = Facts &
  Deliverable<J> & {
    name: ChannelName
    quota: ChannelFacts['quota']
    /** Whether a row is the team's own, and no internal mail of ours. */
    customers: FragmentSqlToken
    /**
     * Requests that several messages share, where there are such: their table, the column of a message that names its
     * request, and the JSON that says what is sent.
     */
    requests: { rows: FragmentSqlToken; named_by: FragmentSqlToken; content: FragmentSqlToken } | null
    /** The table of its templates, by name, where they are the provider's; null: it sends those of db/content/. */
    templates: FragmentSqlToken | null
    /** The broadcast that a row is of. */
    broadcast: FragmentSqlToken
    /** The query for the ids of a team's messages that an id names; each of its parts is a look-up by an index. */
    findInTeam: (by: SpeltInTeam) => FragmentSqlToken
    /** The query for messages of any team that an id names; each of its parts is a look-up by an index, too. */
    findAnywhere: (by: Spellings) => FragmentSqlToken
    /**
     * The query for a team's messages to numbers in E.164 form, newest first: id, recipient, template_id, status,
     * created_at. null: it goes to no numbers.
     */
    to_numbers:
      | ((to: {
          team: string | FragmentSqlToken
          numbers: readonly string[]
          limit: number
        }) => FragmentSqlToken)
      | null
  }

/** Whether a row is a test team's: of any table with a team_id. */
export const ofTestTeam = sql.fragment`team_id in (select id from teams where test)`

/** Of a channel's rows: when they go, and until when. */
export const timed = {
  scheduled: sql.fragment`due_at is not null`,
  expired: sql.fragment`(expired_at is not null or coalesce(expires_at <= service_time(), false))`,
}

/** Conditions on ids as they may be spelt. */
export const anyUuid = (uuids: readonly string[]) => sql.fragment`any(${sql.array(uuids, 'uuid')})`
export const anyText = (texts: readonly string[]) => sql.fragment`any(${sql.array(texts, 'text')})`

/** How references travel, as rows of a statement. */
export const REF = { team_id: 'uuid', id: 'uuid' }
