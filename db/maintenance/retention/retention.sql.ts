/**
 * Deletes expired data in small batches per team. Rows locked by others are skipped. Rows and events of undelivered
 * messages, and rows of the team's current period, are kept.
 */
import { type FragmentSqlToken, sql } from 'slonik'
import { boolean, type InferType, number, object, string } from 'yup'
import { type Channel, type Deliverable, type DeliveryRef, REF } from '../../channels/channel.sql.ts'
import { WEBHOOK } from '../../channels/webhook.sql.ts'
import { deleteEmails } from '../../messages/emails/delete.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { keepStats } from '../../stats/daily/broadcasts.sql.ts'

/**
 * Selects rows of a team with IDs between `after` and `before`, up to a limit. `until`: the time of `before`. A
 * message scheduled for later is younger than its ID.
 */
export type RetentionBatch = { after: string; before: string; until: Date; limit: number }

const batchRow = row({ found: number(), last: string().nullable() })
/** The size of a batch, and its last ID, after which the next one starts. */
export type BatchEnd = InferType<typeof batchRow>

/** Rows to delete, by the IDs of their messages. */
export type Kept = { rows: FragmentSqlToken; key: FragmentSqlToken }

/** A channel whose messages share requests. */
type Shared = Channel & { requests: NonNullable<Channel['requests']> }
export const sharesRequests = (channel: Channel): channel is Shared => channel.requests !== null

const byId = (rows: FragmentSqlToken): Kept => ({ rows, key: sql.fragment`id` })
export const messagesOf = ({ rows }: Deliverable): Kept => byId(rows)
export const eventsOf = ({ events, message }: Channel): Kept => ({ rows: events, key: message })
export const requestsOf = ({ requests }: Shared): Kept => byId(requests.rows)

/** IDs from `from` to before `before`, whose time is `until`. */
export type Span = { from: string; before: string; until: Date }

/** True if a message is finished, and its scheduled or acceptance time is before `until`. */
const isOver = ({ until }: Pick<RetentionBatch, 'until'>) => sql.fragment`
  (not unfinished and due_at is null and coalesce(scheduled_at < ${sql.timestamp(until)}, true))`

const teamRow = row({ id: string(), has_some: boolean() })

/** Returns the teams after `after`, in order, and whether each has any such rows, with one look-up per team. */
export const teamsAndWhetherTheyHave = (
  tx: Tx,
  { rows, key }: Kept,
  { from, before }: Omit<Span, 'until'>,
  { after, limit }: { after: string; limit: number },
) =>
  tx.any(sql.type(teamRow)`
    select t.id, one.has_some is not null as has_some
    from (select id from teams where id > ${after} order by id limit ${limit}) t left join lateral (
      select true as has_some from ${rows}
      where team_id = t.id and ${key} >= ${from} and ${key} < ${before} limit 1) one on true
    order by t.id`)

/**
 * Deletes a batch of events, by the IDs of their messages. Events of unfinished messages stay: for example, a failure
 * event keeps a message from being sent again.
 */
export async function deleteEvents(tx: Tx, teamId: string, channel: Channel, batch: RetentionBatch) {
  const { rows, events, message } = channel
  return tx.one(sql.type(batchRow)`
    with old as (
      select ctid as place from ${events} e
      where team_id = ${teamId} and ${message} >= ${batch.after} and ${message} < ${batch.before}
        and not exists (
          select from ${rows} m where m.team_id = ${teamId} and m.id = e.${message} and not ${isOver(batch)})
      order by ${message} limit ${batch.limit}
    ), gone as (
      delete from ${events} e using old where e.ctid = old.place returning e.${message} as id
    )
    select count(*) as found, max(id::text) as last from gone`)
}

/** Locks a batch of messages that are old enough, without rows of the current period. */
const oldOnes = ({ rows }: Channel, teamId: string, batch: RetentionBatch) => sql.fragment`
  select id from ${rows}
  where team_id = ${teamId} and id > ${batch.after} and id < ${batch.before} and ${isOver(batch)}
    and created_at < (
      select case when period_end > now() then period_start else period_end end
      from allowances where team_id = ${teamId})
  order by id limit ${batch.limit} for update skip locked`

/** Deletes the messages that `old` finds, with their events. @param also deletes other rows with them. */
const deleteWithEvents = (
  tx: Tx,
  teamId: string,
  { rows, events, message }: Deliverable,
  { old, also = sql.fragment`` }: { old: FragmentSqlToken; also?: FragmentSqlToken },
) =>
  tx.one(sql.type(batchRow)`
    with old as materialized (${old}), gone as (
      delete from ${rows} where team_id = ${teamId} and id in (select id from old)
    ), timeline as (
      delete from ${events} where team_id = ${teamId} and ${message} in (select id from old)
    )${also}
    select count(*) as found, max(id::text) as last from old`)

