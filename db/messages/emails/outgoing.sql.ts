/** The queries that read emails to deliver, with the suppressions of their recipients, and their domains. */
import { sql } from 'slonik'
import { boolean, type InferType, mixed, number, string } from 'yup'
import { sendingColumns, sendingDomainRow } from '../../accounts/domains/domains.sql.ts'
import type { BulkPause } from '../../accounts/teams/reputation.ts'
import { SUPPRESS_TRANSACTIONAL } from '../../accounts/teams/suppress-transactional.ts'
import { isSending } from '../../accounts/teams/teams.sql.ts'
import type { Suppression } from '../../audience/suppressions/cause.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { EMAIL_REF, type EmailRef, emailRow, lightColumns } from './emails.sql.ts'

type StoredSuppression = { identity: string } & Pick<
  Suppression,
  'cause' | 'since' | 'response' | 'bounced_at' | 'bounce_response'
>

/** True if suppressions can stop an email `emails` of `team`. Broadcasts have their own check. */
const isChecked = sql.fragment`
  (team.suppress_transactional <> 'nothing' and emails.broadcast_id is null and not emails.internal
    and emails.suppression is distinct from 'ignored')`

/** Selects the suppressed recipients of an email `emails`. */
const suppressedRecipients = sql.fragment`
  select json_agg(json_build_object('identity', a.identity, 'cause', a.cause, 'since', a.since,
    'response', a.response, 'bounced_at', a.bounced_at, 'bounce_response', a.bounce_response)) as suppressed
  from suppressed_addresses a
  where a.team_id = emails.team_id and a.identity = any(recipient_identities(emails.to_emails))
    and a.cause is not null and ${isChecked}`

const outgoingRow = emailRow.concat(
  row({
    /** Its Date header if it was first claimed more than an hour late. Null: the acceptance time. */
    dated_at: string().nullable(),
    /** When its attempts start to count: when it was accepted, or requeued manually. */
    since: string(),
    /** Deferred attempts since then, and attempts without a response. */
    deferrals: number(),
    unknowns: number(),
    /** The time of its first attempt since then, or null. */
    tried_since: string().nullable(),
    /** When a problem of its sender last delayed it, or null. */
    held_at: string().nullable(),
    /** True if its bodies were left out because of their size. `bodiesOfEmail` reads them. */
    is_large: boolean(),
    test: boolean(),
    /** `ignored`: requeued with --force, so that it is sent even to suppressed recipients. */
    suppression: string().oneOf(['applied', 'ignored']).nullable(),
    suppress_transactional: string().oneOf(SUPPRESS_TRANSACTIONAL),
    /** Its suppressed recipients. Null if it has none, or isn't checked. */
    suppressed: mixed<StoredSuppression[]>().nullable(),
    /** Set if it waits because bulk email of its team is paused, and it is an item of a batch. */
    bulk_pause: mixed<BulkPause>().nullable(),
    /** True if its team stores hashes of erased addresses, which may be suppressed. */
    has_erased: boolean(),
  }),
)
/** True for an email with an event of an attempt. It keeps its Date header. */
const wasAttempted = sql.fragment`
  exists (select from email_events v where v.team_id = emails.team_id and v.email_id = emails.id
    and v.kind in ('sent', 'deferred', 'held', 'unknown', 'bounced'))`

/** The stored Date of a late email, or the time of its first claim. */
const lateDate = sql.fragment`
  case when greatest(emails.created_at, emails.scheduled_at) < service_time() - interval '1 hour' then (
    select coalesce(s.dated_at, case when not ${wasAttempted} then date_trunc('second', service_time()) end)
    from email_states s where s.team_id = emails.team_id and s.id = emails.id) end`

export type OutgoingRow<T extends boolean = boolean> = InferType<typeof outgoingRow> & { test: T }

/** The largest bodies that are read with their rows, in bytes. */
const LARGE_BODY_BYTES = 65_536

