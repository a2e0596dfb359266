/** The first page of a team: what needs a person, what is used and left, and how the last 30 days went. */
import { showTeam } from '../../../db/teams/view.ts'
import { duration } from '../cell.ts'
import { show, type TeamPage, teamPath } from '../page.ts'
import type { Tile } from '../section.ts'

/** How much of a limit is used. */
function usageTile(label: string, used: number, limit: number | null, href: string): Tile {
  const value = used.toLocaleString('en-US')
  if (limit === null) return { label, value, detail: 'no limit', href }
  const percent = limit === 0 ? 100 : Math.min(100, Math.round((used / limit) * 100))
  const detail = `of ${limit.toLocaleString('en-US')}, ${Math.max(0, limit - used).toLocaleString('en-US')} left`
  return {
    label,
    value,
    detail,
    filled: percent,
    tone: percent >= 100 ? 'bad' : percent >= 80 ? 'warn' : 'plain',
    href,
  }
}

const overview: TeamPage = {
  method: 'GET',
  path: '/teams/:team',
  access: 'viewer',
  async handle({ team, now }, { database }) {
    const { plan, limits, used, period } = await showTeam(database, team.id)
    const resets = `${period.end.slice(0, 10)}, in ${duration((Date.parse(period.end) - now.getTime()) / 1_000)}`
    return show({
      title: 'Overview',
      lead: `Plan ${plan}. Emails and WhatsApp messages count anew on ${resets}.`,
      sections: [
        {
          kind: 'tiles',
          title: 'This period',
          tiles: [
            usageTile('Emails', used.emails, limits.emails, teamPath(team, 'emails')),
            usageTile('WhatsApp messages', used.whatsapp, limits.whatsapp, teamPath(team, 'whatsapp')),
            usageTile('Contacts', used.contacts, limits.contacts, teamPath(team, 'contacts')),
          ],
        },
      ],
    })
  },
}

export const overviewPages = [overview]
