/** Rows of users and their memberships. Read before the team is known. */
import { sql } from 'slonik'
import { boolean, type InferType, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { ROLES, type Role } from './roles.ts'

const personRow = row({ id: string(), email: string(), operator: boolean() })
export type PersonRow = InferType<typeof personRow>

/** Returns the user with this address, in any case, or null. */
export const personByIdentity = (tx: Tx, identity: string) =>
  tx.maybeOne(sql.type(personRow)`select id, email, operator from users where identity = ${identity}`)

/** Returns or creates the user with this address. `operator` makes the user an operator, and never revokes that. */
export const upsertPerson = (
  tx: Tx,
  person: { id: string; email: string; identity: string; operator: boolean },
  now: Date,
) =>
  tx.one(sql.type(personRow)`
    insert into users (id, email, identity, operator, created_at)
    values (${person.id}, ${person.email}, ${person.identity}, ${person.operator}, ${sql.timestamp(now)})
    on conflict (identity) do update set operator = users.operator or excluded.operator
    returning id, email, operator`)

/** Adds a member, known to the team by this address. @returns false for a current member. */
export async function insertMembership(
  tx: Tx,
  teamId: string,
  { user_id, email, role }: { user_id: string; email: string; role: Role },
): Promise<boolean> {
  const { rowCount } = await tx.query(sql.unsafe`
    insert into memberships (team_id, user_id, email, role) values (${teamId}, ${user_id}, ${email}, ${role})
    on conflict (team_id, user_id) do nothing`)
  return rowCount > 0
}

export const updateRole = (tx: Tx, teamId: string, userId: string, role: Role) =>
  tx.query(sql.unsafe`
    update memberships set role = ${role} where team_id = ${teamId} and user_id = ${userId}`)

const memberRow = row({
  user_id: string(),
  email: string(),
  role: string().oneOf(ROLES),
  last_seen_at: string().nullable(),
})
export type MemberRow = InferType<typeof memberRow>

const memberColumns = sql.fragment`
  m.user_id, coalesce(m.email, u.email) as email, m.role,
  (select max(s.seen_at) from dashboard_seats s
    where s.team_id = m.team_id and s.user_id = m.user_id) as last_seen_at`

/** Lists a team's members by address, with their roles and last visits. */
export const membersOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(memberRow)`
    select ${memberColumns} from memberships m join users u on u.id = m.user_id
    where m.team_id = ${teamId} order by u.identity`)

/** Locks the member with this address, and all owners, so that the last one can't be lost. */
export async function lockMember(tx: Tx, teamId: string, identity: string) {
  await tx.query(sql.unsafe`
    select from memberships where team_id = ${teamId} and role = 'owner' order by user_id for update`)
  return tx.maybeOne(sql.type(memberRow)`
    select ${memberColumns} from memberships m join users u on u.id = m.user_id
    where m.team_id = ${teamId} and u.identity = ${identity} for update of m`)
}

/**
 * Deletes a membership with its sessions (foreign key), and revokes the user's tokens for this team. Deletes the
 * user's OpenID identity if no membership is left, unless the user is an operator.
 */
export async function deleteMembership(tx: Tx, teamId: string, userId: string, now: Date): Promise<void> {
  await tx.query(sql.unsafe`delete from memberships where team_id = ${teamId} and user_id = ${userId}`)
  await tx.query(sql.unsafe`
    update sessions set revoked_at = ${sql.timestamp(now)}
    where team_id = ${teamId} and user_id = ${userId} and revoked_at is null`)
  await tx.query(sql.unsafe`
    delete from openid_identities o using users u
    where o.user_id = ${userId} and u.id = o.user_id and not u.operator
      and not exists (select from memberships m where m.user_id = u.id)`)
}

const anyRow = row({ any: boolean() })

/** True if a user has a team or is an operator. */
export async function belongs(tx: Tx, { id, operator }: PersonRow) {
  if (operator) return true
  return tx.oneFirst(sql.type(anyRow)`select exists (select from memberships where user_id = ${id}) as any`)
}

const identityRow = row({ user_id: string(), subject: string() })

/** Returns the identities with the provider's ID, or of the user that it was bound to. */
export const openidIdentities = (
  tx: Tx,
  issuer: string,
  { subject, user_id }: { subject: string; user_id: string | null },
) =>
  tx.any(sql.type(identityRow)`
    select user_id, subject from openid_identities
    where issuer = ${issuer} and (subject = ${subject} or user_id = ${user_id})`)

export const bindOpenidIdentity = (
  tx: Tx,
  { issuer, subject, user_id }: { issuer: string; subject: string; user_id: string },
  now: Date,
) =>
  tx.query(sql.unsafe`
    insert into openid_identities (issuer, subject, user_id, created_at)
    values (${issuer}, ${subject}, ${user_id}, ${sql.timestamp(now)}) on conflict do nothing`)

export const personById = (tx: Tx, id: string) =>
  tx.maybeOne(sql.type(personRow)`select id, email, operator from users where id = ${id}`)
