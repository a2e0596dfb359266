/**
 * The start page, and the account page with the teams and sessions of a user. A session from an invitation or
 * owner's link is limited to one team. It can only list and end sessions from such links of that team.
 */

import { deleteOtherSessions, sessionsOfPerson } from '../../../db/accounts/members/sessions.sql.ts'
import { idleSince, type Person } from '../../../db/accounts/members/sign-in.ts'
import { RequestError } from '../../../db/errors.ts'
import { plural } from '../../../db/plural.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { browserName } from '../components/browser-name.ts'
import { type Cell, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { buildTable, button, buttonCell, compact, get, post } from '../server/builders.ts'
import { type PageTeam, redirect, show, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'

/** Adds the team whose navigation the page shows. */
const inTeam = (path: string, team: PageTeam | null): string => (team ? `${path}?team=${team.id}` : path)

const start = get('person', '', async ({ around }) => {
  return redirect(around ? teamPath(around) : '/operator')
})

const teamsTable = ({ memberships, operator }: Person): Section =>
  buildTable(
    memberships,
    ({ team_id: id, name, role }) => ({ Team: text(name, { href: teamPath({ id }) }), Role: text(role) }),
    {
      title: 'Teams',
      wrap: ['Team'],
      note: operator ? 'You are also an operator, with access to every team.' : undefined,
      empty: operator ? 'You aren’t a member of a team.' : 'No teams.',
    },
  )

type SessionRow = Awaited<ReturnType<typeof sessionsOfPerson>>[number]

function sessionsTable(
  sessions: readonly SessionRow[],
  { now, person, around }: { now: Date; person: Person; around: PageTeam | null },
): Section {
  const endCell = ({ id }: SessionRow): Cell =>
    id === person.session_id
      ? text('')
      : buttonCell(inTeam(`/account/sessions/${id}/end`, around), 'End session', { tone: 'quiet' })
  return buildTable(
    sessions,
    (session) => ({
      Browser: text(browserName(session.user_agent) || null, {
        tip: session.user_agent || undefined,
        detail: session.id === person.session_id ? 'this browser' : undefined,
      }),
      // The exact time tells sessions of one browser apart.
      'Signed in': { ...time(session.created_at, now), age: undefined, short: undefined },
      'Last used': session.id === person.session_id ? text('now') : time(session.seen_at, now),
      '': sessions.length > 1 && endCell(session),
    }),
    {
      title: 'Sessions',
      note: 'Browsers in which you are signed in. A session ends after 12 hours without use, and after 7 days at most.',
      empty: '',
    },
  )
}

const account = get('person', '/account', async ({ person, now, around }, { database }) => {
  const sessions = await sessionsOfPerson(database, person, { now, idle: idleSince(now) })
  return show({
    title: 'Your account',
    lead: person.email,
    actions: {
      forms: compact([
        button('/sign-out', 'Sign out', { tone: 'quiet' }),
        sessions.length > 1 &&
          button(inTeam('/account/end-others', around), 'End all other sessions', {
            tone: 'danger',
            menu: false,
          }),
      ]),
    },
    sections: [sessionsTable(sessions, { now, person, around }), teamsTable(person)],
  })
})

const endOthers = post('person', '/account/end-others', async ({ person, around }, { database }) => {
  const ended = await deleteOtherSessions(database, person, { keep: person.session_id })
  return redirect(inTeam('/account', around), `${plural(ended, 'session')} ended.`)
})

const endOne = post(
  'person',
  '/account/sessions/:id/end',
  async ({ params: { id }, person, around }, { database }) => {
    const isKnown = isUuid(id) && id !== person.session_id
    const which = { keep: person.session_id, only: id }
    const ended = isKnown ? await deleteOtherSessions(database, person, which) : 0
    if (ended === 0) throw new RequestError('not_found', TEXTS.noOtherSession)
    return redirect(inTeam('/account', around), 'The session was ended.')
  },
)

export const accountPages = [start, account, endOthers, endOne]