/** Deletes a batch of messages with their events. The last message also deletes its request, which frees the key. */
export function deleteMessages(tx: Tx, teamId: string, channel: Shared, batch: RetentionBatch) {
  const { rows: messages, requests } = channel
  const { rows, named_by } = requests
  const also = sql.fragment`, request as (
      delete from ${rows} r where team_id = ${teamId}
        and id in (select ${named_by} from ${messages} where team_id = ${teamId} and id in (select id from old))
        and not exists (
          select from ${messages} m
          where m.team_id = ${teamId} and m.${named_by} = r.id and m.id not in (select id from old))
    )`
  return deleteWithEvents(tx, teamId, channel, { old: oldOnes(channel, teamId, batch), also })
}

/** Does the same for emails, in a transaction. The stats of broadcasts keep them. */
export async function deleteOldEmails(tx: Tx, teamId: string, channel: Channel, batch: RetentionBatch) {
  const gone = await deleteEmails(tx, teamId, oldOnes(channel, teamId, batch))
  await keepStats(tx, teamId, gone)
  const last = gone.reduce<string | null>((most, { id }) => (most === null || id > most ? id : most), null)
  return { found: gone.length, last }
}

/** Deletes a batch of webhook messages with this status, with their attempts. */
export function deleteWebhooks(
  tx: Tx,
  teamId: string,
  status: 'delivered' | 'failed',
  batch: RetentionBatch,
) {
  const old = sql.fragment`
      select id from ${WEBHOOK.rows}
      where team_id = ${teamId} and id > ${batch.after} and id < ${batch.before} and status = ${status}
      order by id limit ${batch.limit} for update skip locked`
  return deleteWithEvents(tx, teamId, WEBHOOK, { old })
}

const emptiedRow = batchRow.concat(row({ done: number() }))
/** `done`: how many were purged. Others may have locked the rest. */
export type Emptied = InferType<typeof emptiedRow>

/** True if an email `e` has content to purge: raw HTML and text, variables, custom headers. */
const hasBody = sql.fragment`
  (e.html <> '' or e.body_text <> '' or e.variables::text <> '{}' or e.headers is not null)`

/** Purges emails of `old`. A template's own text stays. */
const emptying = sql.fragment`
  update accepted_emails e set
    html = case when e.html is not null then '' end,
    body_text = case when e.body_text is not null then '' end,
    variables = case when e.variables is not null then '{}'::json end,
    headers = null
  from old where e.team_id = old.team_id and e.id = old.id`

/**
 * Purges a batch of unscheduled emails of all teams, in storage order. At most `most` per table page, largest first:
 * the page is full, so that new versions go to other pages and into every index. Later statements use the freed
 * space. Of 500,000 emails, 86 % stayed on their page. In plain batches by ID, 4 % did, the indexes grew by 56 %, the
 * WAL was 1.8 times and the time 2.1 times as much.
 */
export const emptyEmails = (tx: Tx, batch: Omit<RetentionBatch, 'until'>, most: number) =>
  tx.one(sql.type(emptiedRow)`
    with candidate as materialized (
      select team_id, id, row_number() over (
          partition by (ctid::text::point)[0]
          order by coalesce(pg_column_size(html), 0) + coalesce(pg_column_size(body_text), 0)
            + coalesce(pg_column_size(variables), 0) + coalesce(pg_column_size(headers), 0) desc) as of_page
      from (
        select e.team_id, e.id, e.ctid, e.html, e.body_text, e.variables, e.headers from accepted_emails e
        where e.id > ${batch.after} and e.id <= ${batch.before}
          and ${hasBody}
          and exists (select from email_states s where s.team_id = e.team_id and s.id = e.id
            and not s.unfinished and s.scheduled_at is null)
        order by e.id limit ${batch.limit}) e
    ), old as materialized (
      select team_id, id from email_states
      where (team_id, id) in (select team_id, id from candidate where of_page <= ${most})
        and not unfinished
      order by team_id, id for no key update skip locked
    ), emptied as (${emptying})
    select count(*) as found, max(id::text) as last, (select count(*) from old) as done from candidate`)

/** A position among scheduled messages, in the order of their times. */
export type SchedulePosition = { at: string; id: string }

const scheduledRow = row({ team_id: string(), id: string(), request_id: string().nullable(), at: string() })

