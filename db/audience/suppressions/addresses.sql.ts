/** Rows of suppressed_addresses, and the queries over them. */
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
  since: string(),
  email_id: string().nullable(),
  report_id: string().nullable(),
  response: string(),
  bounced_at: string().nullable(),
  bounce_response: string().nullable(),
})
export type SuppressedAddress = InferType<typeof addressRow>

const columns = sql.fragment`
  team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response`

const ADDRESS = {
  ...{
    team_id: 'uuid',
    identity: 'text',
    email: 'text',
    cause: 'text',
    since: 'timestamptz',
    email_id: 'uuid',
  },
  ...{ report_id: 'uuid', response: 'text', bounced_at: 'timestamptz', bounce_response: 'text' },
}

const storedRow = row({ team_id: string(), identity: string(), has_listeners: boolean() })

/** Adds addresses that have no row, in the order of their keys. @returns these. */
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

/** The rows of these addresses, also lifted ones, locked in the order of their keys. */
export const lockAddresses = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.any(sql.prepared('lock_suppressed_addresses', heldRow)`
    select ${columns}, ${hasListeners(sql.fragment`s.team_id`)} as has_listeners from suppressed_addresses s
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)})
    order by team_id, identity for no key update`)

/** Writes why locked addresses are suppressed. */
export const updateAddresses = (tx: Tx, addresses: readonly SuppressedAddress[]) =>
  tx.query(sql.prepared('update_suppressed_addresses', object())`
    update suppressed_addresses s set cause = a.cause, since = a.since, email_id = a.email_id,
      report_id = a.report_id, response = a.response, bounced_at = a.bounced_at, bounce_response = a.bounce_response
    from ${rowsOf('a', ADDRESS, addresses)} where s.team_id = a.team_id and s.identity = a.identity`)

const liftedRow = row({ team_id: string(), identity: string(), email: string(), has_listeners: boolean() })

/**
 * Ends the suppression of addresses. @param lifted when it was lifted manually, so that soft bounces count from zero
 * again; else null. @returns those that were suppressed.
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

/** What a list of suppressed addresses is filtered by; all of it must fit. */
export type SuppressionFilter = {
  cause?: Cause | undefined
  /** A part of the response, without regard to case. */
  response?: string | undefined
  /** The domain in ASCII form. */
  domain?: string | undefined
  since?: Date | undefined
  until?: Date | undefined
  /** A part of the address, in either of its forms. */
  email?: string | undefined
  /** Only addresses with a hard bounce. */
  bounced?: boolean | undefined
  /** Only what has been as it is since then (postgres/snapshot.sql.ts). */
  seen?: string | undefined
}

/** Times count as they are printed, to the millisecond. */
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

/** A team's suppressed addresses, newest first. @param before the one that the page follows. */
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

/** How many of a team's addresses are suppressed and fit, counted up to `most`. */
export const countSuppressed = (tx: Tx, teamId: string, filter: SuppressionFilter, most: number | null) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from (
      select from suppressed_addresses where team_id = ${teamId} and ${fitsFilter(filter)} limit ${most}) counted`)

/** Why an address is suppressed; null if it isn't. */
export const suppressedAddress = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.prepared('suppressed_address', addressRow)`
    select ${columns} from suppressed_addresses
    where team_id = ${teamId} and identity = ${identity} and cause is not null`)

/** Those of these addresses that are suppressed. */
export const suppressedAmong = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.any(sql.prepared('suppressed_among', addressRow)`
    select ${columns} from suppressed_addresses
    where (team_id, identity) in (select * from ${rowsOf('ref', REF, refs)}) and cause is not null`)

const identityRow = row({ identity: string() })

/** The next identities of a team that are suppressed and fit, after one in their order. */
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

/** Deletes what is stored of an address. @returns why it was suppressed; null if it wasn't. */
export const deleteAddress = (tx: Tx, teamId: string, identity: string) =>
  tx.maybeOne(sql.type(row({ cause: string().oneOf(CAUSES).nullable(), has_bounced: boolean() }))`
    delete from suppressed_addresses where team_id = ${teamId} and identity = ${identity}
    returning cause, bounced_at is not null as has_bounced`)

const softRow = row({ team_id: string(), identity: string(), email: string() })

/** Addresses that are suppressed for soft bounces, after one in the order of their keys. */
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
  cause: string().oneOf(CAUSES).nullable(),
  since: number().nullable(),
  softs: array(number()),
  delivered_at: number().nullable(),
})

/** How soft bounces are counted: email sent before `undisputed` without any report since has arrived. */
export type SoftRule = { most: number; undisputed: Date }

const milliseconds = (time: FragmentSqlToken) => sql.fragment`(extract(epoch from ${time}) * 1000)::float8`

/**
 * What soft bounces and deliveries say of addresses (soft-bounces.ts). An address's emails are found by their
 * recipients alone: given the team too, the planner goes through all that a large team sent. A suppression that version
 * 0.1.0 has stored is the contact's until it is copied.
 */
export const softFacts = (
  tx: Tx,
  refs: readonly (IdentityRef & { email: string })[],
  { most, undisputed }: SoftRule,
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

/** Waits until no other transaction counts soft bounces of these addresses, in one order. */
export const lockSoftCounts = (tx: Tx, refs: readonly IdentityRef[]) =>
  tx.query(sql.type(object())`
    select pg_advisory_xact_lock(hashtext('soft_bounces'), key) from (
      select distinct hashtext(team_id || '/' || identity) as key from ${rowsOf('ref', REF, refs)}
      order by key) keys`)
