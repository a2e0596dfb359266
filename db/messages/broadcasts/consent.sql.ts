/** Queries for the last check before a broadcast email is sent. */
import { sql } from 'slonik'
import { type InferType, number, string } from 'yup'
import { rampedName } from '../../accounts/domains/ramps.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row, rowsOf } from '../../postgres/rows.ts'
import { deleteEmails } from '../emails/delete.sql.ts'
import { EMAIL_REF, type EmailRef } from '../emails/emails.sql.ts'
import { BROADCAST_STATES } from './state.ts'

const stateRow = row({
  team_id: string(),
  id: string(),
  broadcast_id: string(),
  state: string().oneOf(BROADCAST_STATES),
  rate_per_minute: number().nullable(),
  /** The name of its sending domain, if that is ramped. */
  ramped: string().nullable(),
  /** Why it must not be sent to its contact, or null. */
  reason: string().oneOf(['cancelled', 'deleted', 'unsubscribed', 'suppressed', 'left_topic']).nullable(),
})
export type EmailState = InferType<typeof stateRow>

export const statesOf = (tx: Tx, refs: readonly EmailRef[]) =>
  tx.any(sql.prepared('states_of_broadcast_emails', stateRow)`
    select e.team_id, e.id, e.broadcast_id, b.rate_per_minute, b.state, ramp.name as ramped,
      case when b.state = 'cancelled' then 'cancelled' when c.id is null then 'deleted'
        when c.status = 'unsubscribed' then 'unsubscribed' when c.suppression is not null or exists (
          select from suppressed_addresses s
          where s.team_id = ref.team_id and s.identity = c.identity and s.cause is not null) then 'suppressed'
        when not c.topic_ids && b.topic_ids then 'left_topic' end as reason
    from ${rowsOf('ref', EMAIL_REF, refs)}
    cross join lateral (
      select * from accepted_emails where team_id = ref.team_id and id = ref.email_id offset 0) e
    cross join lateral (select * from broadcasts where team_id = ref.team_id and id = e.broadcast_id offset 0) b
    left join lateral (select * from contacts where team_id = ref.team_id and id = e.contact_id offset 0) c on true
    left join lateral (${rampedName(sql.fragment`e`)} offset 0) ramp on true`)

/** Returns the emails that may have arrived, because an attempt got no response. */
export async function unansweredAmong(tx: Tx, refs: readonly EmailRef[]): Promise<ReadonlySet<string>> {
  if (refs.length === 0) return new Set()
  const found = await tx.anyFirst(sql.type(idRow)`
    select ref.email_id as id from ${rowsOf('ref', EMAIL_REF, refs)}
    where exists (
      select from email_events v
      where v.team_id = ref.team_id and v.email_id = ref.email_id and v.kind = 'unknown')`)
  return new Set(found)
}

const heldRow = stateRow.pick(['id', 'state'])

/**
 * Returns the states of the emails' broadcasts, by the email's ID. Waits for an uncommitted change of state. So the
 * change and a deferral of an email at the same time see each other.
 */
export async function statesOfBroadcasts(tx: Tx, refs: readonly EmailRef[]) {
  const found = await tx.any(sql.type(heldRow)`
    with these as materialized (
      select e.id, e.team_id, e.broadcast_id from ${rowsOf('ref', EMAIL_REF, refs)}
      cross join lateral (select * from email_states where team_id = ref.team_id and id = ref.email_id offset 0) e
    ), held as materialized (
      select b.id, b.state from broadcasts b
      where (b.team_id, b.id) in (select team_id, broadcast_id from these)
      order by b.id for share
    )
    select these.id, held.state from these join held on held.id = these.broadcast_id`)
  return new Map(found.map(({ id, state }) => [id, state]))
}

/** How much of its rate a broadcast can save up, in seconds. This limits its bursts. */
const SAVED_SECONDS = 5

const grantRow = row({ granted: number(), interval_seconds: number(), wait_seconds: number() })

/**
 * Reserves up to `count` emails from a broadcast's rate, which is spread evenly over each minute.
 * @returns how many can be sent now, how long the next one waits, and the interval between those after it.
 */
export const reservePlaces = (
  tx: Tx,
  { team_id, broadcast_id, count }: { team_id: string; broadcast_id: string; count: number },
) =>
  tx.maybeOne(sql.prepared('take_places_of_broadcast', grantRow)`
    with held as materialized (
      select service_time() as now, paced_until, interval '1 minute' / rate_per_minute as apart from broadcasts
      where team_id = ${team_id} and id = ${broadcast_id} and rate_per_minute is not null for no key update
    ), base as (
      select now, apart, greatest(coalesce(paced_until, now - apart),
        now - greatest(apart, make_interval(secs => ${SAVED_SECONDS}))) as until from held
    ), given as (
      select now, apart, until, greatest(0, least(${count}::int,
        floor(extract(epoch from now - until) / extract(epoch from apart))))::int as granted from base
    ), moved as (
      update broadcasts set paced_until = until + granted * apart from given
      where team_id = ${team_id} and id = ${broadcast_id} and granted > 0
    )
    select granted, extract(epoch from apart)::float8 as interval_seconds,
      greatest(0, extract(epoch from until + (granted + 1) * apart - now))::float8 as wait_seconds from given`)

/** Deletes the team's broadcast emails among these that are unfinished. @returns the deleted emails. */
export const deleteWaitingEmails = (tx: Tx, teamId: string, ids: readonly string[]) =>
  deleteEmails(
    tx,
    teamId,
    sql.fragment`
      select id from email_states
      where team_id = ${teamId} and id = any(${sql.array(ids, 'uuid')}) and unfinished and broadcast_id is not null
      order by id for update`,
  )
