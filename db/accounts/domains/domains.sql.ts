/** Rows of domains. */
import { sql } from 'slonik'
import { boolean, type InferType, mixed, number, string } from 'yup'
import { ofTestTeam } from '../../channels/channel.sql.ts'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf, teamIdRow } from '../../postgres/rows.ts'
import { isSuspended } from '../teams/teams.sql.ts'

const domainRow = row({
  id: string(),
  name: string(),
  status: string().oneOf(['pending', 'verified']),
  dkim_selector: string(),
  /** The public key as DNS publishes it: base64 of its DER form. */
  dkim_public_key: string(),
  /** The key that replaces it once its record is found, or null. */
  next_dkim_selector: string().nullable(),
  next_dkim_public_key: string().nullable(),
  created_at: string(),
  verified_at: string().nullable(),
  /** When the nightly checks first didn't find its key, or null. */
  missing_since: string().nullable(),
  /** When that was certain and its owners were notified, or null. */
  failing_since: string().nullable(),
  /** The second key, for Ed25519 signatures, or null. */
  ed25519_selector: string().nullable(),
  ed25519_public_key: string().nullable(),
  /** Whether return addresses use its own return path. When the relay last rejected them there, and its response. */
  return_path: boolean(),
  return_path_rejected_at: string().nullable(),
  return_path_response: string().nullable(),
})
export type DomainRow = InferType<typeof domainRow>

const domainColumns = sql.fragment`
  id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key, created_at, verified_at,
  missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path, return_path_rejected_at,
  return_path_response`

/** `dkim_private_key` is encrypted for this team and domain (dkim.ts). */
export type NewDomain = Pick<DomainRow, 'id' | 'name' | 'status' | 'dkim_selector' | 'dkim_public_key'> & {
  dkim_private_key: Buffer
}

export async function insertDomain(tx: Tx, teamId: string, domain: NewDomain, now: Date) {
  const at = sql.timestamp(now)
  return tx.one(sql.type(domainRow)`
    insert into domains (
      team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at, verified_at)
    values (${teamId}, ${domain.id}, ${domain.name}, ${domain.status}, ${domain.dkim_selector},
      ${domain.dkim_public_key}, ${sql.binary(domain.dkim_private_key)}, ${at},
      ${domain.status === 'verified' ? at : null})
    returning ${domainColumns}`)
}

/** @param name in ASCII form. */
export const domainByName = (tx: Tx, teamId: string, name: string) =>
  tx.maybeOne(sql.type(domainRow)`
    select ${domainColumns} from domains where team_id = ${teamId} and name = ${name}`)

export const domainById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(domainRow)`
    select ${domainColumns} from domains where team_id = ${teamId} and id = ${id}`)

const roomRow = row({
  plan: string(),
  /** Null: no limit. */
  domains_limit: number().nullable(),
  domains: number(),
})

export const readDomainQuota = (tx: Tx, teamId: string) =>
  tx.one(sql.type(roomRow)`
    select p.key as plan, p.domains_limit, (select count(*) from domains where team_id = ${teamId}) as domains
    from subscriptions s join plans p on p.key = s.plan_key where s.team_id = ${teamId}`)

export const domainsOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(domainRow)`
    select ${domainColumns} from domains where team_id = ${teamId} order by name`)

const isFound = (at: Date) => sql.fragment`
  status = 'verified', verified_at = coalesce(verified_at, ${sql.timestamp(at)}), found_at = ${sql.timestamp(at)},
  missing_since = null, failing_since = null`

/** Marks a domain as verified. The first time stays. @returns null if it was deleted. */
export const markDomainVerified = (tx: Tx, teamId: string, id: string, now: Date) =>
  tx.maybeOne(sql.type(domainRow)`
    update domains set ${isFound(now)}
    where team_id = ${teamId} and id = ${id} returning ${domainColumns}`)

/**
 * Stores a domain's next key, replacing an earlier one.
 * @param seen the selector of the newest key that the user saw. Null: any.
 * @returns null if the domain was deleted, or has a newer key.
 */
export const storeNextKey = (
  tx: Tx,
  teamId: string,
  id: string,
  {
    seen,
    ...key
  }: Pick<NewDomain, 'dkim_selector' | 'dkim_public_key' | 'dkim_private_key'> & { seen: string | null },
) =>
  tx.maybeOne(sql.type(domainRow)`
    update domains set
      next_dkim_selector = ${key.dkim_selector}, next_dkim_public_key = ${key.dkim_public_key},
      next_dkim_private_key = ${sql.binary(key.dkim_private_key)}
    where team_id = ${teamId} and id = ${id}
      and (${seen}::text is null or ${seen} = coalesce(next_dkim_selector, dkim_selector))
    returning ${domainColumns}`)

