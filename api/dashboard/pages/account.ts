/**
 * The start page, and the sessions of a user. A session from an invitation or owner's link is limited to one
 * team. It can only list and end sessions from such links of that team.
 */

import { deleteOtherSessions, sessionsOfPerson } from '../../../db/accounts/members/sessions.sql.ts'
import { idleSince } from '../../../db/accounts/members/sign-in.ts'
import { browserName } from '../components/browser-name.ts'
import { plural, status, text, time } from '../components/cell.ts'
import { buildTable, button, compact, get, post } from '../server/builders.ts'
import { type PageTeam, redirect, show, teamPath } from '../server/page.ts'

/** Adds the team whose navigation the page shows. */
const inTeam = (path: string, team: PageTeam | null): string => (team ? `${path}?team=${team.id}` : path)

const start = get('person', '', async ({ around }) => {
  return redirect(around ? teamPath(around) : '/operator')
})

const account = get('person', '/account', async ({ person, now, around }, { database }) => {
  const sessions = await sessionsOfPerson(database, person, { now, idle: idleSince(now) })
  return show({
    title: 'Your sessions',
    actions: { forms: [button('/sign-out', 'Sign out', { tone: 'quiet' })] },
    lead: `You are ${person.email}. A session ends after 12 hours without use, and after 7 days at most.`,
    sections: compact([
      buildTable(
        sessions,
        ({ id, user_agent, created_at, seen_at }) => ({
          Browser: text(browserName(user_agent) || null, { tip: user_agent || undefined }),
          'Signed in': time(created_at, now),
          'Last used': id === person.session_id ? status('active', { text: 'this one' }) : time(seen_at, now),
        }),
        { empty: '' },
      ),
      sessions.length > 1 && {
        kind: 'actions',
        forms: [button(inTeam('/account/end-others', around), 'End all other sessions', { tone: 'danger' })],
      },
    ]),
  })
})

const endOthers = post('person', '/account/end-others', async ({ person, around }, { database }) => {
  const ended = await deleteOtherSessions(database, person, person.session_id)
  return redirect(inTeam('/account', around), `${plural(ended, 'session')} ended.`)
})

export const accountPages = [start, account, endOthers]
