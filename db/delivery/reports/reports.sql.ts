/** Rows of reports, which aren't parsed here. */

import { sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import { MAIL_REPORTER } from '../../channels/email.ts'
import { CHANNEL_FACTS } from '../../channels/list.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, idRow, row, rowsOf } from '../../postgres/rows.ts'
import { wasSeen } from '../../postgres/snapshot.sql.ts'
import { withoutJob } from '../../queue/dead-letters.sql.ts'
import { firstIdAt } from '../../validation/ids.ts'

/** The sources of reports. `test` is the simulator of test teams, for any channel. */
export const PROVIDERS = [...CHANNEL_FACTS.flatMap(({ providers }) => [...providers]), 'test' as const]
export type Provider = (typeof PROVIDERS)[number]

export const REPORT_STATES = ['pending', 'done', 'parked'] as const
export type ReportState = (typeof REPORT_STATES)[number]

type NewReport = {
  id: string
  provider: Provider
  event_key: string
  body: Buffer
  received_at: Date
  retry_until: Date
}

const REPORT = {
  ...{ id: 'uuid', provider: 'text', event_key: 'text', begin: 'int4', bytes: 'int4' },
  ...{ received_at: 'timestamptz', retry_until: 'timestamptz' },
}

/**
 * Stores reports in one statement, in the order of their keys, so that batches can't deadlock. Their bodies are sent
 * as one concatenated value, because an array would be text of twice the size.
 * @returns the IDs of new reports. Repeats, also within the batch, store nothing.
 */
export async function insertReports(tx: Tx, reports: readonly NewReport[]): Promise<Set<string>> {
  let begin = 1
  const items = reports.map(({ body, ...report }) => {
    const item = { ...report, begin, bytes: body.length }
    begin += body.length
    return item
  })
  const bodies = Buffer.concat(reports.map(({ body }) => body))
  const found = await tx.anyFirst(sql.prepared('insert_reports', idRow)`
    insert into reports (id, provider, event_key, body, received_at, retry_until)
    select id, provider, event_key, substring(${sql.binary(bodies)}::bytea from begin for bytes), received_at, retry_until
    from ${rowsOf('r', REPORT, items)}
    order by provider, event_key, id
    on conflict (provider, event_key) do nothing
    returning id`)
  return new Set(found)
}

const pendingRow = row({
  id: string(),
  /** May be unknown to this version, if a newer web process stored the report. */
  provider: string(),
  bytes: number(),
  /** Null if it is large. It is then read separately. */
  body: mixed<Buffer>().nullable(),
  received_at: string(),
  retry_until: string(),
})
export type PendingReport = InferType<typeof pendingRow>

/** Larger bodies are read separately, in bytes. */
const SMALL_BODY = 64 * 1024

/** Returns reports that are still to be ingested, oldest first. */
export const pendingReports = (tx: Tx, ids: readonly string[]) =>
  tx.any(sql.prepared('pending_reports', pendingRow)`
    select id, provider, octet_length(body) as bytes, received_at, retry_until,
      case when octet_length(body) <= ${SMALL_BODY} then body end as body
    from reports where id = any(${sql.array(ids, 'uuid')}) and state = 'pending' order by id`)

const bodyRow = row({ id: string(), body: mixed<Buffer>() })

export async function reportBodies(tx: Tx, ids: readonly string[]): Promise<Map<string, Buffer>> {
  const rows = await tx.any(sql.prepared('report_bodies', bodyRow)`
    select id, body from reports where id = any(${sql.array(ids, 'uuid')})`)
  return new Map(rows.map(({ id, body }) => [id, body]))
}

/** The first bytes of a report, which contain its recipient and status. The rest can be large. */
export const HEAD_BYTES = 16 * 1024

const headRow = row({ id: string(), head: mixed<Buffer>() })

/** Returns the first bytes of reports. */
export async function reportHeads(tx: Tx, ids: readonly string[]): Promise<Map<string, Buffer>> {
  const rows = await tx.any(sql.type(headRow)`
    select id, substring(body for ${HEAD_BYTES}::int) as head from reports where id = any(${sql.array(ids, 'uuid')})`)
  return new Map(rows.map(({ id, head }) => [id, head]))
}

/** Returns reports received before `before` that are pending without a job, oldest first. */
export const lostReports = (tx: Tx, before: Date, limit: number) =>
  tx.anyFirst(sql.type(idRow)`
    select id from reports r where state = 'pending' and received_at < ${sql.timestamp(before)}
      and ${withoutJob('ingest-report', sql.fragment`r.id`)}
    order by received_at limit ${limit}`)

/** Deletes up to `limit` reports older than `before`, by their IDs' time, that aren't pending. @returns how many. */
export async function deleteOldReports(tx: Tx, before: Date, limit: number): Promise<number> {
  const oldest = firstIdAt(before)
  return tx.oneFirst(sql.type(countRow)`
    with old as (
      select id from reports where state <> 'pending' and id < ${oldest} limit ${limit}),
    gone as (delete from reports where id in (select id from old) returning 1)
    select count(*) as count from gone`)
}

/** Deletes reports that are not about email of ours. */
export const deleteReports = (tx: Tx, ids: readonly string[]) =>
  tx.query(sql.type(object())`delete from reports where id = any(${sql.array(ids, 'uuid')})`)

type EndedReport = {
  id: string
  state: 'done' | 'parked'
  reason: string | null
  /** The teams whose messages it is about, as far as known. */
  team_ids?: readonly string[]
}

export async function endReports(tx: Tx, settled: readonly EndedReport[]): Promise<void> {
  const items = settled.map((report) => ({ team_ids: [], ...report }))
  await tx.query(sql.prepared('end_reports', object())`
    update reports r set state = s.state, reason = s.reason,
      team_ids = array(select json_array_elements_text(s.team_ids)::uuid order by 1)
    from ${rowsOf('s', { id: 'uuid', state: 'text', reason: 'text', team_ids: 'json' }, items)}
    where r.id = s.id and r.state = 'pending'`)
}

/** Replaces the content of reports. Null deletes the report. */
export async function rewriteReports(
  tx: Tx,
  reports: readonly { id: string; body: Buffer | null }[],
): Promise<void> {
  if (reports.length === 0) return
  const left = reports.filter(({ body }) => body !== null)
  const gone = reports.filter(({ body }) => body === null).map(({ id }) => id)
  await tx.query(sql.type(object())`
    with gone as (delete from reports where id = any(${sql.array(gone, 'uuid')}))
    update reports r set body = k.body from ${rowsOf('k', { id: 'uuid', body: 'bytea' }, left)} where r.id = k.id`)
}

const storedRow = row({ id: string(), body: mixed<Buffer>().nullable() })
/** How many reports, and how many bytes of them, one slice reads. */
const STORED_SLICE = { reports: 1_000, bytes: 8 * 1024 * 1024 }

/** Returns the next reports after an ID, in ID order. Only those of the provider include their content. */
export const storedAfter = (tx: Tx, provider: Provider, after: string) =>
  tx.any(sql.type(storedRow)`
    with next as materialized (
      select id, provider = ${provider} as is_own, octet_length(body) as bytes from reports
      where id > ${after} order by id limit ${STORED_SLICE.reports}
    ), summed as (
      select id, is_own, row_number() over (order by id) as n,
        sum(case when is_own then bytes else 0 end) over (order by id) as bytes from next
    )
    select s.id, case when s.is_own then r.body end as body
    from summed s join reports r on r.id = s.id where s.n = 1 or s.bytes <= ${STORED_SLICE.bytes} order by s.id`)

/** True if the provider has reported anything that is kept. */
export const hasReports = (tx: Tx, provider: Provider) =>
  tx.exists(sql.unsafe`select from reports where provider = ${provider}`)

const reportRow = row({
  id: string(),
  provider: string(),
  event_key: string(),
  received_at: string(),
  state: string().oneOf(REPORT_STATES),
  reason: string().nullable(),
  bytes: number(),
})
export type ReportRow = InferType<typeof reportRow>

const reportColumns = sql.fragment`
  id, provider, event_key, received_at, state, reason, octet_length(body) as bytes`

const providerRow = row({ id: string(), provider: string() })

/** Returns the providers of the reports that still exist. */
export async function providersOfReports(tx: Tx, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await tx.any(sql.type(providerRow)`
    select id, provider from reports where id = any(${sql.array(ids, 'uuid')})`)
  return new Map(rows.map(({ id, provider }) => [id, provider]))
}

export const reportsByState = (
  tx: Tx,
  { state, limit }: { state?: ReportState | undefined; limit: number },
) =>
  tx.any(sql.type(reportRow)`
    select ${reportColumns} from reports where ${allOf(state !== undefined && sql.fragment`state = ${state}`)} order by id desc limit ${limit}`)

export const reportById = (tx: Tx, id: string) =>
  tx.maybeOne(sql.type(reportRow)`select ${reportColumns} from reports where id = ${id}`)

/** Deletes a parked report. @returns the report, or null unless it exists and is parked. */
export const deleteParkedReport = (tx: Tx, id: string) =>
  tx.maybeOne(sql.type(reportRow)`
    delete from reports where id = ${id} and state = 'parked' returning ${reportColumns}`)

/** Makes a report pending again. @returns it, or null without one. */
export const reopenReport = (tx: Tx, id: string, retryUntil: Date) =>
  tx.maybeOne(sql.type(reportRow)`
    update reports set state = 'pending', reason = null, retry_until = ${sql.timestamp(retryUntil)}
    where id = ${id} returning ${reportColumns}`)

/**
 * Filters parked reports. `reason` matches a part of the reason, ignoring case. `before`: received earlier. `seen`:
 * only reports parked at that snapshot, at most `most`.
 */
export type ParkedFilter = {
  ids?: readonly string[] | undefined
  provider?: Provider | undefined
  reason?: string | undefined
  before?: Date | undefined
  seen?: string | undefined
  most?: number | undefined
}

const parked = ({ ids, provider, reason, before, seen }: ParkedFilter) =>
  allOf(
    sql.fragment`state = 'parked'`,
    ids && sql.fragment`id = any(${sql.array(ids, 'uuid')})`,
    provider && sql.fragment`provider = ${provider}`,
    reason !== undefined && sql.fragment`strpos(lower(reason), lower(${reason})) > 0`,
    before && sql.fragment`received_at < ${sql.timestamp(before)}`,
    seen !== undefined && wasSeen(sql.fragment`reports`, seen),
  )

const idsParked = (filter: ParkedFilter) => sql.fragment`(
  select id from reports where ${parked(filter)} order by id limit ${filter.most ?? null} for update)`

/**
 * Returns parked reports without their content, newest first, after the report `after`. With `limit` null, all.
 * Sorted by the index of unsettled reports: by ID, the planner would scan all finished ones.
 */
export async function parkedReports(
  tx: Tx,
  { after, limit, ...filter }: ParkedFilter & { after?: string | undefined; limit: number | null },
) {
  const older =
    after !== undefined &&
    sql.fragment`(received_at, id) < (select received_at, id from reports where id = ${after})`
  return tx.any(sql.type(reportRow)`
    select ${reportColumns} from reports where ${allOf(parked(filter), older)}
    order by received_at desc, id desc limit ${limit}`)
}

const reasonRow = row({ reason: string(), reports: number() })

export const parkedByReason = (tx: Tx, filter: ParkedFilter) =>
  tx.any(sql.type(reasonRow)`
    select coalesce(reason, '') as reason, count(*) as reports from reports where ${parked(filter)}
    group by 1 order by 2 desc, 1 limit 50`)

/** Counts parked reports up to `most`. */
export const countParked = (tx: Tx, most: number) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*) from (select from reports where state = 'parked' limit ${most}) counted`)

const lastReportRow = row({ provider: string().oneOf(PROVIDERS), last_at: string().nullable() })

/**
 * Returns when each provider last sent a report that was stored. The index of events shows whether it ever did. Only
 * then are reports searched from the newest on.
 */
export const lastReports = (tx: Tx) =>
  tx.any(sql.type(lastReportRow)`
    select p.provider, case
      when (select r.provider from reports r where r.provider = p.provider order by r.event_key limit 1) is not null
      then (select received_at from reports r where r.provider = p.provider order by r.id desc limit 1)
    end as last_at
    from unnest(${sql.array(PROVIDERS, 'text')}) as p (provider) order by 1`)

/** Returns when mail servers last sent a report that was stored, or null. */
export const lastMailReport = async (tx: Tx): Promise<string | null> =>
  (await lastReports(tx)).find(({ provider }) => provider === MAIL_REPORTER)?.last_at ?? null

/** Deletes parked reports. @returns how many. */
export const deleteParkedReports = (tx: Tx, filter: ParkedFilter) =>
  tx.oneFirst(sql.type(countRow)`
    with gone as (delete from reports where id in ${idsParked(filter)} returning 1)
    select count(*) as count from gone`)

/** Makes parked reports pending again. @returns their IDs. */
export const reopenReports = (tx: Tx, filter: ParkedFilter, retryUntil: Date) =>
  tx.anyFirst(sql.type(idRow)`
    update reports set state = 'pending', reason = null, retry_until = ${sql.timestamp(retryUntil)}
    where id in ${idsParked(filter)} returning id`)
