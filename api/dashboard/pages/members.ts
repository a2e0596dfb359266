/**
 * Members of a team: their roles and last activity. Owners invite them with a link, sign them out and remove
 * them. Nothing reveals a member's other teams.
 */

import { memberAdditions } from '../../../db/accounts/audit/audit.sql.ts'
import { tokensFor } from '../../../db/accounts/credentials/tokens.ts'
import {
  invite,
  memberLink,
  removeMember,
  setRole,
  signMemberOut,
} from '../../../db/accounts/members/members.ts'
import { type MemberRow, membersOfTeam } from '../../../db/accounts/members/people.sql.ts'
import { ROLES, type Role } from '../../../db/accounts/members/roles.ts'
import { openLinks } from '../../../db/accounts/members/sessions.sql.ts'
import { invalidField, RequestError } from '../../../db/errors.ts'
import { BASE } from '../components/base.ts'
import {
  type Cell,
  formatAge,
  headed,
  lastActive,
  NO_ACTIVITY,
  number,
  status,
  text,
  time,
} from '../components/cell.ts'
import type { Field } from '../components/section.ts'
import { already } from '../server/already.ts'
import { action, buildFacts, buildForm, button, compact, field, get } from '../server/builders.ts'
import { forOthers, type Notice, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sortableTable } from '../server/sort.ts'
import { TEXTS } from '../texts.ts'

const SAYS: Record<Role, string> = {
  viewer: 'Sees contacts, messages, templates and stats, but can’t change anything',
  editor:
    'Also changes templates, topics, contacts, suppressions and broadcasts, imports files, sends tests, and sends messages again',
  owner:
    'Also manages keys, domains, webhooks, members and settings, resumes the team’s broadcasts and batches after an automatic pause, deletes emails, exports and erases personal data, and reads the audit log',
}

const roleField = (chosen: Role): Field =>
  field('role', 'Role', {
    type: 'radios',
    options: ROLES.map((role) => ({
      value: role,
      label: headed(role),
      about: SAYS[role],
      selected: role === chosen,
    })),
  })

const here = (team: { id: string }, ...rest: string[]): string => teamPath(team, 'people', ...rest)

const inviteForm = (team: { id: string }) =>
  buildForm(here(team), 'Invite', {
    title: 'Invite a colleague',
    folded: true,
    fields: [field('email', 'Email address', { type: 'email', required: true }), roleField('viewer')],
  })

/** Builds the cell with a member's last activity, or with when their unused link expires. @param link that time. */
const activityCell = ({ last_seen_at: seen }: MemberRow, link: string | undefined, now: Date): Cell =>
  seen === null && link !== undefined
    ? text('link not used yet', { detail: `expires ${formatAge(link, now)}` })
    : lastActive(seen, now)

const list = get('viewer', '/teams/:team/people', async (request, { database }) => {
  const { team, person, now } = request
  const members = await membersOfTeam(database, team.id)
  const links = await openLinks(database, team.id, now)
  const added = await memberAdditions(database, team.id, ROLES)
  return show({
    title: 'Members',
    lead: `The members of this team and their roles.${forOthers(team, 'invite and remove members')}`,
    sections: compact([
      sortableTable(
        request,
        members,
        (member) => ({
          Address: text(member.email, {
            href: team.role === 'owner' ? here(team, member.user_id) : undefined,
            detail: member.user_id === person.user_id ? 'you' : undefined,
          }),
          Role: text(member.role),
          Added: time(added.get(member.email) ?? null, now, '–'),
          'Last active': activityCell(member, links.get(member.user_id), now),
        }),
        { empty: 'No members yet. Only operators can see this team.' },
      ),
      team.role === 'owner' && inviteForm(team),
    ]),
  })
})

/** @throws RequestError bad_request. */
function readRole(form: URLSearchParams): Role {
  const role = ROLES.find((word) => word === form.get('role'))
  if (role) return role
  throw invalidField('role', `must be one of ${ROLES.join(', ')}`)
}

/** Builds the notice with a link for a member. It is the same for all, so that it doesn't reveal their other teams. */
function linkNotice(
  { site, team }: TeamRequest,
  { email, secret }: { email: string; secret: string },
  { what, lasts }: { what: string; lasts: string },
): Notice {
  const words = `Give ${email} this ${what}. It works once, within ${lasts}, and only opens ${team.name}.`
  const others = 'If they sign in another way, they see this team from their next sign-in.'
  return { tone: 'good', text: `${words} ${others}`, secret: new URL(`${BASE}/login/${secret}`, site).href }
}

const add = action('owner', '/teams/:team/people', async (by, request) => {
  const { team, form } = request
  const wish = { email: form.get('email') ?? '', role: readRole(form) }
  const invited = await invite(by, team.id, wish)
  return redirect(here(team), linkNotice(request, invited, { what: 'invitation', lasts: '7 days' }))
})

