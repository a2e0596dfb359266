/** Rows of users and their memberships, and the queries over them. Read before the team is known. */
import { sql } from 'slonik'
import { boolean, type InferType, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { ROLES, type Role } from './roles.ts'

const personRow = object({
  id: string().defined(),
  email: string().defined(),
  operator: boolean().defined(),
})
export type PersonRow = InferType<typeof personRow>

/** The person with this address, whatever its case, or null without one. */
export async function personByIdentity(tx: Tx, identity: string): Promise<PersonRow | null> {
  return tx.maybeOne(sql.type(personRow)`select id, email, operator from users where identity = ${identity}`)
}

/** The person with this address, stored if there is none; `operator` makes one, and never ends it. */
export async function upsertPerson(
  tx: Tx,
  person: { id: string; email: string; identity: string; operator: boolean },
  now: Date,
): Promise<PersonRow> {
  return tx.one(sql.type(personRow)`
    insert into users (id, email, identity, operator, created_at)
    values (${person.id}, ${person.email}, ${person.identity}, ${person.operator}, ${sql.timestamp(now)})
    on conflict (identity) do update set operator = users.operator or excluded.operator
    returning id, email, operator`)
}

/** Gives a person a role in a team, in place of the one before. */
export async function setMembership(tx: Tx, teamId: string, userId: string, role: Role): Promise<void> {
  await tx.query(sql.unsafe`
    insert into memberships (team_id, user_id, role) values (${teamId}, ${userId}, ${role})
    on conflict (team_id, user_id) do update set role = excluded.role`)
}

const memberRow = object({
  user_id: string().defined(),
  email: string().defined(),
  role: string().oneOf(ROLES).defined(),
  last_seen_at: string().defined().nullable(),
})
export type MemberRow = InferType<typeof memberRow>

const memberColumns = sql.fragment`
  m.user_id, u.email, m.role,
  (select max(s.seen_at) from dashboard_sessions s where s.user_id = m.user_id) as last_seen_at`

/** The members of a team with their roles, and when each was last on the dashboard, by address. */
export async function membersOfTeam(tx: Tx, teamId: string): Promise<readonly MemberRow[]> {
  return tx.any(sql.type(memberRow)`
    select ${memberColumns} from memberships m join users u on u.id = m.user_id
    where m.team_id = ${teamId} order by u.identity`)
}

/** The member with this address; locked together with all owners, so that the last one cannot be lost. */
export async function lockMember(tx: Tx, teamId: string, identity: string): Promise<MemberRow | null> {
  await tx.query(sql.unsafe`
    select from memberships where team_id = ${teamId} and role = 'owner' order by user_id for update`)
  return tx.maybeOne(sql.type(memberRow)`
    select ${memberColumns} from memberships m join users u on u.id = m.user_id
    where m.team_id = ${teamId} and u.identity = ${identity}`)
}

/**
 * Ends a membership with all that hangs on it: the person's dashboard sessions and open links, and the tokens that act
 * for this team.
 */
export async function deleteMembership(tx: Tx, teamId: string, userId: string, now: Date): Promise<void> {
  await tx.query(sql.unsafe`delete from memberships where team_id = ${teamId} and user_id = ${userId}`)
  await tx.query(sql.unsafe`delete from dashboard_sessions where user_id = ${userId}`)
  await tx.query(sql.unsafe`delete from login_links where user_id = ${userId}`)
  await tx.query(sql.unsafe`
    update sessions set revoked_at = ${sql.timestamp(now)}
    where team_id = ${teamId} and user_id = ${userId} and revoked_at is null`)
  await tx.query(sql.unsafe`
    delete from openid_identities where user_id = ${userId}
      and not exists (select from memberships m where m.user_id = ${userId})`)
}

const seatRow = object({
  team_id: string().defined(),
  name: string().defined(),
  role: string().oneOf(ROLES).defined(),
})
export type SeatRow = InferType<typeof seatRow>

/** The teams that a person is a member of, by name. */
export async function seatsOfPerson(tx: Tx, userId: string): Promise<readonly SeatRow[]> {
  return tx.any(sql.type(seatRow)`
    select m.team_id, t.name, m.role from memberships m join teams t on t.id = m.team_id
    where m.user_id = ${userId} order by lower(t.name), t.id`)
}

const identityRow = object({ user_id: string().defined(), subject: string().defined() })

/** Who somebody of an OpenID provider is here: by the provider's own id, or by the person it was bound to. */
export async function openidIdentities(
  tx: Tx,
  issuer: string,
  { subject, user_id }: { subject: string; user_id: string | null },
) {
  return tx.any(sql.type(identityRow)`
    select user_id, subject from openid_identities
    where issuer = ${issuer} and (subject = ${subject} or user_id = ${user_id})`)
}

/** Binds a person to who it is at an OpenID provider. */
export async function bindOpenidIdentity(
  tx: Tx,
  { issuer, subject, user_id }: { issuer: string; subject: string; user_id: string },
  now: Date,
): Promise<void> {
  await tx.query(sql.unsafe`
    insert into openid_identities (issuer, subject, user_id, created_at)
    values (${issuer}, ${subject}, ${user_id}, ${sql.timestamp(now)}) on conflict do nothing`)
}

/** The person of this id, or null without one. */
export async function personById(tx: Tx, id: string): Promise<PersonRow | null> {
  return tx.maybeOne(sql.type(personRow)`select id, email, operator from users where id = ${id}`)
}