/**
 * Replaces a domain's key with the next one, and marks it verified. @returns null if the next key has another
 * selector.
 */
export const promoteNextKey = (
  tx: Tx,
  teamId: string,
  { id, selector }: { id: string; selector: string },
  now: Date,
) =>
  tx.maybeOne(sql.type(domainRow)`
    update domains set
      dkim_selector = next_dkim_selector, dkim_public_key = next_dkim_public_key,
      dkim_private_key = next_dkim_private_key,
      next_dkim_selector = null, next_dkim_public_key = null, next_dkim_private_key = null,
      ${isFound(now)}
    where team_id = ${teamId} and id = ${id} and next_dkim_selector = ${selector} returning ${domainColumns}`)

const recheckedRow = domainRow.concat(row({ team_id: string() }))
type VerifiedDomain = InferType<typeof recheckedRow>

/** Returns verified domains of live teams that were last checked before a time, oldest check first. */
export const domainsToRecheck = (tx: Tx, before: Date, limit: number) =>
  tx.any(sql.type(recheckedRow)`
    select team_id, ${domainColumns} from domains
    where status = 'verified' and (checked_at is null or checked_at < ${sql.timestamp(before)}) and not ${ofTestTeam}
    order by checked_at nulls first limit ${limit}`)

/** The result of checking the key with this selector. `found` null: DNS didn't respond. */
export type Recheck = Pick<VerifiedDomain, 'team_id' | 'id' | 'dkim_selector'> & { found: boolean | null }

const failingRow = recheckedRow.concat(row({ has_listeners: boolean() }))

/**
 * @param certain a domain that has been missing since then or earlier is failing from now on.
 * @returns the newly failing domains, and whether their team has webhooks.
 */
export async function recordRechecks(
  tx: Tx,
  rechecks: readonly Recheck[],
  { now, certain }: { now: Date; certain: Date },
) {
  const types = { team_id: 'uuid', id: 'uuid', dkim_selector: 'text', found: 'bool' }
  const at = sql.timestamp(now)
  return tx.any(sql.type(failingRow)`
    with recheck as (select * from ${rowsOf('l', types, rechecks)}), d as materialized (
      select * from domains where (team_id, id) in (select team_id, id from recheck) order by team_id, id for update
    ), noted as (
      update domains set
        checked_at = ${at},
        found_at = case when recheck.found then ${at} else d.found_at end,
        missing_since = case
          when recheck.found then null
          when not recheck.found and d.found_at is not null then coalesce(d.missing_since, ${at})
          else d.missing_since end,
        failing_since = case
          when recheck.found then null
          when not recheck.found and d.missing_since <= ${sql.timestamp(certain)} then coalesce(d.failing_since, ${at})
          else d.failing_since end
      from recheck join d using (team_id, id, dkim_selector)
      where domains.team_id = d.team_id and domains.id = d.id
      returning domains.*, d.failing_since as known_since
    )
    select team_id, ${domainColumns}, ${hasListeners(sql.fragment`noted.team_id`)} as has_listeners from noted
    where failing_since is not null and known_since is null`)
}

/**
 * Enables or disables a domain's own return path, and deletes the relay's last response. @returns null if it was
 * deleted.
 */
export const storeReturnPath = (tx: Tx, teamId: string, id: string, on: boolean) =>
  tx.maybeOne(sql.type(domainRow)`
    update domains set return_path = ${on}, return_path_rejected_at = null, return_path_response = null
    where team_id = ${teamId} and id = ${id} returning ${domainColumns}`)

/** Stores a domain's second key, or removes it. @returns null if the domain was deleted. */
export const storeSecondKey = (
  tx: Tx,
  teamId: string,
  id: string,
  key: { ed25519_selector: string; ed25519_public_key: string; ed25519_private_key: Buffer } | null,
) =>
  tx.maybeOne(sql.type(domainRow)`
    update domains set ed25519_selector = ${key?.ed25519_selector ?? null},
      ed25519_public_key = ${key?.ed25519_public_key ?? null},
      ed25519_private_key = ${key === null ? null : sql.binary(key.ed25519_private_key)}
    where team_id = ${teamId} and id = ${id} returning ${domainColumns}`)

