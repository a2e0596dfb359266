/**
 * The queries behind requeueing and giving up, for every channel: rows that the queue gave up on, what can be
 * requeued, and the timeline entries about both.
 */
import { sql } from 'slonik'
import { boolean, type InferType, object, string } from 'yup'
import { type Channel, type Deliverable, type DeliveryRef, refTuples } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { openDeadLetters } from '../queue/dead-letters.sql.ts'
import { SHARED_JOBS } from '../queue/jobs.ts'
import { firstIdAt } from '../text/ids.ts'

const refRow = object({ team_id: string().defined(), id: string().defined() })

/** Whether the timeline of a row `m` says that it was given up since its tries count. */
export const gaveUp = ({ events, message }: Deliverable) => sql.fragment`
  exists (
    select from ${events} v
    where v.team_id = m.team_id and v.${message} = m.id and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.tries_from, m.created_at))`

const givenUpRow = refRow.shape({ since: string().defined(), reason: string().defined().nullable() })

/** Rows whose delivery job is a dead letter that their timeline does not name yet, oldest first. */
export async function givenUpMessages(tx: Tx, channel: Deliverable, limit: number) {
  return tx.any(sql.type(givenUpRow)`
    select m.team_id, m.id, coalesce(m.tries_from, m.created_at) as since, d.reason
    from ${openDeadLetters(channel.job)} d
      join ${channel.rows} m on m.team_id = (d.data ->> 'team_id')::uuid and m.id = d.source_id
    where not ${gaveUp(channel)}
    order by d.created_on limit ${limit}`)
}

/** What an operator picks a team's messages by. */
export type Picked = {
  /** Only these. */
  ids?: readonly string[] | undefined
  status?: string | undefined
  since?: Date | undefined
  /** Also those that were refused in the dialogue itself, and so never handed over. */
  force: boolean
}

/** A part of them: those after one id, up to another, `most` at most. */
export type Part = { after: string; until: string; limit: number }

/** Whether a message can be requeued: it is unfinished, or taken back by force. */
const canBeRequeued = ({ refused }: Deliverable, force: boolean) =>
  force ? sql.fragment`(unfinished or ${refused})` : sql.fragment`unfinished`

/** The team's messages that fit and can be requeued, oldest first. */
export async function requeueableMessages(
  tx: Tx,
  channel: Deliverable,
  teamId: string,
  { ids, status, since, force }: Picked,
  part?: Part,
): Promise<readonly DeliveryRef[]> {
  const all = sql.fragment`true`
  const fitsId = ids === undefined ? all : sql.fragment`id = any(${sql.array(ids, 'uuid')})`
  const fitsStatus = status === undefined ? all : sql.fragment`status = ${status}`
  const fitsTime = since === undefined ? all : sql.fragment`id >= ${firstIdAt(since)}`
  const fitsPart = part ? sql.fragment`id > ${part.after} and id <= ${part.until}` : all
  return tx.any(sql.type(refRow)`
    select team_id, id from ${channel.rows}
    where team_id = ${teamId} and ${fitsId} and ${fitsStatus} and ${fitsTime} and ${fitsPart}
      and ${canBeRequeued(channel, force)}
    order by id limit ${part?.limit ?? null}`)
}

/** Those of the messages that a person requeued at this time, oldest first. */
export async function requeuedAt(
  tx: Tx,
  channel: Deliverable,
  teamId: string,
  { ids, at }: { ids: readonly string[]; at: Date },
): Promise<readonly DeliveryRef[]> {
  return tx.any(sql.type(refRow)`
    select team_id, id from ${channel.rows}
    where team_id = ${teamId} and id = any(${sql.array([...ids], 'uuid')}) and requeued_at = ${sql.timestamp(at)}
    order by id`)
}

/** How messages are requeued. A person's wish resets their tries and hours; the sweep's finds do not. */
export type How = { by: 'person' | 'sweep'; force?: boolean }

const requeuedRow = refRow.shape({
  job: string().oneOf(SHARED_JOBS).defined(),
  sender: string().defined().nullable(),
})
/** A requeued row, its queue, and what its job must say of its sender. */
export type Requeued = InferType<typeof requeuedRow>

/**
 * Marks rows as requeued, those that still can be; locked by id, as everywhere. @returns these, with their queues.
 */
export async function markRequeued(
  tx: Tx,
  channel: Deliverable,
  refs: readonly DeliveryRef[],
  { now, by, force = false }: How & { now: Date },
): Promise<readonly Requeued[]> {
  const time = sql.timestamp(now)
  const triesFrom = by === 'person' ? time : sql.fragment`m.tries_from`
  return tx.any(sql.type(requeuedRow)`
    with held as materialized (
      select team_id, id from ${channel.rows}
      where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id)) and ${canBeRequeued(channel, force)}
      order by team_id, id for no key update
    )
    update ${channel.rows} m set
      requeued_at = ${time}, tries_from = ${triesFrom}, status = case when m.unfinished then m.status else 'queued' end
    from held h where m.team_id = h.team_id and m.id = h.id
    returning m.team_id, m.id, ${channel.job_of} as job, ${channel.sender_of} as sender`)
}

/** Gives messages the status of what was given up, where there is one. */
export async function markGivenUp(
  tx: Tx,
  { rows, given_up_as }: Deliverable,
  refs: readonly DeliveryRef[],
): Promise<void> {
  if (given_up_as === null || refs.length === 0) return
  await tx.query(sql.type(object())`
    update ${rows} set status = ${given_up_as}
    where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id)) and unfinished`)
}

/** A timeline entry of our own, not of a provider. */
export type Note = DeliveryRef & {
  event_key: string
  kind: 'requeued' | 'gave_up'
  occurred_at: Date
  detail: string
}

/** Only what channels send is known to a provider. */
const hasProvider = (channel: Deliverable): channel is Channel => 'customers' in channel

const stateRow = object({
  status: string().defined(),
  unfinished: boolean().defined(),
  given_up: boolean().defined(),
  handed_over_as: string().defined().nullable(),
})

/** Whether a message has something left to deliver, and whether that was given up; null without one. */
export async function deliveryState(tx: Tx, channel: Deliverable, { team_id, id }: DeliveryRef) {
  return tx.maybeOne(sql.type(stateRow)`
    select status, unfinished, ${gaveUp(channel)} as given_up,
      ${hasProvider(channel) ? sql.fragment`provider_message_id` : sql.fragment`null::text`} as handed_over_as
    from ${channel.rows} m
    where team_id = ${team_id} and id = ${id}`)
}

const waysRow = object({ unfinished: boolean().defined(), refused: boolean().defined() })

/**
 * Whether a message still waits to be handed over, and whether it was refused without ever being; null without one.
 */
export async function requeueWays(tx: Tx, { rows, refused }: Deliverable, { team_id, id }: DeliveryRef) {
  return tx.maybeOne(sql.type(waysRow)`
    select unfinished, ${refused} as refused from ${rows} where team_id = ${team_id} and id = ${id}`)
}
