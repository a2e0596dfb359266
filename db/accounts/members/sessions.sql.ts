/**
 * Rows of dashboard sessions with their memberships, one-time links and link requests. Secrets are stored as digests.
 * A link or session with a `team_id` is for that team only, with the team's spelling of the address.
 */
import { sql } from 'slonik'
import { boolean, type InferType, number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'
import { ROLES, type Role } from './roles.ts'

/** Stores a one-time link. With a team, also the user's current role in it. */
export const insertLink = (
  tx: Tx,
  link: { hash: Buffer; user_id: string; team_id: string | null; expires_at: Date },
  now: Date,
) =>
  tx.query(sql.unsafe`
    insert into login_links (hash, user_id, team_id, role, created_at, expires_at)
    values (${sql.binary(link.hash)}, ${link.user_id}, ${link.team_id},
      (select role from memberships where team_id = ${link.team_id} and user_id = ${link.user_id}),
      ${sql.timestamp(now)}, ${sql.timestamp(link.expires_at)})`)

const ownerRow = row({
  user_id: string(),
  team_id: string().nullable(),
  role: string().oneOf(ROLES).nullable(),
  email: string(),
})

const ofLink = sql.fragment`
  l.user_id, l.team_id, l.role, coalesce(
    (select m.email from memberships m where m.team_id = l.team_id and m.user_id = l.user_id), u.email) as email`

export const personOfLink = (tx: Tx, hash: Buffer, now: Date) =>
  tx.maybeOne(sql.type(ownerRow)`
    select ${ofLink} from login_links l join users u on u.id = l.user_id
    where l.hash = ${sql.binary(hash)} and l.expires_at > ${sql.timestamp(now)}`)

const openLinkRow = row({ user_id: string(), expires_at: string() })

/** Returns when the unused links of a team's members expire, by user. The last one counts. */
export async function openLinks(tx: Tx, teamId: string, now: Date): Promise<ReadonlyMap<string, string>> {
  const rows = await tx.any(sql.type(openLinkRow)`
    select l.user_id, max(l.expires_at) as expires_at
    from memberships m join login_links l on l.user_id = m.user_id and l.team_id = m.team_id
    where m.team_id = ${teamId} and l.expires_at > ${sql.timestamp(now)} group by l.user_id`)
  return new Map(rows.map(({ user_id, expires_at }) => [user_id, expires_at]))
}

const placeRow = row({ name: string(), role: string().oneOf(ROLES) })
export type Place = InferType<typeof placeRow>

/** Returns the teams of a user with their roles. @param teamId only this team. Null: all. */
export const teamsOfUser = (tx: Tx, userId: string, teamId: string | null) =>
  tx.any(sql.type(placeRow)`
    select t.name, m.role from memberships m join teams t on t.id = m.team_id
    where m.user_id = ${userId} and (${teamId}::uuid is null or m.team_id = ${teamId})
    order by lower(t.name), t.id`)

/** Uses a link up. @returns its user and team, or null if it isn't valid. */
export const consumeLink = (tx: Tx, hash: Buffer, now: Date) =>
  tx.maybeOne(sql.type(ownerRow)`
    delete from login_links l using users u
    where l.hash = ${sql.binary(hash)} and l.expires_at > ${sql.timestamp(now)} and u.id = l.user_id
    returning ${ofLink}`)

const requestsRow = row({ of_both: number(), of_identity: number(), of_network: number() })

type LinkRequest = { identity: string; network: string }

/** Counts the links that were sent by mail after `since`. Others wait until the transaction ends. */
export async function countLinkRequests(tx: Tx, { identity, network }: LinkRequest, since: Date) {
  await tx.query(sql.unsafe`lock table login_requests in share row exclusive mode`)
  return tx.one(sql.type(requestsRow)`
    select count(*) filter (where identity = ${identity} and origin = ${network}) as of_both,
      count(*) filter (where identity = ${identity}) as of_identity,
      count(*) filter (where origin = ${network}) as of_network
    from login_requests
    where (identity = ${identity} or origin = ${network}) and created_at > ${sql.timestamp(since)}`)
}

export const insertLinkRequest = (
  tx: Tx,
  { id, identity, network }: LinkRequest & { id: string },
  now: Date,
) =>
  tx.query(sql.unsafe`
    insert into login_requests (id, identity, origin, created_at)
    values (${id}, ${identity}, ${network}, ${sql.timestamp(now)})`)

/** Withdraws a request whose email was not sent, so that no limit counts it. */
export const deleteLinkRequest = (tx: Tx, id: string) =>
  tx.query(sql.unsafe`delete from login_requests where id = ${id}`)

const begunRow = row({ holds: boolean() })

/**
 * Stores a browser session with the user's current memberships: only `team_id` if given, at most `role` if given.
 * Needs a transaction.
 * @returns false if the session grants no access, because the user has no such membership and isn't an operator.
 */
export async function insertDashboardSession(
  tx: Tx,
  session: {
    id: string
    hash: Buffer
    user_id: string
    team_id: string | null
    role: Role | null
    user_agent: string
    expires_at: Date
  },
  now: Date,
) {
  const { id, hash, user_id, team_id, role, user_agent, expires_at } = session
  await tx.query(sql.unsafe`
    insert into dashboard_sessions (id, hash, user_id, team_id, operator, user_agent, created_at, seen_at, expires_at)
    select ${id}, ${sql.binary(hash)}, u.id, ${team_id}, u.operator and ${team_id}::uuid is null, ${user_agent},
      ${sql.timestamp(now)}, ${sql.timestamp(now)}, ${sql.timestamp(expires_at)}
    from users u where u.id = ${user_id}`)
  await tx.query(sql.unsafe`
    insert into dashboard_seats (team_id, user_id, session_id, role)
    select m.team_id, m.user_id, ${id}, coalesce(${role}, m.role) from memberships m
    where m.user_id = ${user_id} and (${team_id}::uuid is null or m.team_id = ${team_id})
    for key share`)
  return tx.oneFirst(sql.type(begunRow)`
    select s.operator or exists (select from dashboard_seats d where d.session_id = s.id) as holds
    from dashboard_sessions s where s.id = ${id}`)
}

const sessionRow = row({
  id: string(),
  user_id: string(),
  team_id: string().nullable(),
  email: string(),
  operator: boolean(),
  seen_at: string(),
})

/** Returns the session with this digest, unless it expired or was idle since `idle`. An operator must still be one. */
export const sessionByHash = (tx: Tx, hash: Buffer, { now, idle }: { now: Date; idle: Date }) =>
  tx.maybeOne(sql.type(sessionRow)`
    select s.id, s.user_id, s.team_id, coalesce(m.email, u.email) as email, s.operator and u.operator as operator,
      s.seen_at
    from dashboard_sessions s join users u on u.id = s.user_id
    left join memberships m on m.team_id = s.team_id and m.user_id = s.user_id
    where s.hash = ${sql.binary(hash)} and s.expires_at > ${sql.timestamp(now)}
      and s.seen_at > ${sql.timestamp(idle)}`)

const membershipRow = row({
  team_id: string(),
  name: string(),
  /** The user's current role, and that at the start of the session. The less privileged one counts. */
  role: string().oneOf(ROLES),
  held: string().oneOf(ROLES),
  suspended: boolean(),
  test: boolean(),
  created_at: string(),
  seen_at: string().nullable(),
})

export const membershipsOfSession = (tx: Tx, sessionId: string) =>
  tx.any(sql.type(membershipRow)`
    select s.team_id, t.name, m.role, s.role as held, t.suspended_at is not null as suspended, t.test, t.created_at,
      s.seen_at
    from dashboard_seats s join teams t on t.id = s.team_id
    join memberships m on m.team_id = s.team_id and m.user_id = s.user_id
    where s.session_id = ${sessionId} order by lower(t.name), t.id`)

const opensRow = row({ opens: boolean() })

/** True if a session currently gives access to a team's pages. */
export const sessionOpens = (
  tx: Tx,
  { session_id, team_id }: { session_id: string; team_id: string },
  now: Date,
) =>
  tx.oneFirst(sql.type(opensRow)`
    select exists (
      select from dashboard_sessions s join users u on u.id = s.user_id
      where s.id = ${session_id} and s.expires_at > ${sql.timestamp(now)} and (s.operator and u.operator or exists (
        select from dashboard_seats d where d.team_id = ${team_id} and d.session_id = s.id))) as opens`)

export const recordMembershipSeen = (
  tx: Tx,
  teamId: string,
  { session_id, user_id }: { session_id: string; user_id: string },
  now: Date,
) =>
  tx.query(sql.unsafe`
    update dashboard_seats set seen_at = ${sql.timestamp(now)}
    where team_id = ${teamId} and user_id = ${user_id} and session_id = ${session_id}`)

/** Ends a user's sessions and open links of one team. Sessions of other teams stay. */
export async function deleteSessionMemberships(tx: Tx, teamId: string, userId: string): Promise<void> {
  await tx.query(sql.unsafe`delete from login_links where user_id = ${userId} and team_id = ${teamId}`)
  await tx.query(sql.unsafe`delete from dashboard_seats where team_id = ${teamId} and user_id = ${userId}`)
  await tx.query(sql.unsafe`delete from dashboard_sessions where user_id = ${userId} and team_id = ${teamId}`)
}

export const touchSession = (tx: Tx, id: string, now: Date) =>
  tx.query(sql.unsafe`update dashboard_sessions set seen_at = ${sql.timestamp(now)} where id = ${id}`)

export const deleteSession = (tx: Tx, id: string) =>
  tx.query(sql.unsafe`delete from dashboard_sessions where id = ${id}`)

/** Selects sessions. A session for one team only sees others for that team. */
type SessionScope = { user_id: string; team_id: string | null }

const inScope = ({ user_id, team_id }: SessionScope) =>
  sql.fragment`user_id = ${user_id} and (${team_id}::uuid is null or team_id = ${team_id})`

/**
 * Ends these sessions, except `keep`.
 * @param only the ID of a single session, or null for all.
 * @returns how many ended.
 */
export async function deleteOtherSessions(
  tx: Tx,
  scope: SessionScope,
  { keep, only = null }: { keep: string; only?: string | null },
): Promise<number> {
  const { rowCount } = await tx.query(sql.unsafe`
    delete from dashboard_sessions
    where ${inScope(scope)} and id <> ${keep} and (${only}::uuid is null or id = ${only})`)
  return rowCount
}

const listedRow = row({ id: string(), user_agent: string(), created_at: string(), seen_at: string() })

/** Returns these sessions, last used first. */
export const sessionsOfPerson = (tx: Tx, scope: SessionScope, { now, idle }: { now: Date; idle: Date }) =>
  tx.any(sql.type(listedRow)`
    select id, user_agent, created_at, seen_at from dashboard_sessions
    where ${inScope(scope)} and expires_at > ${sql.timestamp(now)} and seen_at > ${sql.timestamp(idle)}
    order by seen_at desc`)

/** Deletes expired sessions and links, and requests older than `since`. */
export async function deleteOver(tx: Tx, { now, idle, since }: { now: Date; idle: Date; since: Date }) {
  await tx.query(sql.unsafe`
    delete from dashboard_sessions where expires_at <= ${sql.timestamp(now)} or seen_at <= ${sql.timestamp(idle)}`)
  await tx.query(sql.unsafe`delete from login_links where expires_at <= ${sql.timestamp(now)}`)
  await tx.query(sql.unsafe`delete from login_requests where created_at <= ${sql.timestamp(since)}`)
}