/** Returns a batch of finished messages of all teams that were scheduled between `after` and `before`. */
export const scheduledBefore = (
  tx: Tx,
  { rows, requests }: Channel,
  after: SchedulePosition,
  batch: { until: Date; limit: number },
) =>
  tx.any(sql.type(scheduledRow)`
    select team_id, id, ${requests?.named_by ?? sql.fragment`null::uuid`} as request_id, scheduled_at::text as at from ${rows}
    where scheduled_at is not null and (scheduled_at, id) > (${after.at}::timestamptz, ${after.id}::uuid) and ${isOver(batch)}
      and scheduled_at < ${sql.timestamp(batch.until)}
    order by scheduled_at, id limit ${batch.limit}`)

const doneRow = row({ done: number() })

/** Purges these emails if they are finished and not locked. @returns how many. */
export const emptyEmailsById = (tx: Tx, refs: readonly DeliveryRef[]) =>
  tx.oneFirst(sql.type(doneRow)`
    with old as materialized (
      select team_id, id from email_states
      where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)}) and not unfinished and due_at is null
      order by team_id, id for no key update skip locked
    ), emptied as (${emptying} and ${hasBody} returning 1)
    select count(*) as done from emptied`)

const sinceRow = row({ since: string().nullable() })

/** Returns when the first team was created. No message is older. */
export async function firstTeamAt(tx: Tx): Promise<Date | null> {
  const since = await tx.oneFirst(sql.type(sinceRow)`select min(created_at)::text as since from teams`)
  return since === null ? null : new Date(since)
}

/** Purges these requests, except those with an unfinished or locked message. */
const emptyThese = (
  tx: Tx,
  { rows: messages, requests: { rows, named_by, content } }: Shared,
  these: FragmentSqlToken,
  batch: Pick<RetentionBatch, 'until' | 'limit'>,
) =>
  tx.one(sql.type(batchRow)`
    with old as materialized (
      select team_id, id from ${rows} r
      where ${these} and ${content}::text <> '{}'
        and not exists (
          select from ${messages} m where m.team_id = r.team_id and m.${named_by} = r.id and not ${isOver(batch)})
      order by team_id, id limit ${batch.limit} for no key update skip locked
    ), emptied as (
      update ${rows} r set ${content} = '{}'::json
      from old where r.team_id = old.team_id and r.id = old.id
    )
    select count(*) as found, max(id::text) as last from old`)

export async function emptyRequests(tx: Tx, teamId: string, channel: Shared, batch: RetentionBatch) {
  const these = sql.fragment`team_id = ${teamId} and id > ${batch.after} and id < ${batch.before}`
  return emptyThese(tx, channel, these, batch)
}

/** @returns how many there were. */
export async function emptyRequestsById(
  tx: Tx,
  channel: Shared,
  refs: readonly DeliveryRef[],
  batch: Pick<RetentionBatch, 'until' | 'limit'>,
) {
  const these = sql.fragment`(team_id, id) in (select * from ${rowsOf('ref', REF, refs)})`
  return (await emptyThese(tx, channel, these, batch)).found
}

/** Deletes a batch of requests without messages. */
export async function deleteRequests(tx: Tx, teamId: string, channel: Shared, batch: RetentionBatch) {
  const { rows: messages, requests } = channel
  const { rows, named_by } = requests
  return tx.one(sql.type(batchRow)`
    with old as materialized (
      select id from ${rows} r
      where team_id = ${teamId} and id > ${batch.after} and id < ${batch.before}
        and not exists (select from ${messages} m where m.team_id = ${teamId} and m.${named_by} = r.id)
      order by id limit ${batch.limit} for update skip locked
    ), gone as (
      delete from ${rows} where team_id = ${teamId} and id in (select id from old)
    )
    select count(*) as found, max(id::text) as last from old`)
}

export const deleteSenderEvents = (tx: Tx, { before, limit }: RetentionBatch) =>
  tx.one(sql.type(batchRow)`
    with old as (
      select ctid as place from sender_events where id < ${before} limit ${limit}
    ), gone as (
      delete from sender_events e using old where e.ctid = old.place returning e.id
    )
    select count(*) as found, max(id::text) as last from gone`)

const markRow = row({ done_until: string() })

/** Returns the time until which bodies have been purged, or null. */
export async function emptiedUntil(tx: Tx): Promise<Date | null> {
  const until = await tx.maybeOneFirst(sql.type(markRow)`select done_until from upkeep where kind = 'bodies'`)
  return until === null ? null : new Date(until)
}

export const recordEmptied = (tx: Tx, until: Date) =>
  tx.query(sql.type(object())`
    insert into upkeep (kind, done_until) values ('bodies', ${sql.timestamp(until)})
    on conflict (kind) do update set done_until = excluded.done_until`)
