/**
 * Issues API keys and session tokens. Only the response contains the credential. Its digest is stored (DECISIONS: Key
 * format).
 */

import { invalidField, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { domainToAscii, parseAddress } from '../../validation/address.ts'
import { isOneOf } from '../../validation/keys.ts'
import { checkName } from '../../validation/name.ts'
import { type By, record } from '../audit/record.ts'
import { domainByName } from '../domains/domains.sql.ts'
import type { Role } from '../members/roles.ts'
import { requireTeam } from '../teams/view.ts'
import { TEXTS } from '../texts.ts'
import {
  expireKey,
  insertKey,
  insertSession,
  keysOfTeam,
  SCOPES,
  type Scope,
  upsertMember,
} from './credentials.sql.ts'
import { credentialHash, displayPrefix, makeCredential } from './token.ts'

/** How long a session token lives. */
const SESSION_LENGTH_MS = 30 * 86_400_000

type KeyRequest = {
  name: string
  scopes: readonly string[]
  /** The only domain it can send from. Null: any domain of the team. */
  domain: string | null
  expires_at: Date | null
}

const isScope = (text: string): text is Scope => isOneOf(SCOPES, text)

function checkScopes(given: readonly string[]): Scope[] {
  const known = SCOPES.join(', ')
  const unknown = given.find((scope) => !isScope(scope))
  if (unknown !== undefined)
    throw invalidField('scopes', TEXTS.unknownScope, { scopes: known, scope: unknown || '""' })
  const scopes = [...new Set(given.filter(isScope))]
  if (scopes.length === 0) throw invalidField('scopes', TEXTS.noScope, { scopes: known })
  return scopes
}

/**
 * Returns the ASCII form of the domain that a key is limited to. A key for a mistyped domain could never send.
 * @throws RequestError bad_request if the team doesn't have it.
 */
async function boundDomain(tx: Tx, teamId: string, given: string): Promise<string> {
  const name = domainToAscii(given)
  if (name === null) throw invalidField('domain', TEXTS.notDomain, { given: JSON.stringify(given) })
  if (await domainByName(tx, teamId, name)) return name
  throw invalidField('domain', TEXTS.domainNotInTeam, { name })
}

/** @throws RequestError bad_request */
function assertFuture(expires_at: Date | null, now: Date): void {
  if (expires_at === null || expires_at > now) return
  throw invalidField('expires', TEXTS.expiryPast, { time: expires_at.toISOString() })
}

/** Stores a new key and its entry in the audit log. @returns the key, which is only shown now */
async function storeKey(by: By, teamId: string, request: KeyRequest, action: 'key.create' | 'key.rotate') {
  const { name, scopes, domain, expires_at } = request
  const id = idNow()
  const key = makeCredential('key')
  const stored = {
    id,
    name,
    prefix: displayPrefix(key),
    hash: credentialHash(key),
    scopes,
    domain,
    expires_at,
  }
  await insertKey(by.tx, teamId, stored, by.now)
  const detail = `${stored.prefix}: ${scopes.join(', ')}`
  await record(by, { team_id: teamId, action, subject: name, detail })
  return { id, key, name, scopes, domain, expires_at: expires_at?.toISOString() ?? null }
}

/** @throws RequestError not_found, or bad_request for an invalid field. */
export async function issueKey(by: By, teamId: string, request: KeyRequest) {
  const { tx, now } = by
  checkName(request.name)
  const scopes = checkScopes(request.scopes)
  const { name, expires_at } = request
  assertFuture(expires_at, now)
  await requireTeam(tx, teamId)
  const domain = request.domain === null ? null : await boundDomain(tx, teamId, request.domain)
  return storeKey(by, teamId, { name, scopes, domain, expires_at }, 'key.create')
}

/** How long a rotated key keeps working. */
const OVERLAP_MS = 86_400_000

/**
 * Replaces an active key with one of the same name, scopes and domain. The old key expires 24 hours later, or at its
 * own time if that is earlier.
 * @throws RequestError not_found, invalid_state
 */
export async function rotateKey(by: By, teamId: string, id: string, expires_at: Date | null) {
  const { tx, now } = by
  assertFuture(expires_at, now)
  await requireTeam(tx, teamId)
  const old = await expireKey(tx, teamId, id, { end: new Date(now.getTime() + OVERLAP_MS), now })
  if (!old) {
    const known = (await keysOfTeam(tx, teamId)).some((key) => key.id === id)
    throw known
      ? new RequestError('invalid_state', TEXTS.keyEnded)
      : requestError('not_found', TEXTS.noKey, { id })
  }
  const { name, scopes, domain } = old
  const key = await storeKey(by, teamId, { name, scopes, domain, expires_at }, 'key.rotate')
  return { ...key, replaces: { id: old.id, expires_at: old.expires_at } }
}

/**
 * Creates a session token for the team for 30 days. With `user`, for that user, who becomes a member if necessary.
 * @throws RequestError not_found, or bad_request if `user` isn't an email address.
 */
export async function issueSession(by: By, teamId: string, user: string | null) {
  const { tx, now } = by
  const parsed = user === null ? null : parseAddress(user)
  if (parsed === null && user !== null) {
    throw invalidField('user', TEXTS.notAddress, { given: JSON.stringify(user) })
  }
  await requireTeam(tx, teamId)
  const member = parsed && { id: idNow(), email: parsed.address, identity: parsed.identity }
  const user_id = member && (await upsertMember(tx, teamId, member, now))
  return storeSession(by, teamId, { user_id }, parsed?.address ?? '')
}

/** Stores a new session token for 30 days, and its entry in the audit log. @returns the token, only shown now. */
export async function storeSession(
  by: By,
  teamId: string,
  owner: { user_id: string | null; role?: Role },
  detail: string,
): Promise<{ id: string; token: string; expires_at: string }> {
  const [id, token] = [idNow(), makeCredential('session')]
  const expires_at = new Date(by.now.getTime() + SESSION_LENGTH_MS)
  await insertSession(by.tx, teamId, { ...owner, id, hash: credentialHash(token), expires_at }, by.now)
  await record(by, { team_id: teamId, action: 'session.create', subject: id, detail })
  return { id, token, expires_at: expires_at.toISOString() }
}
