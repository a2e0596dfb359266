/**
 * Signs people in: one-time links, what an OpenID provider says of them, and the sessions that follow.
 * Promises: a link is good once, for 15 minutes, one that invites for 7 days; a session ends after 12 hours without
 * use and after 7 days at most; only digests are stored. A session has the rights that its person had when it began
 * and still has: a stolen session never gains any.
 */

import { createHash, randomBytes } from 'node:crypto'
import { RequestError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { networkOf } from '../../process/public-address.ts'
import { parseAddress } from '../../validation/address.ts'
import { storableWords } from '../../validation/words.ts'
import { TEXTS } from '../texts.ts'
import {
  belongs,
  bindOpenidIdentity,
  openidIdentities,
  type PersonRow,
  personById,
  personByIdentity,
} from './people.sql.ts'
import { lesser, type Role } from './roles.ts'
import {
  countLinkRequests,
  deleteLinkRequest,
  deleteOver,
  deleteSession,
  insertDashboardSession,
  insertLink,
  insertLinkRequest,
  membershipsOfSession,
  noteMembershipSeen,
  type Place,
  personOfLink,
  placesOfPerson,
  sessionByHash,
  takeLink,
  touchSession,
} from './sessions.sql.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** For how long a link is good, in milliseconds. */
export const LINK_LENGTH_MS = 15 * MINUTE
/** An invitation waits until a colleague has the time for it. */
export const INVITATION_LENGTH_MS = 7 * 24 * HOUR
const IDLE_SESSION_MS = 12 * HOUR
/** A session's age at its end, in milliseconds; its cookie's, too. */
export const LONGEST_SESSION_MS = 7 * 24 * HOUR

/** Links by mail in an hour, at most: for an address from one network, for an address in all, from a network in all. */
const LIMITS = { of_both: 5, of_identity: 20, of_network: 20 }

const digest = (secret: string): Buffer => createHash('sha256').update(secret).digest()
const makeSecret = (): string => randomBytes(32).toString('base64url')
const before = (now: Date, ms: number): Date => new Date(now.getTime() - ms)

/** A team that somebody may use just now. */
export type Membership = {
  team_id: string
  name: string
  role: Role
  suspended: boolean
  /** Whether nothing of it is delivered. */
  test: boolean
  created_at: string
  seen_at: string | null
}

/** The person who uses the dashboard just now. */
export type Person = {
  session_id: string
  user_id: string
  /** The one team that this session is for; null: all that the person had when it began. */
  team_id: string | null
  email: string
  operator: boolean
  memberships: readonly Membership[]
}

/**
 * Makes a one-time link for a person. @param teamId the one team it opens; null for a link that nobody but the person
 * sees. @returns the secret that stands in its address.
 */
export async function makeLink(
  { tx, now }: At,
  userId: string,
  teamId: string | null,
  length = LINK_LENGTH_MS,
) {
  const secret = makeSecret()
  const expires_at = new Date(now.getTime() + length)
  await insertLink(tx, { hash: digest(secret), user_id: userId, team_id: teamId, expires_at }, now)
  return { secret, expires_at: expires_at.toISOString() }
}

const noLink = (): RequestError => new RequestError('not_found', TEXTS.linkUsed)

/** Whose link this is, and what it opens. Changes nothing. @throws RequestError not_found. */
export async function ownerOfLink(
  { tx, now }: At,
  secret: string,
): Promise<{ email: string; places: readonly Place[] }> {
  const owner = await personOfLink(tx, digest(secret), now)
  if (!owner) throw noLink()
  const { email, user_id, team_id, role: held } = owner
  const places = await placesOfPerson(tx, user_id, team_id)
  return { email, places: places.map(({ name, role }) => ({ name, role: lesser(role, held ?? role) })) }
}

/** @param role what a link holds at most; null: what its person has. */
type Owner = { user_id: string; team_id: string | null; role: Role | null }

/** Starts a session. @returns its secret, for the cookie. @throws RequestError not_found when it would hold nothing. */
async function startSession({ tx, now }: At, owner: Owner, userAgent: string): Promise<string> {
  const secret = makeSecret()
  const expires_at = new Date(now.getTime() + LONGEST_SESSION_MS)
  const user_agent = storableWords(userAgent).slice(0, 200).toWellFormed()
  await deleteOver(tx, { now, idle: before(now, IDLE_SESSION_MS), since: before(now, HOUR) })
  const { user_id, team_id, role } = owner
  const session = { id: idNow(), hash: digest(secret), user_id, team_id, role, user_agent, expires_at }
  if (await insertDashboardSession(tx, session, now)) return secret
  throw new RequestError('not_found', TEXTS.notMember)
}

/** Uses a link up for a session. @returns the session's secret. @throws RequestError not_found. */
export async function signInByLink(at: At, secret: string, userAgent: string) {
  const owner = await takeLink(at.tx, digest(secret), at.now)
  if (!owner) throw noLink()
  return { secret: await startSession(at, owner, userAgent), email: owner.email }
}

/** What a provider has proved of somebody. `email_verified`: null when it says nothing of that. */
export type IdentityClaims = {
  issuer: string
  subject: string
  email: string
  email_verified: boolean | null
}

/** The person of these claims, bound to the provider's id the first time; null when nobody here has the address. */
async function personOfClaims({ tx, now }: At, claims: IdentityClaims): Promise<PersonRow | null> {
  const { issuer, subject } = claims
  const identity = claims.email_verified === true ? parseAddress(claims.email)?.identity : undefined
  const named = identity === undefined ? null : await personByIdentity(tx, identity)
  const bound = await openidIdentities(tx, issuer, { subject, user_id: named?.id ?? null })
  const known = bound.find((each) => each.subject === subject)
  if (known) return personById(tx, known.user_id)
  // The provider has given the address to somebody else since: it is not this person's any more.
  if (!named || bound.length > 0) return null
  await bindOpenidIdentity(tx, { issuer, subject, user_id: named.id }, now)
  return named
}

/** @returns the session's secret. @throws RequestError not_found when the person has no place here. */
export async function signInByClaims(at: At, claims: IdentityClaims, userAgent: string): Promise<string> {
  const person = await personOfClaims(at, claims)
  if (!person) throw new RequestError('not_found', TEXTS.notMember)
  return startSession(at, { user_id: person.id, team_id: null, role: null }, userAgent)
}

/**
 * Makes a link to be sent by mail, and counts it. Null if a limit of an hour is reached, or if nobody here has this
 * address: the caller's response is the same. @param origin the IP address that the request came from. @returns with
 * `id` to withdraw the request if the mail could not be sent.
 */
export async function requestLink(
  at: At,
  { email, origin }: { email: string; origin: string },
): Promise<{ id: string; email: string; secret: string; places: readonly Place[] } | null> {
  const { tx, now } = at
  const identity = parseAddress(email)?.identity
  const person = identity === undefined ? null : await personByIdentity(tx, identity)
  if (identity === undefined || !person || !(await belongs(tx, person))) return null
  const request = { id: idNow(), identity, network: networkOf(origin) }
  const sent = await countLinkRequests(tx, request, before(now, HOUR))
  if (
    sent.of_both >= LIMITS.of_both ||
    sent.of_identity >= LIMITS.of_identity ||
    sent.of_network >= LIMITS.of_network
  )
    return null
  await insertLinkRequest(tx, request, now)
  const places = await placesOfPerson(tx, person.id, null)
  const { secret } = await makeLink(at, person.id, null)
  return { id: request.id, email: person.email, places, secret }
}

/** Withdraws a request whose mail was not sent: it counts in no limit. */
export const withdrawLinkRequest = (tx: Tx, id: string) => deleteLinkRequest(tx, id)

/** Who carries this secret in a cookie, with what of it counts at this moment; null when the session is over. */
export async function personOfSession(tx: Tx, secret: string, now: Date): Promise<Person | null> {
  const session = await sessionByHash(tx, digest(secret), { now, idle: before(now, IDLE_SESSION_MS) })
  if (!session) return null
  const rows = await membershipsOfSession(tx, session.id)
  if (rows.length === 0 && !session.operator) return null
  if (new Date(session.seen_at) < before(now, MINUTE)) await touchSession(tx, session.id, now)
  const { id: session_id, user_id, team_id, email, operator } = session
  const memberships = rows.map(({ held, role, ...membership }) => ({
    ...membership,
    role: lesser(role, held),
  }))
  return { session_id, user_id, team_id, email, operator, memberships }
}

/** Notes, to the minute, that somebody used a team's pages. */
export async function noteUse({ tx, now }: At, person: Person, { team_id, seen_at }: Membership) {
  if (seen_at === null || new Date(seen_at) < before(now, MINUTE))
    await noteMembershipSeen(tx, team_id, person, now)
}

export const signOut = (tx: Tx, { session_id }: Person) => deleteSession(tx, session_id)

/** When sessions still count as used: for lists of them. */
export const idleSince = (now: Date): Date => before(now, IDLE_SESSION_MS)