/**
 * Reads the emails that have recipients left and whose team can send. Each is looked up by its key, because with
 * outdated statistics the planner scans all waiting emails. Large bodies are left out, because a worker reads many
 * emails ahead.
 * @param test true for the simulator, which only reads emails of test teams. All others never read those.
 */
export async function emailsToDeliver<T extends boolean = false>(
  tx: Tx,
  refs: readonly EmailRef[],
  test = false as T,
): Promise<readonly OutgoingRow<T>[]> {
  const rows = await tx.any(sql.prepared('emails_to_deliver', outgoingRow)`
    select ${lightColumns}, is_large, ${test}::boolean as test, case when not is_large then html end as html,
      case when not is_large then body_text end as body_text, case when not is_large then variables end as variables,
      coalesce(tries_from, created_at) as since, past.*, suppression, team.suppress_transactional, stopped.suppressed,
      ${lateDate} as dated_at,
      case when team.bulk_paused_at is not null and (
        select a.batch from accepted_emails a where a.team_id = emails.team_id and a.id = emails.id)
        then team.bulk_pause end as bulk_pause,
      ${isChecked} and exists (select from erased_contacts x where x.team_id = emails.team_id) as has_erased
    from (select team_id as ref_team, email_id as ref_id from ${rowsOf('ref', EMAIL_REF, refs)}) ref
    cross join lateral (
      select *, coalesce(octet_length(html), 0) + coalesce(octet_length(body_text), 0)
        + coalesce(pg_column_size(variables), 0) > ${LARGE_BODY_BYTES}::int as is_large
      from emails where team_id = ref_team and id = ref_id offset 0) emails
    cross join lateral (
      select count(distinct v.occurred_at) filter (where v.kind = 'deferred') as deferrals,
        count(distinct v.occurred_at) filter (where v.kind = 'unknown') as unknowns,
        min(v.occurred_at) filter (where v.kind <> 'held') as tried_since,
        max(v.occurred_at) filter (where v.kind = 'held') as held_at
      from email_events v
      where v.team_id = emails.team_id and v.email_id = emails.id and v.kind in ('deferred', 'unknown', 'held')
        and v.occurred_at >= coalesce(emails.tries_from, emails.created_at)) past
    cross join lateral (
      select s.suppress_transactional, s.bulk_paused_at, s.bulk_pause from teams s
      where s.id = emails.team_id and ${isSending({ test })} offset 0) team
    cross join lateral (${suppressedRecipients}) stopped
    where unfinished`)
  // The query guarantees this type.
  return rows as readonly OutgoingRow<T>[]
}

/**
 * Returns the verified From domains of emails that are read at the same time. A domain that was removed
 * and added again isn't found, because it has another ID.
 */
export const domainsToDeliver = (tx: Tx, refs: readonly EmailRef[]) =>
  tx.any(sql.prepared('domains_to_deliver', sendingDomainRow)`
    select domains.* from (
      select distinct emails.team_id as own_team, emails.domain_id as own_id
      from (select team_id as ref_team, email_id as ref_id from ${rowsOf('ref', EMAIL_REF, refs)}) ref
      cross join lateral (
        select team_id, domain_id from accepted_emails where team_id = ref_team and id = ref_id offset 0) emails) own
    cross join lateral (
      select ${sendingColumns} from domains
      where team_id = own_team and id = own_id and status = 'verified' offset 0) domains`)

/** Stores the Dates of late emails for their next attempts. The caller has locked them. */
export async function keepDates(
  tx: Tx,
  dates: readonly { team_id: string; id: string; dated_at: string }[],
): Promise<void> {
  const types = { team_id: 'uuid', id: 'uuid', dated_at: 'timestamptz' }
  await tx.query(sql.unsafe`
    update email_states s set dated_at = d.dated_at from ${rowsOf('d', types, dates)}
    where s.team_id = d.team_id and s.id = d.id and s.dated_at is null`)
}
