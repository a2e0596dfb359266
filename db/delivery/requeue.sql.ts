/** Queries for requeueing and failing messages of every channel. */
import { sql } from 'slonik'
import { array, boolean, mixed, object, string } from 'yup'
import type { BulkPause } from '../accounts/teams/reputation.ts'
import { isSuspended } from '../accounts/teams/teams.sql.ts'
import { type Channel, type Deliverable, type DeliveryRef, REF } from '../channels/channel.sql.ts'
import { allOf } from '../postgres/conditions.ts'
import type { Tx } from '../postgres/pool.ts'
import { refRow, row, rowsOf } from '../postgres/rows.ts'
import { wasSeen } from '../postgres/snapshot.sql.ts'
import { isOfNewerQueue, openDeadLetters } from '../queue/dead-letters.sql.ts'
import { SHARED_JOBS } from '../queue/jobs.ts'
import { firstIdAt } from '../validation/ids.ts'

/**
 * True if the timeline of a row has a failure since its attempts started to count.
 * @param m its alias. @param seen a snapshot that has the failure.
 */
export const gaveUp = ({ events, message }: Deliverable, m = sql.fragment`m`, seen?: string) => sql.fragment`
  exists (
    select from ${events} v
    where v.team_id = ${m}.team_id and v.${message} = ${m}.id and v.kind = 'gave_up'
      and ${allOf(
        sql.fragment`v.occurred_at >= coalesce(${m}.tries_from, ${m}.created_at)`,
        seen !== undefined && wasSeen(sql.fragment`v`, seen),
      )})`

const givenUpRow = refRow.concat(row({ since: string(), reason: string().nullable() }))

/** Returns rows whose job is a dead letter that isn't in their timeline yet, oldest first. */
export const findDeadLettered = (tx: Tx, channel: Deliverable, limit: number) =>
  tx.any(sql.type(givenUpRow)`
    select m.team_id, m.id, coalesce(m.tries_from, m.created_at) as since, d.reason
    from ${openDeadLetters(channel.job)} d
      join ${channel.rows} m on m.team_id = (d.data ->> 'team_id')::uuid and m.id = d.source_id
    where not ${gaveUp(channel)}
    order by d.created_on limit ${limit}`)

/** An operator's selection of a team's messages. */
type Picked = {
  ids?: readonly string[] | undefined
  status?: string | undefined
  since?: Date | undefined
  /** Include messages that were rejected without ever being accepted. */
  force: boolean
  /** With `force`, for a single message: also if it is scheduled or expired. */
  named?: boolean
}

/** A range of messages: after one ID, up to another, at most `limit`. */
type Part = { after: string; until: string; limit: number }

/** True if a row `m` can be requeued: it is waiting, or `force` includes it. */
function canBeRequeued(
  { refused, timed_out, undelivered, expired, emptied }: Deliverable,
  { by, force, named }: How,
) {
  if (by === 'sweep') return sql.fragment`unfinished`
  const ended = force ? sql.fragment`(${refused} or ${timed_out})` : timed_out
  if (force && named) return sql.fragment`((${undelivered} or ${ended}) and not ${emptied})`
  return sql.fragment`((unfinished or ${ended} and not ${emptied}) and not ${expired})`
}

/** Returns the team's matching messages that can be requeued, oldest first. */
export async function requeueableMessages(
  tx: Tx,
  channel: Deliverable,
  teamId: string,
  { ids, status, since, force, named = false }: Picked,
  part?: Part,
) {
  const fits = allOf(
    sql.fragment`team_id = ${teamId}`,
    ids && sql.fragment`id = any(${sql.array(ids, 'uuid')})`,
    status !== undefined && sql.fragment`status = ${status}`,
    since && sql.fragment`id >= ${firstIdAt(since)}`,
    part && sql.fragment`id > ${part.after} and id <= ${part.until}`,
  )
  return tx.any(sql.type(refRow)`
    select team_id, id from ${channel.rows} m
    where ${fits} and ${canBeRequeued(channel, { by: 'person', force, named })}
    order by id limit ${part?.limit ?? null}`)
}

const addressedRow = refRow.concat(row({ recipients: array(string()).nullable(), of_broadcast: boolean() }))

/** Returns the recipients of messages. Null if suppressions never stop the message. */
export const suppressibleRecipients = (tx: Tx, channel: Deliverable, refs: readonly DeliveryRef[]) =>
  tx.any(sql.type(addressedRow)`
    select team_id, id, ${channel.suppressible ?? sql.fragment`null::text[]`} as recipients,
      ${hasProvider(channel) ? channel.broadcast : sql.fragment`null`} is not null as of_broadcast
    from ${channel.rows} m
    where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)}) order by id`)

/** Returns the messages that were requeued manually at this time, oldest first. */
export const requeuedAt = (
  tx: Tx,
  channel: Deliverable,
  teamId: string,
  { ids, at }: { ids: readonly string[]; at: Date },
) =>
  tx.any(sql.type(refRow)`
    select team_id, id from ${channel.rows}
    where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and requeued_at = ${sql.timestamp(at)}
    order by id`)

