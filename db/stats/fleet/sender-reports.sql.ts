/** The latest bounces that are about our own configuration, by sender and recipient domain. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

/** A single email doesn't prove that the configuration is wrong, because its recipient can forge a report. */
const EMAILS = 3
/** More domains within an hour add no information. */
const MAX_DOMAINS = 50

export type SenderReport = {
  sender: string
  domain: string
  email_id: string
  occurred_at: Date
  response: string
}

const REPORT = {
  ...{ sender: 'text', domain: 'text', email_id: 'uuid', occurred_at: 'timestamptz', response: 'text' },
}

/** Stores reports, and deletes reports older than a day. */
export async function storeSenderReports(tx: Tx, reports: readonly SenderReport[]): Promise<void> {
  await tx.query(sql.type(object())`
    delete from sender_reports where occurred_at < (select service_time()) - interval '1 day'`)
  await tx.query(sql.type(object())`
    insert into sender_reports (sender, domain, email_id, occurred_at, response)
    select distinct on (r.sender, r.domain) r.sender, r.domain, r.email_id, r.occurred_at, r.response
    from ${rowsOf('r', REPORT, reports)}
    where (
      select count(*) from sender_reports s
      where s.sender = r.sender and s.occurred_at > r.occurred_at - interval '1 hour') < ${MAX_DOMAINS}
    order by r.sender, r.domain, r.occurred_at desc
    on conflict (sender, domain) do update set
      email_id = excluded.email_id, occurred_at = excluded.occurred_at, response = excluded.response
    where sender_reports.occurred_at < excluded.occurred_at`)
}

const blamedRow = row({ sender: string(), last_at: string(), response: string() })

/**
 * Returns senders with such bounces of three emails to different domains within an hour, during the last 24 hours.
 */
export const misconfiguredSenders = (tx: Tx) =>
  tx.any(sql.type(blamedRow)`
    select sender, max(occurred_at) as last_at,
      (array_agg(response order by occurred_at desc))[1] as response
    from sender_reports s
    where occurred_at > (select service_time()) - interval '1 day' and exists (
      select from sender_reports o
      where o.sender = s.sender and o.occurred_at between s.occurred_at - interval '1 hour' and s.occurred_at
      having count(distinct o.email_id) >= ${EMAILS})
    group by sender order by sender`)
