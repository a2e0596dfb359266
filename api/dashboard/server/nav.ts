/** The navigation: pages of a team, pages of the operator, and the team switcher. */

import { type Role, reaches } from '../../../db/accounts/members/roles.ts'
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import { CHANNEL_FACTS } from '../../../db/channels/list.ts'
import { ICONS, type Icon } from '../components/icons.ts'
import { type PageTeam, teamPath } from './page.ts'

type Entry = { label: string; href: string; current: boolean; icon?: string }
type NavItem = readonly [path: string, label: string, icon: Icon, role?: Role]

/** Pages of a team in groups: path in the team, label, icon, and minimum role if it isn't viewer. */
const TEAM_PAGES: readonly { label: string; places: readonly NavItem[] }[] = [
  { label: '', places: [['', 'Overview', 'home']] },
  {
    label: 'Messages',
    places: [
      ...CHANNEL_FACTS.map(({ name, path, quota }): NavItem => {
        return [path, quota.title, name === 'email' ? 'mail' : 'chat']
      }),
      ['broadcasts', 'Broadcasts', 'megaphone'],
    ],
  },
  {
    label: 'Audience',
    places: [
      ['contacts', 'Contacts', 'people'],
      ['suppressions', 'Suppressions', 'ban'],
      ['topics', 'Topics', 'tag'],
    ],
  },
  {
    label: 'Content',
    places: [
      ['templates', 'Templates', 'file'],
      ['whatsapp-templates', 'WhatsApp templates', 'file'],
    ],
  },
  {
    label: 'Setup',
    places: [
      ['domains', 'Domains', 'globe'],
      ['keys', 'API keys', 'key'],
      ['webhooks', 'Webhooks', 'webhook'],
      ['people', 'Members', 'person'],
      ['settings', 'Settings', 'plan'],
      ['integration', 'Integration', 'code'],
      ['integration/log', 'Rejected API calls', 'lines'],
      ['background-jobs', 'Background jobs', 'clock', 'editor'],
      ['audit', 'Audit log', 'shield', 'owner'],
    ],
  },
]

/** Pages of the operator, with the path after /operator. */
const OPERATOR_PAGES: readonly NavItem[] = [
  ['', 'Overview', 'home'],
  ['health', 'Health', 'pulse'],
  ['queues', 'Queues', 'layers'],
  ['senders', 'Senders', 'send'],
  ['numbers', 'WhatsApp numbers', 'chat'],
  ['reports', 'Parked reports', 'inbox'],
  ['teams', 'Teams', 'people'],
  ['background-jobs', 'Background jobs', 'clock'],
  ['plans', 'Plans', 'plan'],
  ['audit', 'Audit log', 'shield'],
]

/** The operator's pages in the navigation of a team. */
const FROM_TEAMS = ['', 'queues']

/** Builds the links of a group for this role. @param home the prefix of their paths. */
function buildLinks(path: string, home: string, pages: readonly NavItem[], sees: Role): Entry[] {
  const seen = pages.filter(([, , , role = 'viewer']) => reaches(sees, role))
  const toHref = (rest: string): string => (rest === '' ? home : `${home}/${rest}`)
  const around = seen
    .map(([rest]) => rest)
    .filter((rest) => rest !== '' && path.startsWith(`${toHref(rest)}/`))
  return seen.map(([rest, label, icon]) => {
    const href = toHref(rest)
    const isNearest = around.includes(rest) && seen.every(([other]) => toHref(other) !== path)
    return { label, href, current: path === href || isNearest, icon: ICONS[icon] }
  })
}

/** @param at the path of the current page after /dashboard. */
export function navigation(at: string, person: Person | null, team: PageTeam | null) {
  // Opt-outs are a part of WhatsApp.
  const path = at.replace(/\/whatsapp-opt-outs$/, '/whatsapp')
  const ofTeam = team
    ? TEAM_PAGES.map(({ label, places: pages }) => {
        return { label, links: buildLinks(path, teamPath(team), pages, team.sees) }
      })
    : []
  // Next to a team's pages, more of them don't fit on a screen of 800 px.
  const operatorPages = team ? OPERATOR_PAGES.filter(([rest]) => FROM_TEAMS.includes(rest)) : OPERATOR_PAGES
  const ofOperator = person?.operator
    ? [{ label: 'Operator', links: buildLinks(path, '/operator', operatorPages, 'owner') }]
    : []
  return [...ofTeam, ...ofOperator].filter(({ links }) => links.length > 0)
}

/** Returns the entries of the team switcher: the user's teams, and the operator pages. */
export function places({ memberships, operator }: Person, team: PageTeam | null): Entry[] {
  const teams = memberships.map(({ team_id: id, name }) => ({
    label: name,
    href: teamPath({ id }),
    current: id === team?.id,
  }))
  const all = operator ? [{ label: 'Operator', href: '/operator', current: false }] : []
  return [...teams, ...all]
}
