/**
 * The people of a team: who they are, what they may do, when they were here; invited by a link, signed out, removed.
 * Promises: an owner reads the same of everybody: nothing reveals their other teams.
 */

import {
  addMember,
  invite,
  memberLink,
  removeMember,
  signMemberOut,
} from '../../../db/accounts/people/members.ts'
import { type MemberRow, membersOfTeam } from '../../../db/accounts/people/people.sql.ts'
import { ROLES, type Role } from '../../../db/accounts/people/roles.ts'
import { Refusal } from '../../../db/errors.ts'
import { BASE } from '../drawn/base.ts'
import { type Cell, status, text, time } from '../drawn/cell.ts'
import type { Form } from '../drawn/section.ts'
import { get, post, some } from '../served/made.ts'
import { type Notice, redirect, show, type TeamRequest, teamPath } from '../served/page.ts'

const SAYS: Record<Role, string> = {
  viewer: 'viewer: reads',
  editor: 'editor: also templates, topics, contacts, requeueing',
  owner: 'owner: also keys, domains, people',
}

const here = (team: { id: string }, ...rest: string[]): string => teamPath(team, 'people', ...rest)

function cellsOf({ email, role, last_seen_at, user_id }: MemberRow, { team, now }: TeamRequest): Cell[] {
  const own = team.role === 'owner'
  return [text(email, own ? { href: here(team, user_id) } : {}), status(role), time(last_seen_at, now)]
}

const list = get('viewer', '/teams/:team/people', async (request, { database }) => {
  const { team } = request
  const members = await membersOfTeam(database, team.id)
  const form: Form = {
    action: here(team),
    method: 'post',
    submit: 'Invite',
    fields: [
      { name: 'email', label: 'Email address', type: 'email', required: true },
      {
        name: 'role',
        label: 'Role',
        type: 'select',
        options: ROLES.map((role) => ({ value: role, label: SAYS[role] })),
      },
    ],
  }
  return show({
    title: 'People',
    lead: 'Who may look into this team, and change it.',
    sections: some([
      {
        kind: 'table',
        columns: ['Address', 'Role', 'Last active'].map((label) => ({ label })),
        rows: members.map((member) => ({ cells: cellsOf(member, request) })),
        empty: 'Nobody yet: only operators see this team.',
      },
      team.role === 'owner' && { kind: 'form', title: 'Invite somebody', ...form },
    ]),
  })
})

/** @throws Refusal bad_request. */
function roleOf(form: URLSearchParams): Role {
  const role = ROLES.find((word) => word === form.get('role'))
  if (role) return role
  throw new Refusal('bad_request', `role must be one of ${ROLES.join(', ')}`)
}

/** What to hand on to a member: the same words for all, so that they do not reveal anybody's other teams. */
function linkNotice(
  { site, team }: TeamRequest,
  { email, secret }: { email: string; secret: string },
  what: string,
): Notice {
  const words = `Give ${email} this ${what}, and opens ${team.name} alone.`
  const others = 'People who sign in another way see this team from their next sign-in on.'
  return { tone: 'good', text: `${words} ${others}`, secret: new URL(`${BASE}/login/${secret}`, site).href }
}

const add = post('owner', '/teams/:team/people', async (request, { database }) => {
  const { team, form, person, now } = request
  const wish = { email: form.get('email') ?? '', role: roleOf(form) }
  const invited = await database.transaction((tx) => invite({ tx, now, actor: person.email }, team.id, wish))
  return redirect(here(team), linkNotice(request, invited, 'invitation: it is good once, for 7 days'))
})

/** @throws Refusal not_found. */
async function memberOf({ team, params }: TeamRequest, database: Parameters<typeof membersOfTeam>[0]) {
  const member = (await membersOfTeam(database, team.id)).find(({ user_id }) => user_id === params.id)
  if (member) return member
  throw new Refusal('not_found', 'there is no such member')
}

const page = get('owner', '/teams/:team/people/:id', async (request, { database }) => {
  const { team } = request
  const { email, role, user_id: id } = await memberOf(request, database)
  const press = (verb: string, submit: string, more: Partial<Form> = {}): Form => ({
    action: here(team, id, verb),
    method: 'post',
    fields: [],
    submit,
    tone: 'quiet',
    ...more,
  })
  return show({
    title: email,
    back: { href: here(team), label: 'People' },
    sections: [
      {
        kind: 'form',
        action: here(team, id, 'role'),
        method: 'post',
        submit: 'Change the role',
        confirm: `Change the role of ${email}? It counts at once.`,
        fields: [
          {
            name: 'role',
            label: 'Role',
            type: 'select',
            options: ROLES.map((word) => ({ value: word, label: SAYS[word], selected: word === role })),
          },
        ],
      },
      {
        kind: 'actions',
        forms: [
          press('link', 'Create a sign-in link'),
          press('end-sessions', 'Sign out of this team'),
          press('remove', 'Remove', { tone: 'danger', confirm: `Remove ${email} from the team?` }),
        ],
      },
    ],
  })
})

const change = post('owner', '/teams/:team/people/:id/role', async (request, { database }) => {
  const { team, form, person, now } = request
  const role = roleOf(form)
  const { email } = await memberOf(request, database)
  await database.transaction((tx) => addMember({ tx, now, actor: person.email }, team.id, { email, role }))
  return redirect(here(team), `${email} is ${role} now. Rights gained count from the next sign-in on.`)
})

const link = post('owner', '/teams/:team/people/:id/link', async (request, { database }) => {
  const { team, person, now } = request
  const member = await memberOf(request, database)
  const secret = await database.transaction((tx) =>
    memberLink({ tx, now, actor: person.email }, team.id, member),
  )
  const notice = linkNotice(request, { ...member, secret }, 'link: it is good once, for 15 minutes')
  return redirect(here(team, member.user_id), notice)
})

const endSessions = post('owner', '/teams/:team/people/:id/end-sessions', async (request, { database }) => {
  const { team, person, now } = request
  const member = await memberOf(request, database)
  await database.transaction((tx) => signMemberOut({ tx, now, actor: person.email }, team.id, member))
  return redirect(here(team, member.user_id), `${member.email} is signed out of this team.`)
})

const remove = post('owner', '/teams/:team/people/:id/remove', async (request, { database }) => {
  const { team, person, now } = request
  const { email } = await memberOf(request, database)
  await database.transaction((tx) => removeMember({ tx, now, actor: person.email }, team.id, email))
  return redirect(here(team), `${email} is no member any more.`)
})

export const peoplePages = [list, add, page, change, link, endSessions, remove]
