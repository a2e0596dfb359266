/** Rows of api_keys, sessions and users. Read before the team is known. */
import { sql } from 'slonik'
import { array, type InferType, object, string } from 'yup'
import { CHANNEL_FACTS } from '../../channels/list.ts'
import { allOf } from '../../postgres/conditions.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idRow, row } from '../../postgres/rows.ts'
import { ROLES, type Role } from '../members/roles.ts'

export const SCOPES = [
  'contacts:read',
  'contacts:write',
  ...CHANNEL_FACTS.map(({ scope }) => scope),
  'broadcasts:read',
  'broadcasts:write',
  'broadcasts:send',
] as const
export type Scope = (typeof SCOPES)[number]

const principalRow = row({
  hash: string(),
  id: string(),
  team_id: string(),
  scopes: array(string()),
  domain: string().nullable(),
  /** The email address of a session's user. Null for a key. */
  person: string().nullable(),
  /** The hour of its last use. Null for a session, whose use isn't recorded. */
  last_used_at: string().nullable(),
})

export type PrincipalRow = InferType<typeof principalRow>

const wanted = (hashes: readonly string[]) => sql.fragment`
  (select decode(hash, 'hex') from unnest(${sql.array(hashes, 'text')}) as w (hash))`

/** Finds API keys by their hashes in hex. Excludes revoked and expired keys, and those of a suspended team. */
export const principalsByKeys = (tx: Tx, hashes: readonly string[], now: Date) =>
  tx.any(sql.prepared('principals_by_keys', principalRow)`
    select encode(k.hash, 'hex') as hash, k.id, k.team_id, k.scopes, k.domain, null::text as person, k.last_used_at
    from api_keys k join teams t on t.id = k.team_id and t.suspended_at is null
    where k.hash in ${wanted(hashes)} and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > ${sql.timestamp(now)})`)

const scopesFor = (scopes: readonly Scope[]) => sql.fragment`${sql.array(scopes, 'text')}`
const READING = SCOPES.filter((scope) => scope.endsWith(':read'))

/**
 * Finds session tokens likewise. A token has every scope of its team. If its user is a viewer, or was when creating
 * it, it only reads (DECISIONS: Session scope).
 */
export const principalsBySessions = (tx: Tx, hashes: readonly string[], now: Date) =>
  tx.any(sql.prepared('principals_by_sessions', principalRow)`
    select encode(s.hash, 'hex') as hash, s.id, s.team_id, null::text as domain, null::timestamptz as last_used_at,
      u.email as person,
      case when s.role = 'viewer' or (s.role is not null and m.role = 'viewer')
        then ${scopesFor(READING)} else ${scopesFor(SCOPES)} end as scopes
    from sessions s join teams t on t.id = s.team_id and t.suspended_at is null
      left join memberships m on m.team_id = s.team_id and m.user_id = s.user_id
      left join users u on u.id = s.user_id
    where s.hash in ${wanted(hashes)} and s.revoked_at is null and s.expires_at > ${sql.timestamp(now)}
      and (s.role is null or m.role is not null)`)

/** Records the hour of a key's use. One of many concurrent requests does, and none waits. */
export const noteKeyUse = (tx: Tx, id: string, hour: Date) =>
  tx.query(sql.prepared('note_key_use', object())`
    update api_keys set last_used_at = ${sql.timestamp(hour)}
    where id in (
      select id from api_keys
      where id = ${id} and (last_used_at is null or last_used_at < ${sql.timestamp(hour)})
      for no key update skip locked)`)

type NewKey = Pick<KeyRow, 'id' | 'name' | 'prefix' | 'domain'> & {
  hash: Buffer
  scopes: readonly string[]
  expires_at: Date | null
}

export const insertKey = (tx: Tx, teamId: string, key: NewKey, now: Date) =>
  tx.query(sql.unsafe`
    insert into api_keys (id, team_id, name, prefix, hash, scopes, domain, created_at, expires_at)
    values (${key.id}, ${teamId}, ${key.name}, ${key.prefix}, ${sql.binary(key.hash)}, ${sql.array(key.scopes, 'text')},
      ${key.domain}, ${sql.timestamp(now)}, ${key.expires_at && sql.timestamp(key.expires_at)})`)

const keyRow = row({
  id: string(),
  name: string(),
  prefix: string(),
  scopes: array(string()),
  domain: string().nullable(),
  created_at: string(),
  expires_at: string().nullable(),
  revoked_at: string().nullable(),
  last_used_at: string().nullable(),
})
export type KeyRow = InferType<typeof keyRow>

export const keysOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(keyRow)`
    select id, name, prefix, scopes, domain, created_at, expires_at, revoked_at, last_used_at
    from api_keys where team_id = ${teamId} order by id`)

