/** Queries for applying events to emails: find, lock and update rows. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, object, string } from 'yup'
import { rampedName } from '../../accounts/domains/ramps.sql.ts'
import { EMAIL_LADDER } from '../../channels/email.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { EMAIL_REF, type EmailRef } from './emails.sql.ts'
import type { EmailStatus } from './status.ts'

const recipientsRow = row({ team_id: string(), email_id: string(), to_emails: array(string()) })

const lockedRow = recipientsRow.concat(row({ is_late: boolean() }))

/**
 * Locks the states of emails in one order, so that concurrent transactions can't deadlock, and returns their
 * recipients. After waiting for a lock, the statement sees the current state but the old email. If an erasure
 * changed the email, it is read again.
 */
export async function lockEmails(tx: Tx, refs: readonly EmailRef[]) {
  const rows = await tx.any(sql.prepared('lock_emails', lockedRow)`
    select s.team_id, s.id as email_id, e.to_emails, s.rewrites <> e.rewrites as is_late
    from email_states s join accepted_emails e on e.team_id = s.team_id and e.id = s.id
    where (s.team_id, s.id) in (select * from ${rowsOf('ref', EMAIL_REF, refs)})
    order by s.team_id, s.id for no key update of s`)
  const late = rows.filter((row) => row.is_late)
  if (late.length === 0) return rows
  return [...rows.filter((row) => !row.is_late), ...(await recipientsOf(tx, late))]
}

const reportedSenderRow = recipientsRow.concat(row({ is_broadcast: boolean() }))
export type ReportedSender = InferType<typeof reportedSenderRow>

/** Returns the recipients of emails, and whether each is part of a broadcast. */
export const senderReportRows = (tx: Tx, refs: readonly EmailRef[]) =>
  tx.any(sql.type(reportedSenderRow)`
    select e.team_id, e.id as email_id, e.to_emails, s.broadcast_id is not null as is_broadcast
    from accepted_emails e join email_states s on s.team_id = e.team_id and s.id = e.id
    where (e.team_id, e.id) in (select * from ${rowsOf('ref', EMAIL_REF, refs)})`)

const recipientsOf = (tx: Tx, refs: readonly EmailRef[]) =>
  tx.any(sql.type(recipientsRow)`
    select team_id, id as email_id, to_emails from accepted_emails
    where (team_id, id) in (select * from ${rowsOf('ref', EMAIL_REF, refs)})`)

const providerIdRow = row({ provider_message_id: string(), team_id: string(), email_id: string() })

export async function emailsByProviderIds(tx: Tx, ids: readonly string[]): Promise<Map<string, EmailRef>> {
  const rows = await tx.any(sql.prepared('emails_by_provider_ids', providerIdRow)`
    select provider_message_id, team_id, id as email_id from email_states
    where provider_message_id = any(${sql.array(ids, 'text')}) order by id desc`)
  return new Map(rows.map(({ provider_message_id, ...ref }) => [provider_message_id, ref]))
}

/** A change of an email's state. */
export type EmailChange = EmailRef & {
  /** The new status, if it is higher than the current one. */
  status: EmailStatus
  /** One that is stored already stays. */
  provider_message_id: string | null
  size_kb: number | null
  pending: Pending
  /** True if a new event is a hard bounce, or reports that a recipient was skipped as suppressed. */
  hard_bounced?: boolean
  left_out?: boolean
}

/** The new value of the recipients still to be attempted. */
type Pending =
  | 'as they were'
  | 'none left'
  /** All are suppressed. The email is bounced unless it has another result. */
  | 'suppressed'
  /** The result of an attempt, unless another transaction has changed the row since the attempt read it. */
  | AttemptEnded
  /** Recipients without a report, if no attempt has stored its result. */
  | { reported: true; undecided: readonly string[] }

/**
 * `left`: recipients still to be attempted, null for none or all. `undecided`: recipients without a result.
 */
type AttemptEnded = { left: readonly string[] | null; undecided: readonly string[]; seen: AttemptBegan }

