/**
 * Ends API keys, and session tokens before their time: one, a person's, or all of a team.
 * Promises: they are refused from the next request on, in every process, since nothing caches a credential.
 */

import { Refusal } from '../../errors.ts'
import type { At } from '../../postgres/pool.ts'
import { parseAddress } from '../../text/address.ts'
import { type By, record } from '../audit/record.ts'
import { teamOrRefusal } from '../teams/view.ts'
import { type KeyRow, revokeKey, revokeSessions, type SessionRow } from './credentials.sql.ts'

/** Ends an API key at once. @throws Refusal not_found. */
export async function endKey(by: By, teamId: string, id: string): Promise<KeyRow> {
  await teamOrRefusal(by.tx, teamId)
  const key = await revokeKey(by.tx, teamId, id, by.now)
  if (!key) throw new Refusal('not_found', `there is no key ${id} in this team`)
  const { prefix: subject, name: detail } = key
  await record(by, { team_id: teamId, action: 'key.revoke', subject, detail })
  return key
}

/** Exactly one of them says which sessions are meant. */
export type RevokeWish = { id?: string | undefined; user?: string | undefined; all?: boolean | undefined }

function identityOf(user: string): string {
  const parsed = parseAddress(user)
  if (parsed) return parsed.identity
  throw new Refusal('bad_request', `${JSON.stringify(user)} is not an email address`)
}

/**
 * Ends the sessions that are meant. @returns those that were still good.
 * @throws Refusal bad_request unless exactly one part of the wish is set; not_found for the team, or for an id that is
 * no session still good.
 */
export async function endSessions(
  { tx, now }: At,
  teamId: string,
  { id, user, all = false }: RevokeWish,
): Promise<readonly SessionRow[]> {
  const given = [id !== undefined, user !== undefined, all].filter((set) => set).length
  if (given !== 1) throw new Refusal('bad_request', 'say which: the id of a session, --user EMAIL or --all')
  await teamOrRefusal(tx, teamId)
  if (id === undefined) {
    const choice = user === undefined ? 'all' : { identity: identityOf(user) }
    return revokeSessions(tx, teamId, choice, now)
  }
  const ended = await revokeSessions(tx, teamId, { id }, now)
  if (ended.length === 0) throw new Refusal('not_found', `there is no session ${id} of this team to revoke`)
  return ended
}
