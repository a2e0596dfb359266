/** Queries for applying events to emails: find, lock and update rows. */
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'slonik'
import { array, boolean, type InferType, number, object, string } from 'yup'
import { rampedName } from '../../accounts/domains/ramps.sql.ts'
import { EMAIL_LADDER } from '../../channels/email.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'
import { EMAIL_REF, type EmailRef } from './emails.sql.ts'
import { countedAfter, type EmailChange, needsEvents, stateAfter } from './state-changes.ts'

const recipientsRow = row({ team_id: string(), email_id: string(), to_emails: array(string()) })

const lockedRow = recipientsRow.concat(
  row({
    is_late: boolean(),
    status: string().oneOf(EMAIL_LADDER),
    provider_message_id: string().nullable(),
    size_kb: number().nullable(),
    pending_recipients: array(string()).nullable(),
    suppression: string().nullable(),
    hard_bounced: boolean(),
  }),
)
type LockedEmail = InferType<typeof lockedRow>

/**
 * Locks the states of emails in one order, so that concurrent transactions can't deadlock, and returns them with the
 * recipients. Each is looked up by its key, because a plan for an empty table would scan all. After waiting for a
 * lock, an email that an erasure changed is read again.
 */
export async function lockEmails(tx: Tx, refs: readonly EmailRef[]): Promise<readonly LockedEmail[]> {
  const rows = await tx.any(sql.prepared('lock_emails', lockedRow)`
    select s.team_id, s.id as email_id, e.to_emails, s.rewrites <> e.rewrites as is_late, s.status,
      s.provider_message_id, s.size_kb, s.pending_recipients, s.suppression, s.hard_bounced
    from (
      select distinct team_id as ref_team, email_id as ref_id from ${rowsOf('ref', EMAIL_REF, refs)} order by 1, 2) ref
    cross join lateral (
      select * from email_states where team_id = ref_team and id = ref_id for no key update) s
    cross join lateral (
      select to_emails, rewrites from accepted_emails where team_id = ref_team and id = ref_id offset 0) e`)
  const late = rows.filter((row) => row.is_late)
  if (late.length === 0) return rows
  const current = new Map((await recipientsOf(tx, late)).map((row) => [row.email_id, row.to_emails]))
  return rows.flatMap((row) => {
    const to_emails = row.is_late ? current.get(row.email_id) : row.to_emails
    return to_emails ? [{ ...row, to_emails }] : []
  })
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

const storedEventRow = row({
  email_id: string(),
  kind: string(),
  recipient: string().nullable(),
  occurred_at: string(),
  is_since: boolean(),
})

const storedEvents = (tx: Tx, refs: readonly EmailRef[]) =>
  tx.any(sql.type(storedEventRow)`
    select v.email_id, v.kind, v.recipient, v.occurred_at, coalesce(v.occurred_at >= s.tries_from, true) as is_since
    from ${rowsOf('ref', EMAIL_REF, refs)}
      join email_states s on s.team_id = ref.team_id and s.id = ref.email_id
      join email_events v on v.team_id = ref.team_id and v.email_id = ref.email_id`)

const CHANGE = {
  ...{ team_id: 'uuid', email_id: 'uuid', status: 'text', provider_message_id: 'text', size_kb: 'float8' },
  ...{ pending_recipients: 'json', suppression: 'text', hard_bounced: 'bool', was: 'text' },
  ...{ is_changed: 'bool', is_sent: 'bool', is_hard: 'bool', is_complaint: 'bool', is_bounce: 'bool' },
  left_out: 'bool',
}

/** Counts changed rows `c` for their team's reputation, in the hour in which the email was sent. */
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

/** Records the bounces and complaints of rows `c` that belong to broadcasts with a ramped domain. */
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
 * Changes locked states in one statement, with a key lookup for each. Never writes a row twice, and skips unchanged
 * ones. Store the events first, because they decide which recipients are pending.
 */
export async function changeEmails(
  tx: Tx,
  changes: readonly (EmailRef & EmailChange)[],
  locked: readonly LockedEmail[],
): Promise<void> {
  const states = new Map(locked.map((state) => [state.email_id, state]))
  const known = changes.flatMap((change) => {
    const state = states.get(change.email_id)
    return state ? [{ change, state }] : []
  })
  const open = known.filter(({ state, change }) => needsEvents(state, change)).map(({ change }) => change)
  const stored = open.length === 0 ? [] : await storedEvents(tx, open)
  const events = Map.groupBy(stored, ({ email_id }) => email_id)
  const changed = known.flatMap(({ change, state: { team_id, email_id, to_emails, is_late, ...before } }) => {
    const after = stateAfter(before, change, events.get(email_id) ?? [])
    const counted = countedAfter(before, after, change)
    const is_changed = !isDeepStrictEqual(after, before)
    if (!is_changed && !Object.values(counted).includes(true)) return []
    return [{ team_id, email_id, ...after, ...counted, was: before.status, is_changed }]
  })
  if (changed.length === 0) return
  await tx.query(sql.prepared('change_emails', object())`
    with change as (
      select c.*, e.*
      from ${rowsOf('c', CHANGE, changed)} join lateral (
        select id, created_at, broadcast_id, internal from email_states
        where team_id = c.team_id and id = c.email_id offset 0) e on e.id = c.email_id
    ), counted as (${countSending}), ramped as (${countRamped})
    update email_states e set
      status = c.status, provider_message_id = c.provider_message_id, size_kb = c.size_kb,
      pending_recipients = case when c.pending_recipients is not null
        then array(select json_array_elements_text(c.pending_recipients)) end,
      suppression = c.suppression, hard_bounced = c.hard_bounced
    from change c where e.team_id = c.team_id and e.id = c.id and c.is_changed`)
}