export type AttemptBegan = {
  provider_message_id: string | null
  pending_recipients: readonly string[] | null
}

const CHANGE = {
  ...{ team_id: 'uuid', email_id: 'uuid', status: 'text', provider_message_id: 'text', size_kb: 'float8' },
  ...{ kind: 'text', pending: 'json', undecided: 'json', seen_id: 'text' },
  ...{ hard_bounced: 'bool', left_out: 'bool' },
}

function changeOf({ pending, hard_bounced = false, left_out = false, ...about }: EmailChange) {
  const change = { ...about, hard_bounced, left_out }
  if (typeof pending === 'string') return { ...change, kind: pending }
  const { undecided } = pending
  if ('reported' in pending) return { ...change, kind: 'a report', undecided }
  const { left, seen } = pending
  // `left` applies to an attempt for all recipients, `undecided` to any other.
  const pendingNow = seen.pending_recipients === null ? left : null
  return { ...change, kind: 'an attempt', pending: pendingNow, undecided, seen_id: seen.provider_message_id }
}

const list = (column: FragmentSqlToken) =>
  sql.fragment`case when ${column} is null then null else array(select json_array_elements_text(${column})) end`

/** Those of some recipients that are undecided. */
const undecidedOf = (recipients: FragmentSqlToken) => sql.fragment`
  array(select r from unnest(${recipients}) r where r in (select json_array_elements_text(c.undecided)))`

/** After a lost response, a report about one recipient proves that the server accepted all of them. */
const lostAnswer = sql.fragment`
  exists (select from email_events v where v.team_id = e.team_id and v.email_id = e.id and v.kind = 'unknown')`

/**
 * Aggregates an email's events by recipient: the attempts whose response was lost, the attempts that may have
 * been accepted, and whether a report has decided the recipient since the email was accepted or requeued. A
 * rejection during an attempt isn't a report.
 */
const said = sql.fragment`
  select v.recipient,
    array_agg(v.occurred_at) filter (where v.kind = 'unknown') as lost,
    array_agg(v.occurred_at) filter (where v.kind in ('unknown', 'sent')) as handed,
    bool_or(
      v.kind = any(${sql.array(EMAIL_LADDER, 'text')}) and (e.tries_from is null or v.occurred_at >= e.tries_from)
      and not (v.kind = 'bounced' and v.occurred_at = any(array(
        select t.occurred_at from email_events t
        where t.team_id = e.team_id and t.email_id = e.id and t.kind in ('deferred', 'held', 'unknown'))))
    ) as is_reported
  from email_events v where v.team_id = e.team_id and v.email_id = e.id group by v.recipient`

/**
 * Counts changed rows `c` for their team's reputation (stats/daily/sending.sql.ts), in the hour in which the
 * email was sent. An email is sent when the relay accepts or rejects it. It has at most one hard bounce.
 */
const countSending = sql.fragment`
  insert into figure_deltas (team_id, channel, hour, status, count)
  select c.team_id, 'sending', greatest(date_trunc('hour', c.sent_at, 'UTC'), t.since), what.status, count(*)
  from (
    select c.*, case when c.was = 'queued' then service_time() else coalesce((
        select max(v.occurred_at) from email_events v
        where v.team_id = c.team_id and v.email_id = c.id and v.kind = 'sent'), c.created_at) end as sent_at
    from change c where not c.internal and (c.is_sent or c.is_hard or c.is_complaint or c.left_out)) c
  cross join lateral (
    select case when reputation_from <= c.sent_at then reputation_from end as since
    from teams where id = c.team_id offset 0) t
  cross join lateral (values ('sent', c.is_sent), ('hard_bounced', c.is_hard), ('complained', c.is_complaint),
    ('suppressed', c.left_out)) what (status, is_so)
  where what.is_so
  group by c.team_id, 3, what.status`

/**
 * Records the bounces and complaints of rows `c` that belong to broadcasts with a ramped domain
 * (accounts/domains/ramp.ts).
 */