/** @returns the member and if it is the only owner. @throws RequestError not_found. */
async function findMember({ team, params }: TeamRequest, tx: Parameters<typeof membersOfTeam>[0]) {
  const members = await membersOfTeam(tx, team.id)
  const member = members.find(({ user_id }) => user_id === params.id)
  if (!member) throw new RequestError('not_found', TEXTS.noMember)
  const isOnlyOwner = members.every(({ user_id, role }) => (role === 'owner') === (user_id === params.id))
  return { ...member, isOnlyOwner }
}

/** Tells the last activity, and why the role of the only owner can't be changed. */
function memberLead(
  { user_id, last_seen_at: seen, isOnlyOwner }: Awaited<ReturnType<typeof findMember>>,
  { person, now }: TeamRequest,
): string {
  if (isOnlyOwner)
    return `This is ${user_id === person.user_id ? 'you, ' : ''}the only owner. To change the role, make someone else an owner first.`
  return seen === null ? NO_ACTIVITY : `Last active ${formatAge(seen, now)}.`
}

const page = get('owner', '/teams/:team/people/:id', async (request, { database }) => {
  const { team, now } = request
  const member = await findMember(request, database)
  const { email, role, user_id: id, isOnlyOwner } = member
  const link = (await openLinks(database, team.id, now)).get(id)
  const tokens = await tokensFor({ tx: database, now }, team.id, { user_id: id, role: 'viewer' })
  const active = tokens.filter(({ revoked_at }) => revoked_at === null).length
  return show({
    title: email,
    state: status(role),
    lead: memberLead(member, request),
    back: { href: here(team), label: 'Members' },
    actions: {
      forms: compact([
        button(here(team, id, 'link'), 'Create a sign-in link', { tone: 'quiet' }),
        button(here(team, id, 'end-sessions'), 'Sign out of this team', { tone: 'quiet', menu: true }),
        !isOnlyOwner && button(here(team, id, 'remove'), 'Remove from the team', { tone: 'danger' }),
      ]),
      links: [
        {
          href: `${teamPath(team, 'audit')}?${new URLSearchParams({ actor: email })}`,
          label: 'Show in audit log',
        },
      ],
    },
    sections: [
      isOnlyOwner
        ? buildFacts({
            Role: text(headed(role), { detail: `Can do everything that editors can. ${SAYS.owner}.` }),
            'Last active': lastActive(member.last_seen_at, now),
          })
        : buildForm(here(team, id, 'role'), 'Change the role', { fields: [roleField(role)] }),
    ],
    aside:
      link === undefined && active === 0
        ? []
        : [
            buildFacts({
              'Unused sign-in link': link !== undefined && text(`expires ${formatAge(link, now)}`),
              'Session tokens':
                active > 0 && number(active, { href: teamPath(team, 'integration', 'tokens') }),
            }),
          ],
  })
})

const change = action('owner', '/teams/:team/people/:id/role', async (by, request) => {
  const { team, form } = request
  const role = readRole(form)
  const { email } = await findMember(request, by.tx)
  await setRole(by, team.id, { email, role })
  return redirect(
    here(team),
    `${email} is now ${role}. Additional permissions apply from their next sign-in.`,
  )
}).confirm(async (request, { database }) => {
  const wanted = readRole(request.form)
  const { email, role } = await findMember(request, database)
  if (role === wanted) throw already(email, role)
  return {
    question: `Change the role of ${email} to ${wanted}?`,
    answer: 'Change the role',
    warning: 'Removed permissions end immediately. Additional ones apply from their next sign-in.',
  }
})

const link = action('owner', '/teams/:team/people/:id/link', async (by, request) => {
  const { team } = request
  const member = await findMember(request, by.tx)
  const secret = await memberLink(by, team.id, member)
  const notice = linkNotice(request, { ...member, secret }, { what: 'link', lasts: '15 minutes' })
  return redirect(here(team, member.user_id), notice)
})

const endSessions = action('owner', '/teams/:team/people/:id/end-sessions', async (by, request) => {
  const { team } = request
  const member = await findMember(request, by.tx)
  await signMemberOut(by, team.id, member)
  return redirect(here(team, member.user_id), `${member.email} was signed out of this team.`)
})

const remove = action('owner', '/teams/:team/people/:id/remove', async (by, request) => {
  const { team } = request
  const { email } = await findMember(request, by.tx)
  await removeMember(by, team.id, email)
  return redirect(here(team), `${email} was removed from the team.`)
}).confirm(async (request, { database }) => ({
  question: `Remove ${(await findMember(request, database)).email} from ${request.team.name}?`,
  answer: 'Remove from the team',
  warning: 'They are signed out of this team immediately. Their past changes are kept.',
  tone: 'danger',
}))

export const peoplePages = [list, add, page, change, link, endSessions, remove]
