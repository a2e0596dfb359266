/** Rows of domains, and the queries over them. */
import { sql } from 'slonik'
import { type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'

const domainRow = object({
  id: string().defined(),
  name: string().defined(),
  status: string().oneOf(['pending', 'verified']).defined(),
  dkim_selector: string().defined(),
  /** The public key as DNS publishes it: base64 of its DER form. */
  dkim_public_key: string().defined(),
  created_at: string().defined(),
  verified_at: string().defined().nullable(),
})
export type DomainRow = InferType<typeof domainRow>

const domainColumns = sql.fragment`id, name, status, dkim_selector, dkim_public_key, created_at, verified_at`

/** `dkim_private_key` is sealed by `secrets.encrypt('dkim', …)`. */
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

/** @returns the row that was deleted, or null when there was none. */
export async function deleteDomain(tx: Tx, teamId: string, name: string): Promise<DomainRow | null> {
  return tx.maybeOne(sql.type(domainRow)`
    delete from domains where team_id = ${teamId} and name = ${name} returning ${domainColumns}`)
}

const dkimKeyRow = object({
  id: string().defined(),
  name: string().defined(),
  dkim_selector: string().defined(),
  dkim_private_key: mixed<Buffer>().defined(),
})
export type DkimKeyRow = InferType<typeof dkimKeyRow>

/** What signing takes, for the domains of many rows in one statement. Keys are sealed; removed domains are missing. */
export async function dkimKeysByDomain(
  tx: Tx,
  rows: readonly { team_id: string; domain_id: string }[],
): Promise<readonly DkimKeyRow[]> {
  const refs = rows.map((row) => [row.team_id, row.domain_id])
  return tx.any(sql.prepared('dkim_keys_by_domain', dkimKeyRow)`
    select id, name, dkim_selector, dkim_private_key from domains
    where (team_id, id) in (select * from ${sql.unnest(refs, ['uuid', 'uuid'])} as ref (team_id, id))`)
}

const ownerRow = object({ team_id: string().defined() })

/** The team that has verified this domain; of several the one that did so first. Null for none. */
export async function teamOfDomain(tx: Tx, name: string): Promise<string | null> {
  const owner = await tx.maybeOne(sql.type(ownerRow)`
    select team_id from domains where name = ${name} and status = 'verified' order by verified_at limit 1`)
  return owner?.team_id ?? null
}
