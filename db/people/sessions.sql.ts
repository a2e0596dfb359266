/** Rows of dashboard sessions, one-time links and the requests for them. Secrets are stored as digests alone. */
import { sql } from 'slonik'
import { boolean, type InferType, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'

/** Stores a one-time link. */
export async function insertLink(
  tx: Tx,
  link: { hash: Buffer; user_id: string; expires_at: Date },
  now: Date,
): Promise<void> {
  await tx.query(sql.unsafe`
    insert into login_links (hash, user_id, created_at, expires_at)
    values (${sql.binary(link.hash)}, ${link.user_id}, ${sql.timestamp(now)}, ${sql.timestamp(link.expires_at)})`)
}

const ownerRow = object({ user_id: string().defined(), email: string().defined() })

/** Whose link this is, as long as it is good. */
export async function personOfLink(tx: Tx, hash: Buffer, now: Date) {
  return tx.maybeOne(sql.type(ownerRow)`
    select l.user_id, u.email from login_links l join users u on u.id = l.user_id
    where l.hash = ${sql.binary(hash)} and l.expires_at > ${sql.timestamp(now)}`)
}

/** Uses a link up. @returns whose it was, or null when it was used, is too old, or never was. */
export async function takeLink(tx: Tx, hash: Buffer, now: Date) {
  return tx.maybeOne(sql.type(ownerRow)`
    delete from login_links l using users u
    where l.hash = ${sql.binary(hash)} and l.expires_at > ${sql.timestamp(now)} and u.id = l.user_id
    returning l.user_id, u.email`)
}

const requestsRow = object({ by_identity: number().defined(), by_origin: number().defined() })

/** Notes that somebody asked for a link. @returns how many asked since `since`, this one too. Needs a transaction. */
export async function noteLinkRequest(
  tx: Tx,
  request: { id: string; identity: string; origin: string },
  { now, since }: { now: Date; since: Date },
) {
  // One after the other, so that each of several at once counts those before it.
  await tx.query(sql.unsafe`lock table login_requests in share row exclusive mode`)
  await tx.query(sql.unsafe`
    insert into login_requests (id, identity, origin, created_at)
    values (${request.id}, ${request.identity}, ${request.origin}, ${sql.timestamp(now)})`)
  return tx.one(sql.type(requestsRow)`
    select
      (select count(*) from login_requests
        where identity = ${request.identity} and created_at > ${sql.timestamp(since)}) as by_identity,
      (select count(*) from login_requests
        where origin = ${request.origin} and created_at > ${sql.timestamp(since)}) as by_origin`)
}

/** Stores a browser's session. */
export async function insertDashboardSession(
  tx: Tx,
  session: { id: string; hash: Buffer; user_id: string; user_agent: string; expires_at: Date },
  now: Date,
): Promise<void> {
  await tx.query(sql.unsafe`
    insert into dashboard_sessions (id, hash, user_id, user_agent, created_at, seen_at, expires_at)
    values (${session.id}, ${sql.binary(session.hash)}, ${session.user_id}, ${session.user_agent},
      ${sql.timestamp(now)}, ${sql.timestamp(now)}, ${sql.timestamp(session.expires_at)})`)
}

const sessionRow = object({
  id: string().defined(),
  user_id: string().defined(),
  email: string().defined(),
  operator: boolean().defined(),
  seen_at: string().defined(),
})
export type SessionRow = InferType<typeof sessionRow>

/** The session with this digest, unless it is over or was idle since `idle`. */
export async function sessionByHash(
  tx: Tx,
  hash: Buffer,
  { now, idle }: { now: Date; idle: Date },
): Promise<SessionRow | null> {
  return tx.maybeOne(sql.type(sessionRow)`
    select s.id, s.user_id, u.email, u.operator, s.seen_at
    from dashboard_sessions s join users u on u.id = s.user_id
    where s.hash = ${sql.binary(hash)} and s.expires_at > ${sql.timestamp(now)}
      and s.seen_at > ${sql.timestamp(idle)}`)
}

/** Notes that a session was used. */
export async function touchSession(tx: Tx, id: string, now: Date): Promise<void> {
  await tx.query(sql.unsafe`update dashboard_sessions set seen_at = ${sql.timestamp(now)} where id = ${id}`)
}

/** Ends one session. */
export async function deleteSession(tx: Tx, id: string): Promise<void> {
  await tx.query(sql.unsafe`delete from dashboard_sessions where id = ${id}`)
}

const endedRow = object({ id: string().defined() })

/** Ends every session of a person, but for the one to keep. @returns how many ended. */
export async function deleteSessionsOf(tx: Tx, userId: string, keep: string | null): Promise<number> {
  const ended = await tx.any(sql.type(endedRow)`
    delete from dashboard_sessions where user_id = ${userId} and id is distinct from ${keep} returning id`)
  return ended.length
}

const listedRow = object({
  id: string().defined(),
  user_agent: string().defined(),
  created_at: string().defined(),
  seen_at: string().defined(),
})

/** A person's sessions, the one used last first. */
export async function sessionsOfPerson(tx: Tx, userId: string, { now, idle }: { now: Date; idle: Date }) {
  return tx.any(sql.type(listedRow)`
    select id, user_agent, created_at, seen_at from dashboard_sessions
    where user_id = ${userId} and expires_at > ${sql.timestamp(now)} and seen_at > ${sql.timestamp(idle)}
    order by seen_at desc`)
}

/** Forgets what is over: sessions, links, and requests older than the limits look back. */
export async function deleteOver(tx: Tx, { now, idle, since }: { now: Date; idle: Date; since: Date }) {
  await tx.query(sql.unsafe`
    delete from dashboard_sessions where expires_at <= ${sql.timestamp(now)} or seen_at <= ${sql.timestamp(idle)}`)
  await tx.query(sql.unsafe`delete from login_links where expires_at <= ${sql.timestamp(now)}`)
  await tx.query(sql.unsafe`delete from login_requests where created_at <= ${sql.timestamp(since)}`)
}