/**
 * Records that the relay rejects the own return paths of these domains, which disables them. The first time stays.
 */
export async function recordRejectedReturnPaths(
  tx: Tx,
  rejected: readonly { team_id: string; name: string; response: string }[],
  now: Date,
): Promise<void> {
  const types = { team_id: 'uuid', name: 'text', response: 'text' }
  await tx.query(sql.unsafe`
    update domains d set return_path_rejected_at = ${sql.timestamp(now)}, return_path_response = r.response
    from (select distinct on (team_id, name) * from ${rowsOf('r', types, rejected)} order by team_id, name) r
    where d.team_id = r.team_id and d.name = r.name and d.return_path and d.return_path_rejected_at is null`)
}

const rejectedRow = row({ team_id: string(), name: string(), at: string(), response: string() })

/** Returns domains whose own return path the relay rejects, latest first. */
export const rejectedReturnPaths = (tx: Tx, limit: number) =>
  tx.any(sql.type(rejectedRow)`
    select team_id, name, return_path_rejected_at as at, coalesce(return_path_response, '') as response from domains
    where return_path and return_path_rejected_at is not null
    order by return_path_rejected_at desc limit ${limit}`)

/** @returns the deleted row, or null. */
export const deleteDomain = (tx: Tx, teamId: string, name: string) =>
  tx.maybeOne(sql.type(domainRow)`
    delete from domains where team_id = ${teamId} and name = ${name} returning ${domainColumns}`)

export const sendingDomainRow = row({
  team_id: string(),
  name: string(),
  dkim_selector: string(),
  dkim_private_key: mixed<Buffer>(),
  ed25519_selector: string().nullable(),
  ed25519_private_key: mixed<Buffer>().nullable(),
  /** True if return addresses are at its own return path, and the relay hasn't rejected them there. */
  return_path: boolean(),
})
/** What sending needs of a verified domain. Keys are encrypted. */
export type StoredDomain = InferType<typeof sendingDomainRow>

export const sendingColumns = sql.fragment`
  team_id, name, dkim_selector, dkim_private_key, ed25519_selector, ed25519_private_key,
  return_path and return_path_rejected_at is null as return_path`

/** Returns what sending needs of verified domains, by team and name, in one statement. */
export const sendingDomains = (tx: Tx, domains: readonly { team_id: string; name: string }[]) =>
  tx.any(sql.prepared('sending_domains', sendingDomainRow)`
    select ${sendingColumns} from domains
    where (team_id, name) in (select * from ${rowsOf('ref', { team_id: 'uuid', name: 'text' }, domains)})
      and status = 'verified'`)

/**
 * Returns the team that has verified this domain, or null. If there are several, the first one, preferring teams that
 * aren't suspended. Never a test team, whose domains are verified without DNS.
 */
export const teamOfDomain = (tx: Tx, name: string) =>
  tx.maybeOneFirst(sql.type(teamIdRow)`
    select team_id from domains where name = ${name} and status = 'verified' and not ${ofTestTeam}
    order by ${isSuspended(sql.fragment`domains.team_id`)}, verified_at limit 1`)

const sealedKeysRow = row({
  team_id: string(),
  id: string(),
  name: string(),
  dkim_private_key: mixed<Buffer>(),
  next_dkim_private_key: mixed<Buffer>().nullable(),
  ed25519_private_key: mixed<Buffer>().nullable(),
})
export type SealedKeysRow = InferType<typeof sealedKeysRow>

/** Locks the encrypted keys of all domains. */
export const lockSealedKeys = (tx: Tx) =>
  tx.any(sql.type(sealedKeysRow)`
    select team_id, id, name, dkim_private_key, next_dkim_private_key, ed25519_private_key from domains
    order by team_id, id for update`)

export async function updateSealedKeys(tx: Tx, rows: readonly SealedKeysRow[]): Promise<void> {
  const keys = { dkim_private_key: 'bytea', next_dkim_private_key: 'bytea', ed25519_private_key: 'bytea' }
  const types = { team_id: 'uuid', id: 'uuid', ...keys }
  await tx.query(sql.unsafe`
    update domains d set dkim_private_key = k.dkim_private_key, next_dkim_private_key = k.next_dkim_private_key,
      ed25519_private_key = k.ed25519_private_key
    from ${rowsOf('k', types, rows)}
    where d.team_id = k.team_id and d.id = k.id`)
}
