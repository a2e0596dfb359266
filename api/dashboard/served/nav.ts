/** Where one can go: the pages of a team, those of the operator, and from team to team. */

import { type Role, reaches } from '../../../db/people/roles.ts'
import type { Person } from '../../../db/people/sign-in.ts'
import { type Seat, teamPath } from './page.ts'

type Entry = { label: string; href: string; current: boolean }

/** A team's pages: path under the team, label, and who sees it. */
const TEAM_PAGES: readonly (readonly [path: string, label: string, role: Role])[] = [
  ['', 'Overview', 'viewer'],
  ['emails', 'Emails', 'viewer'],
  ['broadcasts', 'Broadcasts', 'viewer'],
  ['whatsapp', 'WhatsApp', 'viewer'],
  ['contacts', 'Contacts', 'viewer'],
  ['topics', 'Topics', 'viewer'],
  ['templates', 'Templates', 'viewer'],
  ['whatsapp-templates', 'WhatsApp templates', 'viewer'],
  ['domains', 'Domains', 'viewer'],
  ['keys', 'API keys', 'viewer'],
  ['webhooks', 'Webhooks', 'viewer'],
  ['people', 'People', 'viewer'],
  ['integration', 'Integration', 'viewer'],
]

/** The operator's pages: path after /operator. */
const OPERATOR_PAGES: readonly (readonly [path: string, label: string])[] = [
  ['health', 'Health'],
  ['queues', 'Queues'],
  ['senders', 'Senders'],
  ['reports', 'Reports'],
  ['teams', 'Teams'],
  ['plans', 'Plans'],
  ['audit', 'Audit'],
]

const isAt = (path: string, href: string): boolean => path === href || path.startsWith(`${href}/`)

/** The links beside a page. */
export function navigation({
  path,
  person,
  team,
}: {
  path: string
  person: Person | null
  team: Seat | null
}) {
  const groups: { label: string; links: Entry[] }[] = []
  if (team) {
    const links = TEAM_PAGES.filter(([, , role]) => reaches(team.role, role)).map(([rest, label]) => {
      const href = rest === '' ? teamPath(team) : teamPath(team, rest)
      return { label, href, current: rest === '' ? path === href : isAt(path, href) }
    })
    groups.push({ label: person?.operator ? 'Team' : '', links })
  }
  if (person?.operator) {
    const links = OPERATOR_PAGES.map(([rest, label]) => {
      const href = `/operator/${rest}`
      return { label, href, current: isAt(path, href) }
    })
    groups.push({ label: 'Operator', links })
  }
  return groups.filter(({ links }) => links.length > 0)
}

/** The teams that one can change to, when there is more than one place to be. */
export function places({ seats, operator }: Person, team: Seat | null): Entry[] {
  const teams = seats.map(({ team_id: id, name }) => ({
    label: name,
    href: teamPath({ id }),
    current: id === team?.id,
  }))
  const all = operator ? [{ label: 'All teams', href: '/operator/teams', current: false }] : []
  return [...teams, ...all]
}
