/** Queries on processes and counters, and for the metrics of the fleet. */
import { sql } from 'slonik'
import { array, type InferType, mixed, number, object, string } from 'yup'
import { CHANNELS } from '../../channels/channels.sql.ts'
import { WEBHOOK_SENDERS } from '../../channels/webhook.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import type { Addition } from '../../process/metrics.ts'

export const STORED_GAUGES = [
  'event_loop_lag_seconds',
  'resident_memory_bytes',
  'connections_busy',
  'connections_waiting',
  'connections_limit',
  // Utilization from 0 to 1, of its provider calls or its event loop, whichever is higher.
  'busy',
] as const

/** A process's current state, with the versions of the service and of Node. */
export type Gauges = Record<(typeof STORED_GAUGES)[number], number> & { version: string; node: string }

export type ProcessKind = 'web' | 'worker'

/** The heartbeat of a process. */
type SignOfLife = Omit<ProcessRow, 'queues' | 'started_at' | 'seen_at' | 'silent_seconds'> & {
  queues: readonly string[]
  started_at: Date
}

/** Stores a process's heartbeat and its counter increments, in one statement. */
export const storeSignOfLife = (tx: Tx, life: SignOfLife, additions: readonly Addition[]) =>
  tx.query(sql.prepared('store_sign_of_life', object())`
    with life as (
      insert into processes (id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at, version)
      values (${life.id}, ${life.kind}, ${life.host}, ${life.pid}, ${sql.array([...life.queues], 'text')},
        ${JSON.stringify(life.senders)}::json, ${JSON.stringify(life.completed)}::json,
        ${JSON.stringify(life.gauges)}::json, ${sql.timestamp(life.started_at)}, now(), ${life.gauges.version})
      on conflict (id) do update set senders = excluded.senders, completed = excluded.completed,
        gauges = excluded.gauges, seen_at = excluded.seen_at
    )
    insert into counters (figure, labels, values)
    select figure, labels, values
    from jsonb_to_recordset(${JSON.stringify(additions)}::jsonb)
      as a (figure text, labels text, values double precision[])
    order by figure, labels
    on conflict (figure, labels) do update set values = array(
      select coalesce(stored, 0) + coalesce(added, 0)
      from unnest(counters.values, excluded.values) with ordinality as v (stored, added, at) order by at)`)

export const deleteProcess = (tx: Tx, id: string) =>
  tx.query(sql.type(object())`delete from processes where id = ${id}`)

/** Deletes processes without a heartbeat for a while, because they were killed. */
export const deleteSilentProcesses = (tx: Tx, seconds: number) =>
  tx.query(sql.type(object())`
    delete from processes where seen_at < now() - make_interval(secs => ${seconds})`)

const processRow = row({
  id: string(),
  kind: string().oneOf(['web', 'worker'] as const),
  host: string(),
  pid: number(),
  queues: array(string()),
  /** The key of the sender that a queue delivers through, by queue. */
  senders: mixed<Record<string, string>>(),
  /** Jobs per second, by queue. */
  completed: mixed<Record<string, number>>(),
  gauges: mixed<Gauges>(),
  started_at: string(),
  seen_at: string(),
  silent_seconds: number(),
})
export type ProcessRow = InferType<typeof processRow>

/** Returns the processes with a heartbeat in the last `seconds`, the oldest first. */
export const liveProcesses = (tx: Tx, seconds: number) =>
  tx.any(sql.type(processRow)`
    select id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at,
      greatest(0, extract(epoch from now() - seen_at)) as silent_seconds
    from processes where seen_at > now() - make_interval(secs => ${seconds})
    order by started_at, id`)

const counterRow = row({ figure: string(), labels: string(), values: array(number()) })
export type CounterRow = InferType<typeof counterRow>

export const fleetCounters = (tx: Tx) =>
  tx.any(sql.type(counterRow)`select figure, labels, values from counters order by figure, labels`)

const senderRow = row({
  key: string(),
  /** The name of a WhatsApp number. Null for other senders. */
  name: string().nullable(),
  paused: number(),
  slowed: number(),
  full: number(),
})
export type SenderStats = InferType<typeof senderRow>

