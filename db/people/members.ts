/**
 * The people of a team: who is one, with which role.
 * Promises: nobody can take a team's last owner away; an ended membership ends the
 * person's sessions at once; every change leaves an audit line.
 */
import { v7 as uuidv7 } from 'uuid'
import { type Actor, record } from '../audit/record.ts'
import { Refusal } from '../errors.ts'
import type { At } from '../postgres/pool.ts'
import { teamOrRefusal } from '../teams/view.ts'
import { parseAddress } from '../text/address.ts'
import {
  deleteMembership,
  lockMember,
  type MemberRow,
  membersOfTeam,
  type PersonRow,
  personById,
  personByIdentity,
  seatsOfPerson,
  setMembership,
  upsertPerson,
} from './people.sql.ts'
import type { Role } from './roles.ts'
import { belongs, makeLink } from './sign-in.ts'

type By = At & { actor: Actor }

/** @throws Refusal bad_request. */
function addressOf(email: string) {
  const parsed = parseAddress(email)
  if (parsed) return parsed
  throw new Refusal('bad_request', `${JSON.stringify(email)} is not an email address`)
}

/** @throws Refusal bad_request when that would leave the team without an owner. */
async function keepAnOwner({ tx }: At, teamId: string, member: MemberRow): Promise<void> {
  if (member.role !== 'owner') return
  const owners = (await membersOfTeam(tx, teamId)).filter(({ role }) => role === 'owner')
  if (owners.length > 1) return
  throw new Refusal('bad_request', `${member.email} is the team's last owner: make somebody else one first`)
}

/** Makes somebody a member, or gives a member another role. @throws Refusal bad_request, not_found for the team. */
export async function addMember(
  by: By,
  teamId: string,
  { email, role }: { email: string; role: Role },
): Promise<{ user_id: string; email: string; role: Role }> {
  const { tx, now } = by
  const { address, identity } = addressOf(email)
  await teamOrRefusal(tx, teamId)
  const before = await lockMember(tx, teamId, identity)
  if (before && role !== 'owner') await keepAnOwner(by, teamId, before)
  const person = await upsertPerson(tx, { id: uuidv7(), email: address, identity, operator: false }, now)
  await setMembership(tx, teamId, person.id, role)
  const detail = before ? `${before.role} → ${role}` : role
  await record(by, { team_id: teamId, action: 'member.add', subject: person.email, detail })
  return { user_id: person.id, email: person.email, role }
}

/** Ends a membership. @throws Refusal not_found, or bad_request for the last owner. */
export async function removeMember(by: By, teamId: string, email: string): Promise<MemberRow> {
  const { identity } = addressOf(email)
  await teamOrRefusal(by.tx, teamId)
  const member = await lockMember(by.tx, teamId, identity)
  if (!member) throw new Refusal('not_found', `the team has no member ${email}`)
  await keepAnOwner(by, teamId, member)
  await deleteMembership(by.tx, teamId, member.user_id, by.now)
  await record(by, { team_id: teamId, action: 'member.remove', subject: member.email, detail: member.role })
  return member
}

export type Login = {
  email: string
  /** With it, the person is made a member, with `role` (viewer if none is said). */
  team: string | null
  role: Role | null
  operator: boolean
}

/** The person who may sign in, after the call's changes. @throws Refusal when nobody here has this address. */
async function personToLogIn(by: By, { email, team, role, operator }: Login): Promise<PersonRow> {
  const { address, identity } = addressOf(email)
  if (role !== null && team === null) throw new Refusal('bad_request', 'a role needs a team')
  const known = await personByIdentity(by.tx, identity)
  if (team === null && !operator && !(known && (await belongs(by.tx, known)))) {
    throw new Refusal('not_found', `nobody here is ${email}: name a team, or make them an operator`)
  }
  const person = await upsertPerson(
    by.tx,
    { id: known?.id ?? uuidv7(), email: address, identity, operator },
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

/** A one-time link for somebody, who is made a member or an operator on the way. @throws Refusal. */
export async function linkFor(by: By, login: Login): Promise<{ secret: string; expires_at: string }> {
  const person = await personToLogIn(by, login)
  const link = await makeLink(by, person.id)
  await record(by, { team_id: login.team, action: 'login.link', subject: person.email })
  return link
}

/**
 * Makes somebody a member for an owner, with a link to hand on if it opens nothing but this team. Operators and members
 * of other teams get no such link: they sign in another way. @throws Refusal.
 */
export async function invite(
  by: By,
  teamId: string,
  wish: { email: string; role: Role },
): Promise<{ email: string; secret: string | null }> {
  const { user_id, email } = await addMember(by, teamId, wish)
  const person = await personById(by.tx, user_id)
  const seats = await seatsOfPerson(by.tx, user_id)
  if (!person || person.operator || seats.length > 1) return { email, secret: null }
  const { secret } = await makeLink(by, user_id)
  await record(by, { team_id: teamId, action: 'login.link', subject: email })
  return { email, secret }
}
