/** Queries on suppressed_addresses. */
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, type InferType, number, object, string } from 'yup'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row, rowsOf } from '../../postgres/rows.ts'
import { wasSeen } from '../../postgres/snapshot.sql.ts'
import { CAUSES, type Cause } from '../contacts/effect.ts'

export type IdentityRef = { team_id: string; identity: string }
const REF = { team_id: 'uuid', identity: 'text' }

const addressRow = row({
  team_id: string(),
  identity: string(),
  email: string(),
  cause: string().oneOf(CAUSES),
  /** The provider's time, or the time at which it was added. */
  since: string(),
  /** The email that caused it. Null if it was added manually. */
  email_id: string().nullable(),
  /** The report that caused it. Null if the server rejected the recipient during delivery. */
  report_id: string().nullable(),
  response: string(),
  bounced_at: string().nullable(),
  bounce_response: string().nullable(),
})
export type SuppressedAddress = InferType<typeof addressRow>

const columns = sql.fragment`
  team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response`

const ADDRESS = {
  ...{ team_id: 'uuid', identity: 'text', email: 'text', cause: 'text', since: 'timestamptz' },
  ...{ email_id: 'uuid', report_id: 'uuid', response: 'text' },
  ...{ bounced_at: 'timestamptz', bounce_response: 'text' },
}

const storedRow = row({ team_id: string(), identity: string(), has_listeners: boolean() })

/** Inserts addresses that have no row, ordered by key. @returns those. */
export const insertAddresses = (tx: Tx, addresses: readonly SuppressedAddress[]) =>
  tx.any(sql.prepared('insert_suppressed_addresses', storedRow)`
    insert into suppressed_addresses (${columns})
    select ${columns} from ${rowsOf('a', ADDRESS, addresses)}
    where team_id in (select id from teams)
    order by team_id, identity
    on conflict do nothing
    returning team_id, identity, ${hasListeners(sql.fragment`suppressed_addresses.team_id`)} as has_listeners`)

const heldRow = addressRow.concat(
  row({ cause: string().oneOf(CAUSES).nullable(), since: string().nullable(), has_listeners: boolean() }),
)

/** Locks the rows of these addresses, ordered by key. Includes lifted ones. */
export const lockAddresses = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.any(sql.prepared('lock_suppressed_addresses', heldRow)`
    select ${columns}, ${hasListeners(sql.fragment`s.team_id`)} as has_listeners from suppressed_addresses s
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)})
    order by team_id, identity for no key update`)

export const updateAddresses = (tx: Tx, addresses: readonly SuppressedAddress[]) =>
  tx.query(sql.prepared('update_suppressed_addresses', object())`
    update suppressed_addresses s set cause = a.cause, since = a.since, email_id = a.email_id,
      report_id = a.report_id, response = a.response, bounced_at = a.bounced_at, bounce_response = a.bounce_response
    from ${rowsOf('a', ADDRESS, addresses)} where s.team_id = a.team_id and s.identity = a.identity`)

const liftedRow = row({ team_id: string(), identity: string(), email: string(), has_listeners: boolean() })

/**
 * @param lifted the time of a manual lift, which resets the count of soft bounces, or null.
 * @returns the addresses that were suppressed.
 */
export const liftAddresses = (tx: Tx, refs: readonly IdentityRef[], lifted: Date | null) =>
  tx.any(sql.prepared('lift_suppressed_addresses', liftedRow)`
    with held as materialized (
      select team_id, identity from suppressed_addresses
      where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)}) and cause is not null
      order by team_id, identity for no key update
    )
    update suppressed_addresses s set cause = null, since = null, email_id = null, report_id = null, response = '',
      bounced_at = null, bounce_response = null,
      lifted_at = coalesce(${lifted?.toISOString() ?? null}::timestamptz, lifted_at)
    from held where s.team_id = held.team_id and s.identity = held.identity
    returning s.team_id, s.identity, s.email, ${hasListeners(sql.fragment`s.team_id`)} as has_listeners`)

