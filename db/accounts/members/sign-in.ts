/**
 * Signs users in: one-time links, claims of an OpenID provider, and sessions. A link works once, within 15 minutes,
 * or 7 days for an invitation. A session ends after 12 hours without use, and after 7 days. It has the rights that
 * its user had at its start and still has, so that a stolen session never gains any.
 */

import { createHash, randomBytes } from 'node:crypto'
import { RequestError } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { toNetwork } from '../../process/public-address.ts'
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
  consumeLink,
  countLinkRequests,
  deleteOver,
  deleteSession,
  insertDashboardSession,
  insertLink,
  insertLinkRequest,
  membershipsOfSession,
  personOfLink,
  recordMembershipSeen,
  sessionByHash,
  teamsOfUser,
  touchSession,
} from './sessions.sql.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** How long a link is valid. */
export const LINK_LENGTH_MS = 15 * MINUTE
/** An invitation waits until a colleague has the time for it. */
export const INVITATION_LENGTH_MS = 7 * 24 * HOUR
const IDLE_SESSION_MS = 12 * HOUR
/** The maximum age of a session and its cookie. */
export const LONGEST_SESSION_MS = 7 * 24 * HOUR

/** Limits for emailed links per hour: for an address from one network, for an address, from a network. */
const LIMITS = { of_both: 5, of_identity: 20, of_network: 20 }

const digest = (secret: string): Buffer => createHash('sha256').update(secret).digest()
const makeSecret = (): string => randomBytes(32).toString('base64url')
const before = (now: Date, ms: number): Date => new Date(now.getTime() - ms)

/** A team that the user can access. */
export type Membership = Omit<Awaited<ReturnType<typeof membershipsOfSession>>[number], 'held'>

export type Person = {
  session_id: string
  user_id: string
  /** The only team of this session. Null: all that the user had at its start. */
  team_id: string | null
  email: string
  operator: boolean
  memberships: readonly Membership[]
}

/** @param teamId the only team it opens. Null for a link that only the user sees. @returns the secret in its URL. */
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

/** Returns the user of a link, and the teams behind it, without using it up. @throws RequestError not_found. */
export async function ownerOfLink({ tx, now }: At, secret: string) {
  const owner = await personOfLink(tx, digest(secret), now)
  if (!owner) throw noLink()
  const { email, user_id, team_id, role: held } = owner
  const places = await teamsOfUser(tx, user_id, team_id)
  return { email, places: places.map(({ name, role }) => ({ name, role: lesser(role, held ?? role) })) }
}

/** @param role the highest role of the session. Null: that of the user. */
type Owner = { user_id: string; team_id: string | null; role: Role | null }

/**
 * Starts a session. @returns its secret, for the cookie. @throws RequestError not_found if it would have no rights.
 */
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
  const owner = await consumeLink(at.tx, digest(secret), at.now)
  if (!owner) throw noLink()
  return { secret: await startSession(at, owner, userAgent), email: owner.email }
}

/** The verified claims of a provider. `email_verified`: null if the provider doesn't include it. */
export type IdentityClaims = {
  issuer: string
  subject: string
  email: string
  email_verified: boolean | null
}

/** Returns the user of these claims, bound to the provider's ID on first use. Null if no user has the address. */
async function personOfClaims({ tx, now }: At, claims: IdentityClaims): Promise<PersonRow | null> {
  const { issuer, subject } = claims
  const identity = claims.email_verified === true ? parseAddress(claims.email)?.identity : undefined
  const named = identity === undefined ? null : await personByIdentity(tx, identity)
  const bound = await openidIdentities(tx, issuer, { subject, user_id: named?.id ?? null })
  const known = bound.find((each) => each.subject === subject)
  if (known) return personById(tx, known.user_id)
  // This user is bound to another of the provider's IDs. The provider may have reassigned the address.
  if (!named || bound.length > 0) return null
  await bindOpenidIdentity(tx, { issuer, subject, user_id: named.id }, now)
  return named
}

/** @returns the session's secret. @throws RequestError not_found if the user isn't a member or operator. */
export async function signInByClaims(at: At, claims: IdentityClaims, userAgent: string): Promise<string> {
  const person = await personOfClaims(at, claims)
  if (!person) throw new RequestError('not_found', TEXTS.notMember)
  return startSession(at, { user_id: person.id, team_id: null, role: null }, userAgent)
}

/**
 * Creates a link to be emailed, and counts it. Null if an hourly limit is reached, or no user has this address: the
 * caller's response is the same.
 * @param origin the IP address of the request.
 * @returns also the `id`, to withdraw the request if the email could not be sent.
 */
export async function requestLink(at: At, { email, origin }: { email: string; origin: string }) {
  const { tx, now } = at
  const identity = parseAddress(email)?.identity
  const person = identity === undefined ? null : await personByIdentity(tx, identity)
  if (identity === undefined || !person || !(await belongs(tx, person))) return null
  const request = { id: idNow(), identity, network: toNetwork(origin) }
  const sent = await countLinkRequests(tx, request, before(now, HOUR))
  if (
    sent.of_both >= LIMITS.of_both ||
    sent.of_identity >= LIMITS.of_identity ||
    sent.of_network >= LIMITS.of_network
  )
    return null
  await insertLinkRequest(tx, request, now)
  const places = await teamsOfUser(tx, person.id, null)
  const { secret } = await makeLink(at, person.id, null)
  return { id: request.id, email: person.email, places, secret }
}

/** Returns the user of this cookie's secret with the current rights. Null if the session has ended. */
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

/** Records that a user used a team's pages, to the minute. */
export async function noteUse({ tx, now }: At, person: Person, { team_id, seen_at }: Membership) {
  if (seen_at === null || new Date(seen_at) < before(now, MINUTE))
    await recordMembershipSeen(tx, team_id, person, now)
}

export const signOut = (tx: Tx, { session_id }: Person) => deleteSession(tx, session_id)

/** Returns the time since which a listed session must have been used. */
export const idleSince = (now: Date): Date => before(now, IDLE_SESSION_MS)