/** Revokes a key. Repeating it keeps the first time. @returns the key, or null if the team has no such key. */
export const revokeKey = (tx: Tx, teamId: string, id: string, now: Date) =>
  tx.maybeOne(sql.type(keyRow)`
    update api_keys set revoked_at = coalesce(revoked_at, ${sql.timestamp(now)})
    where team_id = ${teamId} and id = ${id}
    returning id, name, prefix, scopes, domain, created_at, expires_at, revoked_at, last_used_at`)

/**
 * Sets a key to expire at `end`, or at its own time if that is earlier. @returns the key, or null without such an
 * active key.
 */
export const expireKey = (tx: Tx, teamId: string, id: string, { end, now }: { end: Date; now: Date }) =>
  tx.maybeOne(sql.type(keyRow)`
    update api_keys set expires_at = least(expires_at, ${sql.timestamp(end)})
    where team_id = ${teamId} and id = ${id} and revoked_at is null
      and (expires_at is null or expires_at > ${sql.timestamp(now)})
    returning id, name, prefix, scopes, domain, created_at, expires_at, revoked_at, last_used_at`)

/** Creates the user if necessary, and makes the user a member of the team. @returns the user's ID. */
export async function upsertMember(
  tx: Tx,
  teamId: string,
  user: { id: string; email: string; identity: string },
  now: Date,
): Promise<string> {
  const id = await tx.oneFirst(sql.type(idRow)`
    insert into users (id, email, identity, created_at)
    values (${user.id}, ${user.email}, ${user.identity}, ${sql.timestamp(now)})
    on conflict (identity) do update set email = users.email returning id`)
  await tx.query(sql.unsafe`
    insert into memberships (team_id, user_id) values (${teamId}, ${id}) on conflict do nothing`)
  return id
}

export const insertSession = (
  tx: Tx,
  teamId: string,
  session: { id: string; user_id: string | null; role?: Role; hash: Buffer; expires_at: Date },
  now: Date,
) =>
  tx.query(sql.unsafe`
    insert into sessions (id, team_id, user_id, role, hash, created_at, expires_at)
    values (${session.id}, ${teamId}, ${session.user_id}, ${session.role ?? null}, ${sql.binary(session.hash)},
      ${sql.timestamp(now)}, ${sql.timestamp(session.expires_at)})`)

const sessionRow = row({
  id: string(),
  /** The user. Null for a session of the team itself. */
  user: string().nullable(),
  /** The user's role at its creation. Null if an operator created it. */
  role: string().oneOf(ROLES).nullable(),
  created_at: string(),
  expires_at: string(),
  revoked_at: string().nullable(),
})
export type SessionRow = InferType<typeof sessionRow>

/**
 * Lists a team's session tokens that haven't expired, including revoked ones, oldest first. With `userId`, those of
 * one user. Users appear with the address that this team entered.
 */
export const sessionsOfTeam = (tx: Tx, teamId: string, now: Date, userId?: string) =>
  tx.any(sql.type(sessionRow)`
    select s.id, coalesce(m.email, u.email) as user, s.role, s.created_at, s.expires_at, s.revoked_at
    from sessions s left join users u on u.id = s.user_id
      left join memberships m on m.team_id = s.team_id and m.user_id = s.user_id
    where s.team_id = ${teamId} and s.expires_at > ${sql.timestamp(now)}
      and ${allOf(userId !== undefined && sql.fragment`s.user_id = ${userId}`)} order by s.id`)

/** Selects a team's sessions: one, one of a user's, those of a user, or all. */
type SessionChoice = { id: string; user_id?: string } | { identity: string } | 'all'

const chosen = (choice: SessionChoice) => {
  if (choice === 'all') return allOf()
  if ('id' in choice) {
    const { id, user_id: user } = choice
    return allOf(sql.fragment`s.id = ${id}`, user !== undefined && sql.fragment`s.user_id = ${user}`)
  }
  return sql.fragment`s.user_id = (select id from users where identity = ${choice.identity})`
}

/** Revokes sessions of a team. @returns those that were still valid. */
export const revokeSessions = (tx: Tx, teamId: string, choice: SessionChoice, now: Date) =>
  tx.any(sql.type(sessionRow)`
    update sessions s set revoked_at = ${sql.timestamp(now)}
    where s.team_id = ${teamId} and ${chosen(choice)} and s.revoked_at is null and s.expires_at > ${sql.timestamp(now)}
    returning s.id, (select email from users u where u.id = s.user_id) as user, s.role, s.created_at, s.expires_at, s.revoked_at`)

/** Deletes up to `limit` sessions that expired before `before`. @returns how many. */
export async function deleteExpiredSessions(tx: Tx, before: Date, limit: number): Promise<number> {
  const { rowCount } = await tx.query(sql.unsafe`
    delete from sessions where id in (
      select id from sessions where expires_at < ${sql.timestamp(before)} order by expires_at limit ${limit})`)
  return rowCount
}