export type SuppressionFilter = {
  cause?: Cause | undefined
  /** A part of the response, in any case. */
  response?: string | undefined
  /** The domain in ASCII. */
  domain?: string | undefined
  since?: Date | undefined
  until?: Date | undefined
  email?: string | undefined
  /** Only addresses with a hard bounce. */
  bounced?: boolean | undefined
  /** Only rows that haven't changed since then (postgres/snapshot.sql.ts). */
  seen?: string | undefined
}

/** Times are compared in milliseconds, the precision of their printed form. */
const PRINTED = sql.fragment`date_trunc('milliseconds', since)`

const holds = (text: FragmentSqlToken, part: string) =>
  sql.fragment`strpos(lower(${text}), lower(${part})) > 0`

const fitsFilter = ({ cause, response, domain, since, until, email, seen, bounced }: SuppressionFilter) =>
  allOf(
    sql.fragment`cause is not null`,
    cause !== undefined && sql.fragment`cause = ${cause}`,
    bounced && sql.fragment`bounced_at is not null`,
    response !== undefined && holds(sql.fragment`response`, response),
    domain !== undefined && sql.fragment`split_part(identity, '@', 2) = ${domain}`,
    since && sql.fragment`${PRINTED} >= ${sql.timestamp(since)}`,
    until && sql.fragment`${PRINTED} <= ${sql.timestamp(until)}`,
    seen !== undefined && wasSeen(sql.fragment`suppressed_addresses`, seen),
    email !== undefined &&
      sql.fragment`(${holds(sql.fragment`email`, email)} or ${holds(sql.fragment`identity`, email)})`,
  )

const listedRow = addressRow.concat(row({ id: string() }))
export type ListedAddress = InferType<typeof listedRow>

/** Returns a page of a team's suppressed addresses, newest first. @param before the address before the page. */
export async function suppressedAddresses(
  tx: Tx,
  teamId: string,
  { before, limit, ...filter }: SuppressionFilter & { before?: string | undefined; limit: number },
) {
  const follows =
    before !== undefined &&
    sql.fragment`(since, identity) < (
      select since, identity from suppressed_addresses where team_id = ${teamId} and id = ${before})`
  return tx.any(sql.type(listedRow)`
    select id, ${columns} from suppressed_addresses
    where team_id = ${teamId} and ${allOf(fitsFilter(filter), follows)}
    order by since desc, identity desc limit ${limit}`)
}

