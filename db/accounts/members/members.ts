/**
 * Members of a team and their roles. A team's last owner can't be removed. Ending a membership ends access to that
 * team's pages immediately, and nothing elsewhere. A link that someone else sees opens one team only. No response
 * reveals whether a user exists elsewhere.
 */

import { invalidField, RequestError, requestError } from '../../errors.ts'
import type { At } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { parseAddress } from '../../validation/address.ts'
import { type By, record } from '../audit/record.ts'
import { requireTeam } from '../teams/view.ts'
import { TEXTS } from '../texts.ts'
import {
  belongs,
  deleteMembership,
  insertMembership,
  lockMember,
  type MemberRow,
  membersOfTeam,
  type PersonRow,
  personByIdentity,
  updateRole,
  upsertPerson,
} from './people.sql.ts'
import type { Role } from './roles.ts'
import { deleteSessionMemberships } from './sessions.sql.ts'
import { INVITATION_LENGTH_MS, makeLink } from './sign-in.ts'

/** @throws RequestError bad_request. */
function parseMember(email: string) {
  const parsed = parseAddress(email)
  if (parsed) return parsed
  throw invalidField('email', TEXTS.notAddress, { given: JSON.stringify(email) })
}

/** @throws RequestError bad_request if that would leave the team without an owner. */
async function keepAnOwner({ tx }: At, teamId: string, member: MemberRow): Promise<void> {
  if (member.role !== 'owner') return
  const owners = (await membersOfTeam(tx, teamId)).filter(({ role }) => role === 'owner')
  if (owners.length > 1) return
  throw requestError('bad_request', TEXTS.lastOwner, { email: member.email })
}

type Wish = { email: string; role: Role }
type Member = { user_id: string; email: string; role: Role }

/** @throws RequestError bad_request for the last owner. */
async function changeRole(by: By, teamId: string, member: MemberRow, role: Role): Promise<Member> {
  if (role !== 'owner') await keepAnOwner(by, teamId, member)
  const { user_id, email } = member
  await updateRole(by.tx, teamId, user_id, role)
  const detail = `${member.role} → ${role}`
  await record(by, { team_id: teamId, action: 'member.add', subject: email, detail })
  return { user_id, email, role }
}

/** @throws RequestError bad_request for a current member, not_found for the team. */
async function makeMember(by: By, teamId: string, { email, role }: Wish): Promise<Member> {
  const { tx, now } = by
  const { address, identity } = parseMember(email)
  await requireTeam(tx, teamId)
  const person = await upsertPerson(tx, { id: idNow(), email: address, identity, operator: false }, now)
  const member = { user_id: person.id, email: address, role }
  if (!(await insertMembership(tx, teamId, member))) {
    throw requestError('bad_request', TEXTS.isMember, { email: address })
  }
  await record(by, { team_id: teamId, action: 'member.add', subject: address, detail: role })
  return member
}

/** Adds a member, or changes a member's role. @throws RequestError bad_request, not_found for the team. */
export async function addMember(by: By, teamId: string, wish: Wish): Promise<Member> {
  const member = await lockMember(by.tx, teamId, parseMember(wish.email).identity)
  return member ? changeRole(by, teamId, member, wish.role) : makeMember(by, teamId, wish)
}

/** Locks the member with this address. @throws RequestError not_found. */
async function requireMember({ tx }: At, teamId: string, email: string): Promise<MemberRow> {
  const { identity } = parseMember(email)
  await requireTeam(tx, teamId)
  const member = await lockMember(tx, teamId, identity)
  if (member) return member
  throw requestError('not_found', TEXTS.noMember, { email })
}

/** @throws RequestError not_found, or bad_request for the last owner. */
export const setRole = async (by: By, teamId: string, { email, role }: Wish): Promise<Member> =>
  changeRole(by, teamId, await requireMember(by, teamId, email), role)

/** Ends a membership. @throws RequestError not_found, or bad_request for the last owner. */
export async function removeMember(by: By, teamId: string, email: string): Promise<MemberRow> {
  const member = await requireMember(by, teamId, email)
  await keepAnOwner(by, teamId, member)
  await deleteSessionMemberships(by.tx, teamId, member.user_id)
  await deleteMembership(by.tx, teamId, member.user_id, by.now)
  await record(by, { team_id: teamId, action: 'member.remove', subject: member.email, detail: member.role })
  return member
}

type Login = {
  email: string
  /** Also makes the user a member of this team, with `role` (default viewer). */
  team: string | null
  role: Role | null
  operator: boolean
}

/** Returns the user who signs in. @throws RequestError if no user has this address. */
async function personToLogIn(by: By, { email, team, role, operator }: Login): Promise<PersonRow> {
  const { address, identity } = parseMember(email)
  if (role !== null && team === null) throw new RequestError('bad_request', TEXTS.roleWithoutTeam)
  const known = await personByIdentity(by.tx, identity)
  if (team === null && !operator && !(known && (await belongs(by.tx, known)))) {
    throw requestError('not_found', TEXTS.noAccount, { email })
  }
  const person = await upsertPerson(
    by.tx,
    { id: known?.id ?? idNow(), email: address, identity, operator },
    by.now,
  )
  if (operator && !known?.operator) {
    await record(by, { team_id: null, action: 'operator.add', subject: person.email })
  }
  const member = team === null ? null : await lockMember(by.tx, team, identity)
  const wanted = role ?? member?.role ?? 'viewer'
  if (team !== null && member?.role !== wanted) await addMember(by, team, { email, role: wanted })
  return person
}

/**
 * Creates a one-time link for a user, who becomes a member or an operator if requested. A link for a team only opens
 * that team, unless it is an operator's. @throws RequestError.
 */
export async function linkFor(by: By, login: Login): Promise<{ secret: string; expires_at: string }> {
  const person = await personToLogIn(by, login)
  const link = await makeLink(by, person.id, login.operator ? null : login.team)
  await record(by, { team_id: login.team, action: 'login.link', subject: person.email })
  return link
}

/** Creates a link for a member that an owner sees. It opens this team only. */
export async function memberLink(by: By, teamId: string, { user_id, email }: Member, length?: number) {
  const { secret } = await makeLink(by, user_id, teamId, length)
  await record(by, { team_id: teamId, action: 'login.link', subject: email })
  return secret
}

/** Adds a member for an owner, with an invitation link. @throws RequestError bad_request for a current member. */
export async function invite(by: By, teamId: string, wish: Wish): Promise<{ email: string; secret: string }> {
  const member = await makeMember(by, teamId, wish)
  return { email: member.email, secret: await memberLink(by, teamId, member, INVITATION_LENGTH_MS) }
}

/** Signs a member out of this team in every browser. Sessions of other teams stay. */
export async function signMemberOut(by: By, teamId: string, { user_id, email }: Member): Promise<void> {
  await deleteSessionMemberships(by.tx, teamId, user_id)
  await record(by, { team_id: teamId, action: 'member.end_sessions', subject: email })
}
