/**
 * Revokes API keys and session tokens: one, those of a user, or all of a team. Every process rejects them from the
 * next request on, because no credential is cached.
 */

import { invalidField, RequestError, requestError } from '../../errors.ts'
import { parseAddress } from '../../validation/address.ts'
import { type By, record } from '../audit/record.ts'
import { requireTeam } from '../teams/view.ts'
import { TEXTS } from '../texts.ts'
import { type KeyRow, revokeKey, revokeSessions, type SessionRow } from './credentials.sql.ts'

/** @throws RequestError not_found. */
export async function endKey(by: By, teamId: string, id: string): Promise<KeyRow> {
  await requireTeam(by.tx, teamId)
  const key = await revokeKey(by.tx, teamId, id, by.now)
  if (!key) throw requestError('not_found', TEXTS.noKey, { id })
  const { prefix: subject, name: detail } = key
  await record(by, { team_id: teamId, action: 'key.revoke', subject, detail })
  return key
}

type RevokeWish = { id?: string | undefined; user?: string | undefined; all?: boolean | undefined }

function parseIdentity(user: string): string {
  const parsed = parseAddress(user)
  if (parsed) return parsed.identity
  throw invalidField('user', TEXTS.notAddress, { given: JSON.stringify(user) })
}

/** Returns the selected sessions. @throws RequestError bad_request unless exactly one field is set. */
function toChoice({ id, user, all = false }: RevokeWish): Parameters<typeof revokeSessions>[2] {
  const given = [id !== undefined, user !== undefined, all].filter((set) => set).length
  if (given !== 1) throw new RequestError('bad_request', TEXTS.whichSession)
  if (id !== undefined) return { id }
  return user === undefined ? 'all' : { identity: parseIdentity(user) }
}

/**
 * @returns the revoked sessions that were still valid.
 * @throws RequestError bad_request unless exactly one field is set. not_found for the team, or for an ID without a
 * valid session.
 */
export async function endSessions(by: By, teamId: string, wish: RevokeWish): Promise<readonly SessionRow[]> {
  const choice = toChoice(wish)
  await requireTeam(by.tx, teamId)
  const { id, user } = wish
  const ended = await revokeSessions(by.tx, teamId, choice, by.now)
  if (id !== undefined && ended.length === 0) throw requestError('not_found', TEXTS.noSession, { id })
  const entry = { action: 'session.revoke', subject: id ?? user ?? 'all', detail: `${ended.length} ended` }
  await record(by, { team_id: teamId, ...entry })
  return ended
}