/** Counts a team's matching suppressed addresses, up to `most`. */
export const countSuppressed = (tx: Tx, teamId: string, filter: SuppressionFilter, most: number | null) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from (
      select from suppressed_addresses where team_id = ${teamId} and ${fitsFilter(filter)} limit ${most}) counted`)

export const suppressedAddress = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.prepared('suppressed_address', addressRow)`
    select ${columns} from suppressed_addresses
    where team_id = ${teamId} and identity = ${identity} and cause is not null`)

export const suppressedAmong = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.any(sql.prepared('suppressed_among', addressRow)`
    select ${columns} from suppressed_addresses
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)}) and cause is not null`)

const identityRow = row({ identity: string() })

/** Returns the next matching identities, in order, after `after`. */
export const nextSuppressed = (
  tx: Tx,
  teamId: string,
  filter: SuppressionFilter,
  { after, limit }: { after: string; limit: number },
) =>
  tx.anyFirst(sql.type(identityRow)`
    select identity from suppressed_addresses
    where team_id = ${teamId} and identity > ${after} and ${fitsFilter(filter)}
    order by identity limit ${limit}`)

/** Deletes the row of an address. @returns its cause, or null if it isn't suppressed or has no row. */
export const deleteAddress = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.type(row({ cause: string().oneOf(CAUSES).nullable(), has_bounced: boolean() }))`
    delete from suppressed_addresses where team_id = ${teamId} and identity = ${identity}
    returning cause, bounced_at is not null as has_bounced`)

const softRow = row({ team_id: string(), identity: string(), email: string() })

/** Returns addresses that are suppressed for soft bounces, ordered by key, after `after`. */
export async function softlySuppressed(tx: Tx, after: IdentityRef | undefined, limit: number) {
  const further = allOf(
    after !== undefined && sql.fragment`(team_id, identity) > (${after.team_id}::uuid, ${after.identity})`,
  )
  return tx.any(sql.type(softRow)`
    select team_id, identity, email from suppressed_addresses where cause = 'soft_bounces' and ${further}
    order by team_id, identity limit ${limit}`)
}

const factsRow = row({
  team_id: string(),
  identity: string(),
  /** Null if it isn't suppressed. */
  cause: string().oneOf(CAUSES).nullable(),
  since: number().nullable(),
  /** The newest soft bounces since the last lift, newest first, at most SOFT_BOUNCES. */
  softs: array(number()),
  /** The last delivery, reported or assumed. */
  delivered_at: number().nullable(),
})
/** The facts about an address. Times are in milliseconds since 1970. */
export type SoftFacts = InferType<typeof factsRow>

const milliseconds = (time: FragmentSqlToken) => sql.fragment`(extract(epoch from ${time}) * 1000)::float8`

/**
 * Returns the soft bounces and deliveries of addresses, for soft-bounces.ts. Emails are found by recipient only,
 * because with the team, the planner would scan all emails of a large team. A suppression that 0.1.0 stored is in the
 * contact until it is copied.
 * @param undisputed an email sent before this without a report since then counts as delivered.
 */
export const softFacts = (
  tx: Tx,
  refs: readonly (IdentityRef & { email: string })[],
  { most, undisputed }: { most: number; undisputed: Date },
) =>
  tx.any(sql.prepared('soft_bounce_facts', factsRow)`
    select r.team_id, r.identity, ${milliseconds(sql.fragment`s.since`)} as since,
      coalesce(s.cause, case when c.suppressed_softly then 'soft_bounces' when c.suppression is not null then 'manual' end) as cause,
      coalesce(t.softs[1:${most}::int], '{}') as softs, ${milliseconds(sql.fragment`t.delivered_at`)} as delivered_at
    from ${rowsOf('r', { ...REF, email: 'text' }, refs)}
      left join suppressed_addresses s on s.team_id = r.team_id and s.identity = r.identity
      left join contacts c on c.team_id = r.team_id and c.identity = r.identity
      cross join lateral (
        select
          max(v.occurred_at) filter (where v.effect = 'delivered' or v.kind = 'sent' and st.status = 'sent'
            and v.occurred_at < ${sql.timestamp(undisputed)} and not exists (
              select from email_events d
              where d.team_id = e.team_id and d.email_id = e.id
                and d.kind in ('delayed', 'unreadable', 'unsubscribed', 'machine_opened', 'machine_clicked'))) as delivered_at,
          array_agg(${milliseconds(sql.fragment`v.occurred_at`)} order by v.occurred_at desc) filter (
            where v.effect = 'soft' and v.occurred_at > coalesce(greatest(s.lifted_at, c.lifted_at), '-infinity')) as softs
        from (
            select team_id, id, contact_id from accepted_emails
            where recipient_identities(to_emails) && array[lower(r.email), r.identity] offset 0) e
          cross join lateral (
            select status from email_states where team_id = e.team_id and id = e.id offset 0) st
          join email_events v on v.team_id = e.team_id and v.email_id = e.id
            and (v.effect is not null or v.kind = 'sent')
            and (lower(v.recipient) in (lower(r.email), r.identity) or v.recipient is null and e.contact_id = c.id)
        where e.team_id = r.team_id) t`)

/** Waits until no other transaction counts soft bounces of these addresses. Locks them in order. */
export const lockSoftCounts = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.query(sql.type(object())`
    select pg_advisory_xact_lock(hashtext('soft_bounces'), key) from (
      select distinct hashtext(team_id || '/' || identity) as key from ${rowsOf('ref', REF, refs)}
      order by key) keys`)
