/**
 * Session tokens that members create for themselves, for 30 days. A token has the permissions that its user had at
 * its creation and still has. It ends when the user leaves the team, or a member revokes it.
 */

import { RequestError, requestError } from '../../errors.ts'
import { type By, record } from '../audit/record.ts'
import { membersOfTeam } from '../members/people.sql.ts'
import { lesser, type Role } from '../members/roles.ts'
import { TEXTS } from '../texts.ts'
import { revokeSessions, type SessionRow, sessionsOfTeam } from './credentials.sql.ts'
import { storeSession } from './issue.ts'

/** How many valid tokens a user can have in a team. */
const MAX_TOKENS = 20

/**
 * @param role the user's role in the current session, the highest role of the token.
 * @throws RequestError bad_request if the user isn't a member.
 */
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
    throw requestError('bad_request', TEXTS.tooManyTokens, { count: good.length })
  const role = lesser(member.role, given)
  const { token, expires_at } = await storeSession(by, teamId, { user_id, role }, `${member.email}: ${role}`)
  return { token, expires_at }
}

/** Lists the tokens that a user can see in a team, newest first: an owner all, others their own. */
export const tokensFor = async (
  { tx, now }: Pick<By, 'tx' | 'now'>,
  teamId: string,
  { user_id, role }: { user_id: string; role: Role },
): Promise<readonly SessionRow[]> =>
  (await sessionsOfTeam(tx, teamId, now, role === 'owner' ? undefined : user_id)).toReversed()

/** Revokes a token. Members other than owners can only revoke their own. @throws RequestError not_found. */
export async function endToken(
  by: By,
  teamId: string,
  id: string,
  { user_id, role }: { user_id: string; role: Role },
): Promise<void> {
  const [ended] = await revokeSessions(by.tx, teamId, role === 'owner' ? { id } : { id, user_id }, by.now)
  if (!ended) throw requestError('not_found', TEXTS.noSession, { id })
  await record(by, { team_id: teamId, action: 'session.revoke', subject: id, detail: ended.user ?? '' })
}