const countRamped = sql.fragment`
  insert into domain_ramp_reports (name, day, kind)
  select ramp.name, (coalesce((
      select max(v.occurred_at) from email_events v
      where v.team_id = c.team_id and v.email_id = c.id and v.kind = 'sent'), service_time()) at time zone 'UTC')::date,
    case when c.is_complaint then 'complained' else 'bounced' end
  from change c join accepted_emails e on e.team_id = c.team_id and e.id = c.id
    cross join lateral (${rampedName(sql.fragment`e`)} offset 0) ramp
  where c.broadcast_id is not null and (c.is_bounce or c.is_complaint)`

/**
 * Changes locked states in one statement that writes each at most once and skips unchanged ones. Store the
 * events first: a recipient whose response was lost isn't retried once there is a report, earlier or later,
 * about that recipient or about one that can only have been accepted together with it.
 */
export async function changeEmails(tx: Tx, changes: readonly EmailChange[]): Promise<void> {
  const ladder = sql.array(EMAIL_LADDER, 'text')
  // A recipient that a report decided during an attempt stays decided. An erased recipient stays erased.
  const pending = sql.fragment`
    case
      when c.kind in ('none left', 'suppressed') then null
      when c.kind = 'a report' and e.provider_message_id is null
        and (e.pending_recipients is not null or e.status = 'queued') and not ${lostAnswer}
        then ${undecidedOf(sql.fragment`coalesce(e.pending_recipients, ${list(sql.fragment`c.undecided`)})`)}
      when c.kind = 'an attempt' and e.pending_recipients is not null
        then ${undecidedOf(sql.fragment`e.pending_recipients`)}
      when c.kind = 'an attempt' and e.provider_message_id is not distinct from c.seen_id
        then ${list(sql.fragment`c.pending`)}
      else e.pending_recipients
    end`
  const untried = sql.fragment`
    with said as (${said})
    select array_agg(p.recipient order by p.place)
    from unnest(b.pending) with ordinality as p (recipient, place)
    where not exists (
      select from said own join said r on r.recipient = own.recipient or r.handed <@ own.lost
      where own.recipient = p.recipient and own.lost is not null and r.is_reported)`
  await tx.query(sql.prepared('change_emails', object())`
    with raised as (
      select e.team_id, e.id, e.created_at, e.broadcast_id, e.internal, e.status as was, c.left_out,
        c.hard_bounced and (e.status = 'queued' or not e.hard_bounced) as is_hard,
        c.hard_bounced or e.hard_bounced as hard_bounced,
        case when c.kind = 'suppressed' and e.status = 'queued' then 'bounced'
          when array_position(${ladder}, c.status) > array_position(${ladder}, e.status)
          then c.status else e.status end as status,
        coalesce(e.provider_message_id, c.provider_message_id) as provider_message_id,
        coalesce(e.size_kb, c.size_kb) as size_kb,
        case when c.kind = 'suppressed' and e.status = 'queued' then 'applied' else e.suppression end as suppression,
        case when b.pending is not null then (${untried}) end as pending_recipients
      from email_states e join ${rowsOf('c', CHANGE, changes.map(changeOf))}
        on e.team_id = c.team_id and e.id = c.email_id
        cross join lateral (select ${pending} as pending) b
    ), change as (
      select *, was = 'queued' and status <> 'queued' and suppression is distinct from 'applied' as is_sent,
        was <> 'complained' and status = 'complained' as is_complaint,
        was <> 'bounced' and status = 'bounced' and suppression is distinct from 'applied' as is_bounce
      from raised
    ), counted as (${countSending}), ramped as (${countRamped})
    update email_states e set
      status = c.status, provider_message_id = c.provider_message_id, size_kb = c.size_kb,
      pending_recipients = c.pending_recipients, suppression = c.suppression, hard_bounced = c.hard_bounced
    from change c
    where e.team_id = c.team_id and e.id = c.id
      and (e.status, e.provider_message_id, e.size_kb, e.pending_recipients, e.suppression, e.hard_bounced)
        is distinct from (c.status, c.provider_message_id, c.size_kb, c.pending_recipients, c.suppression, c.hard_bounced)`)
}
