/** The tabs of Integration. Each is a page. */

import type { Section } from '../components/section.ts'
import { type PageTeam, teamPath } from '../server/page.ts'

const TABS = { '': 'Requests', recipients: 'Test recipients', tokens: 'Session tokens' } as const

export const integrationTabs = (team: PageTeam, current: keyof typeof TABS): Section => ({
  kind: 'tabs',
  links: Object.entries(TABS).map(([path, label]) => ({
    href: path === '' ? teamPath(team, 'integration') : teamPath(team, 'integration', path),
    label,
    current: path === current,
  })),
})