/** How messages are requeued. A manual requeue resets attempts and deadline. The sweep doesn't. */
export type How = { by: 'person' | 'sweep' } & Partial<Pick<Picked, 'force' | 'named'>>

const requeuedRow = refRow.concat(row({ job: string().oneOf(SHARED_JOBS), sender: string().nullable() }))

/**
 * Marks rows as requeued if they still can be, and no newer version delivers them. Locks them in ID order.
 * @returns the marked rows with their queues.
 */
export async function markRequeued(
  tx: Tx,
  channel: Deliverable,
  refs: readonly DeliveryRef[],
  { now, ...how }: How & { now: Date },
) {
  const time = sql.timestamp(now)
  const triesFrom = how.by === 'person' ? time : sql.fragment`m.tries_from`
  const isNewer = await isOfNewerQueue(tx, sql.fragment`held_id`)
  return tx.any(sql.type(requeuedRow)`
    with held (held_team, held_id) as materialized (
      select team_id, id from ${channel.rows} m
      where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)}) and ${canBeRequeued(channel, how)}
      order by team_id, id for no key update
    )
    update ${channel.rows} m set
      requeued_at = ${time}, tries_from = ${triesFrom}, status = case when ${channel.undelivered} then m.status else 'queued' end
      ${channel.queued_again ?? sql.fragment``}
      ${channel.name === 'email' && how.by === 'person' ? suppressionFor(how) : sql.fragment``}
      ${how.named && hasProvider(channel) ? sentNow(channel, time) : sql.fragment``}
    from held
    where m.team_id = held_team and m.id = held_id and not ${isNewer}
    returning m.team_id, m.id, ${channel.job_of} as job, ${channel.sender_of} as sender`)
}

/** With --force for a single message, suppressed recipients also receive it. */
const suppressionFor = ({ force, named }: How) =>
  sql.fragment`, suppression = ${force && named ? 'ignored' : null}`

/** A scheduled message is sent now and keeps its time to expiry. The expiry of an expired message is removed. */
const sentNow = ({ expired }: Channel, now: ReturnType<typeof sql.timestamp>) => sql.fragment`,
  scheduled_at = case when due_at is not null then ${now} else scheduled_at end,
  expires_at = case
    when due_at is not null then expires_at + (${now} - due_at)
    when not ${expired} then expires_at
  end,
  due_at = null, expired_at = null`

/** Gives messages the status for failed ones, if the channel has one. */
export async function markFailed(tx: Tx, { rows, given_up_as }: Deliverable, refs: readonly DeliveryRef[]) {
  if (given_up_as === null || refs.length === 0) return
  await tx.query(sql.type(object())`
    update ${rows} set status = ${given_up_as}
    where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)}) and unfinished`)
}

/** A timeline entry that we create, not a provider. */
export type Note = DeliveryRef & {
  event_key: string
  kind: 'requeued' | 'gave_up'
  occurred_at: Date
  detail: string
}

/** Only messages of channels have a provider. */
const hasProvider = (channel: Deliverable): channel is Channel => 'customers' in channel

const stateRow = row({
  job: string().oneOf(SHARED_JOBS),
  /** The sender for its job. */
  sender: string().nullable(),
  status: string(),
  unfinished: boolean(),
  /** The scheduled time while it waits. */
  due_at: string().nullable(),
  expired: boolean(),
  refused: boolean(),
  timed_out: boolean(),
  emptied: boolean(),
  given_up: boolean(),
  newer: boolean(),
  suspended: boolean(),
  bulk_pause: mixed<BulkPause>().nullable(),
  ramp: mixed<{ name: string; limit: number }>().nullable(),
  handed_over_as: string().nullable(),
})

/**
 * Returns a message's queue and delivery state: unfinished, failed, rejected without being accepted, purged, team
 * suspended, and the pause of bulk email that it waits for. Null if it doesn't exist.
 */
export async function deliveryState(tx: Tx, channel: Deliverable, { team_id, id }: DeliveryRef) {
  const isNewer = await isOfNewerQueue(tx, sql.fragment`m.id`)
  return tx.maybeOne(sql.type(stateRow)`
    select ${channel.job_of} as job, ${channel.sender_of} as sender, status, unfinished, ${gaveUp(channel)} as given_up,
      ${isNewer} as newer, ${isSuspended(sql.fragment`m.team_id`)} as suspended,
      ${channel.undelivered} and ${channel.expired} as expired, ${channel.refused} as refused,
      coalesce(${channel.timed_out}, false) as timed_out,
      ${channel.emptied} as emptied, ${channel.bulk_pause ?? sql.fragment`null::json`} as bulk_pause,
      ${channel.ramp ?? sql.fragment`null::json`} as ramp,
      ${hasProvider(channel) ? sql.fragment`due_at` : sql.fragment`null::timestamptz`} as due_at,
      ${hasProvider(channel) ? sql.fragment`provider_message_id` : sql.fragment`null::text`} as handed_over_as
    from ${channel.rows} m
    where team_id = ${team_id} and id = ${id}`)
}

export type DeliveryState = Awaited<ReturnType<typeof deliveryState>>