/**
 * Returns the state of every sender as 0 or 1: paused, slowed, and full if its own rate limit delays its messages.
 */
export const senderStates = (tx: Tx) =>
  tx.any(sql.type(senderRow)`
    select key, (select name from whatsapp_numbers where key = 'whatsapp:' || phone_number_id) as name,
      (troubles > 0 or coalesce(paused_until > now(), false))::int as paused,
      (slowed_at is not null and slowed_at > now() - interval '10 minutes')::int as slowed,
      (tokens + rate * greatest(0, extract(epoch from now() - refilled_at)) < 1)::int as full
    from senders where not starts_with(key, ${WEBHOOK_SENDERS}) order by key`)

const qualityRow = row({ name: string(), quality: string() })

/** Returns the quality rating of each number at its last check, or `UNKNOWN` before that. */
export const numberQualities = (tx: Tx) =>
  tx.any(sql.type(qualityRow)`
    select name, coalesce(quality, 'UNKNOWN') as quality from whatsapp_numbers where name <> 'default' order by name`)

const queuedRow = row({ channel: string(), age: number(), messages: number() })

/**
 * Counts messages that have waited longer than each of these ages, in ascending seconds. Reads the `most` oldest
 * messages of a channel, so higher ages are correct even if lower ones reach the limit.
 */
export async function queuedByAge(tx: Tx, ages: readonly number[], most: number) {
  const lowest = sql.array(ages, 'float8')
  // Scheduled messages have waited since their time. They have their own index.
  const oldest = CHANNELS.flatMap(({ name, rows }) => [
    sql.fragment`(
      select ${name}::text as channel, created_at as since from ${rows}
      where unfinished and scheduled_at is null order by created_at limit ${most})`,
    sql.fragment`(
      select ${name}::text as channel, greatest(created_at, scheduled_at) as since from ${rows}
      where unfinished and scheduled_at is not null order by scheduled_at limit ${most})`,
  ])
  const names = CHANNELS.map(({ name }) => name)
  return tx.any(sql.type(queuedRow)`
    with waiting as (
      select channel, width_bucket(extract(epoch from now() - since)::float8, ${lowest}) as place, count(*) as n
      from (${sql.join(oldest, sql.fragment` union all `)}) oldest group by channel, place
    )
    select c.channel, a.age, coalesce(sum(w.n), 0)::bigint as messages
    from unnest(${sql.array(names, 'text')}) as c (channel)
      cross join unnest(${lowest}) with ordinality as a (age, place)
      left join waiting w on w.channel = c.channel and w.place >= a.place
    group by c.channel, a.age order by c.channel, a.age`)
}

const scheduledRow = row({ channel: string(), messages: number() })

/** Counts scheduled messages by channel. They don't wait for delivery yet. */
export async function scheduledMessages(tx: Tx) {
  const counts = CHANNELS.map(
    ({ name, rows, scheduled }) => sql.fragment`
      select ${name}::text as channel, count(*) as messages from ${rows} where ${scheduled}`,
  )
  return tx.any(sql.type(scheduledRow)`${sql.join(counts, sql.fragment` union all `)} order by channel`)
}

const broadcastRow = row({ state: string(), broadcasts: number() })

/** Counts broadcasts that are sending, paused manually, or paused automatically (braked). */
export const broadcastStates = (tx: Tx) =>
  tx.any(sql.type(broadcastRow)`
    select s.state, count(b.id) as broadcasts
    from (values ('sending'), ('paused'), ('braked')) as s (state)
      left join broadcasts b on b.state in ('sending', 'paused')
        and s.state = case when b.state_reason is null then b.state else 'braked' end
    group by s.state order by s.state`)

const reportRow = row({ state: string(), reports: number(), oldest_seconds: number() })

/**
 * Counts unfinished reports, with the age of the oldest of each kind. The index needs the condition `state <>
 * 'done'`.
 */
export const openReports = (tx: Tx) =>
  tx.any(sql.type(reportRow)`
    select s.state, count(r.id) as reports,
      coalesce(greatest(0, extract(epoch from now() - min(r.received_at))), 0) as oldest_seconds
    from (values ('pending'), ('parked')) as s (state)
      left join reports r on r.state = s.state and r.state <> 'done'
    group by s.state order by s.state`)
