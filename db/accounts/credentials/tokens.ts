/**
 * The session tokens that members make for themselves, for the calls that take one.
 * Promises: the token is in the answer and nowhere else; it does what its person might do then and may do now, for 30
 * days; it ends when they leave the team, or somebody revokes it (credentials.sql.ts); the audit trail says who made it
 * and who ended it.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { idNow } from '../../process/ids.ts'
import { type By, record } from '../audit/record.ts'
import { membersOfTeam } from '../members/people.sql.ts'
import { lesser, type Role } from '../members/roles.ts'
import { TEXTS } from '../texts.ts'
import { insertSession, revokeSessions, type SessionRow, sessionsOfTeam } from './credentials.sql.ts'
import { SESSION_LENGTH_MS } from './issue.ts'
import { credentialHash, makeCredential } from './token.ts'

/** How many of one person's in one team are good at once. */
const MAX_TOKENS = 20

/** @param role what the person may do where they ask for it. @throws RequestError bad_request for who is no member. */
export async function makeToken(
  by: By,
  teamId: string,
  { user_id, role: given }: { user_id: string; role: Role },
): Promise<{ token: string; expires_at: string }> {
  const { tx, now } = by
  const member = (await membersOfTeam(tx, teamId)).find((one) => one.user_id === user_id)
  if (!member) throw new RequestError('bad_request', TEXTS.tokenForMember)
  const good = (await sessionsOfTeam(tx, teamId, now, user_id)).filter(
    ({ revoked_at }) => revoked_at === null,
  )
  if (good.length >= MAX_TOKENS)
    throw new RequestError('bad_request', fill(TEXTS.tooManyTokens, { count: good.length }))
  const role = lesser(member.role, given)
  const token = makeCredential('session')
  const expires_at = new Date(now.getTime() + SESSION_LENGTH_MS)
  const session = { id: idNow(), user_id, role, hash: credentialHash(token), expires_at }
  await insertSession(tx, teamId, session, now)
  const entry = { action: 'session.create', subject: session.id, detail: `${member.email}: ${role}` }
  await record(by, { team_id: teamId, ...entry })
  return { token, expires_at: expires_at.toISOString() }
}

/** The tokens that a person sees in a team, revoked ones too, newest first: an owner all, others their own. */
export const tokensFor = async (
  { tx, now }: Pick<By, 'tx' | 'now'>,
  teamId: string,
  { user_id, role }: { user_id: string; role: Role },
): Promise<readonly SessionRow[]> =>
  (await sessionsOfTeam(tx, teamId, now, role === 'owner' ? undefined : user_id)).toReversed()

/** Ends a token: an owner any of the team's, others one of their own. @throws RequestError not_found. */
export async function endToken(
  by: By,
  teamId: string,
  id: string,
  { user_id, role }: { user_id: string; role: Role },
): Promise<void> {
  const [ended] = await revokeSessions(by.tx, teamId, role === 'owner' ? { id } : { id, user_id }, by.now)
  if (!ended) throw new RequestError('not_found', fill(TEXTS.noSession, { id }))
  await record(by, { team_id: teamId, action: 'session.revoke', subject: id, detail: ended.user ?? '' })
}
