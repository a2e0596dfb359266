/** Rows of domains, and the queries over them. */
import { sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { rowsOf } from '../../postgres/rows.ts'

const domainRow = object({
  id: string().defined(),
  name: string().defined(),
  status: string().oneOf(['pending', 'verified']).defined(),
  dkim_selector: string().defined(),
  /** The public key as DNS publishes it: base64 of its DER form. */
  dkim_public_key: string().defined(),
  /** The key that will take its place once its record is found; null while none is to. */
  next_dkim_selector: string().defined().nullable(),
  next_dkim_public_key: string().defined().nullable(),
  created_at: string().defined(),
  verified_at: string().defined().nullable(),
})
export type DomainRow = InferType<typeof domainRow>

const domainColumns = sql.fragment`
  id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key, created_at, verified_at`

/** `dkim_private_key` is sealed for this team and domain (dkim.ts). */
export type NewDomain = Pick<DomainRow, 'id' | 'name' | 'status' | 'dkim_selector' | 'dkim_public_key'> & {
  dkim_private_key: Buffer
}

/** Stores a domain, of a name that the team does not have. */
export async function insertDomain(tx: Tx, teamId: string, domain: NewDomain, now: Date): Promise<DomainRow> {
  const at = sql.timestamp(now)
  return tx.one(sql.type(domainRow)`
    insert into domains (
      team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at, verified_at)
    values (${teamId}, ${domain.id}, ${domain.name}, ${domain.status}, ${domain.dkim_selector},
      ${domain.dkim_public_key}, ${sql.binary(domain.dkim_private_key)}, ${at},
      ${domain.status === 'verified' ? at : null})
    returning ${domainColumns}`)
}

/** The team's domain of this name in ASCII form, or null without one. */
export async function domainByName(tx: Tx, teamId: string, name: string): Promise<DomainRow | null> {
  return tx.maybeOne(sql.type(domainRow)`
    select ${domainColumns} from domains where team_id = ${teamId} and name = ${name}`)
}

const roomRow = object({
  plan: string().defined(),
  /** null: no limit. */
  domains_limit: number().defined().nullable(),
  domains: number().defined(),
})
export type DomainRoom = InferType<typeof roomRow>

/** How many domains the team's plan allows, and how many it has. */
export async function domainRoom(tx: Tx, teamId: string): Promise<DomainRoom> {
  return tx.one(sql.type(roomRow)`
    select p.key as plan, p.domains_limit, (select count(*) from domains where team_id = ${teamId}) as domains
    from subscriptions s join plans p on p.key = s.plan_key where s.team_id = ${teamId}`)
}

/** A team's domains by name. */
export async function domainsOfTeam(tx: Tx, teamId: string): Promise<readonly DomainRow[]> {
  return tx.any(sql.type(domainRow)`
    select ${domainColumns} from domains where team_id = ${teamId} order by name`)
}

/** Marks a domain as verified; the first time stays. @returns null when it is gone. */
export async function markDomainVerified(
  tx: Tx,
  teamId: string,
  id: string,
  now: Date,
): Promise<DomainRow | null> {
  return tx.maybeOne(sql.type(domainRow)`
    update domains set status = 'verified', verified_at = coalesce(verified_at, ${sql.timestamp(now)})
    where team_id = ${teamId} and id = ${id} returning ${domainColumns}`)
}

/** Stores the key that is to follow the domain's own, in place of an earlier one. @returns null without the domain. */
export async function putNextKey(
  tx: Tx,
  teamId: string,
  id: string,
  key: Pick<NewDomain, 'dkim_selector' | 'dkim_public_key' | 'dkim_private_key'>,
): Promise<DomainRow | null> {
  return tx.maybeOne(sql.type(domainRow)`
    update domains set
      next_dkim_selector = ${key.dkim_selector}, next_dkim_public_key = ${key.dkim_public_key},
      next_dkim_private_key = ${sql.binary(key.dkim_private_key)}
    where team_id = ${teamId} and id = ${id} returning ${domainColumns}`)
}

/**
 * Lets the key that was to follow take the domain's place, and marks the domain verified.
 * @returns null when it is no longer the one with this selector.
 */
export async function promoteNextKey(
  tx: Tx,
  teamId: string,
  { id, selector }: { id: string; selector: string },
  now: Date,
): Promise<DomainRow | null> {
  return tx.maybeOne(sql.type(domainRow)`
    update domains set
      dkim_selector = next_dkim_selector, dkim_public_key = next_dkim_public_key,
      dkim_private_key = next_dkim_private_key,
      next_dkim_selector = null, next_dkim_public_key = null, next_dkim_private_key = null,
      status = 'verified', verified_at = coalesce(verified_at, ${sql.timestamp(now)})
    where team_id = ${teamId} and id = ${id} and next_dkim_selector = ${selector} returning ${domainColumns}`)
}

/** @returns the row that was deleted, or null when there was none. */
export async function deleteDomain(tx: Tx, teamId: string, name: string): Promise<DomainRow | null> {
  return tx.maybeOne(sql.type(domainRow)`
    delete from domains where team_id = ${teamId} and name = ${name} returning ${domainColumns}`)
}

const dkimKeyRow = object({
  team_id: string().defined(),
  name: string().defined(),
  dkim_selector: string().defined(),
  dkim_private_key: mixed<Buffer>().defined(),
})
export type DkimKeyRow = InferType<typeof dkimKeyRow>

/** What signing takes, by team and domain name, in one statement. Keys are sealed. Only verified domains have one. */
export async function dkimKeysByName(
  tx: Tx,
  domains: readonly { team_id: string; name: string }[],
): Promise<readonly DkimKeyRow[]> {
  return tx.any(sql.prepared('dkim_keys_by_name', dkimKeyRow)`
    select team_id, name, dkim_selector, dkim_private_key from domains
    where (team_id, name) in (select * from ${rowsOf('ref', { team_id: 'uuid', name: 'text' }, domains)})
      and status = 'verified'`)
}

const ownerRow = object({ team_id: string().defined() })

/** The team that has verified this domain; of several the one that did so first. Null for none. */
export async function teamOfDomain(tx: Tx, name: string): Promise<string | null> {
  const owner = await tx.maybeOne(sql.type(ownerRow)`
    select team_id from domains where name = ${name} and status = 'verified' order by verified_at limit 1`)
  return owner?.team_id ?? null
}

const sealedKeysRow = object({
  team_id: string().defined(),
  id: string().defined(),
  name: string().defined(),
  dkim_private_key: mixed<Buffer>().defined(),
  next_dkim_private_key: mixed<Buffer>().defined().nullable(),
})
export type SealedKeysRow = InferType<typeof sealedKeysRow>

/** The sealed keys of every domain of every team, locked until the transaction ends. */
export async function lockSealedKeys(tx: Tx): Promise<readonly SealedKeysRow[]> {
  return tx.any(sql.type(sealedKeysRow)`
    select team_id, id, name, dkim_private_key, next_dkim_private_key from domains order by team_id, id for update`)
}

/** Stores keys that were sealed afresh. */
export async function updateSealedKeys(tx: Tx, rows: readonly SealedKeysRow[]): Promise<void> {
  const types = { team_id: 'uuid', id: 'uuid', dkim_private_key: 'bytea', next_dkim_private_key: 'bytea' }
  await tx.query(sql.unsafe`
    update domains d set dkim_private_key = k.dkim_private_key, next_dkim_private_key = k.next_dkim_private_key
    from ${rowsOf('k', types, rows)}
    where d.team_id = k.team_id and d.id = k.id`)
}
