/**
 * Where a person begins, and the browsers in which they are signed in. A person who came by a link to one team sees,
 * and ends, sessions that began by such links of that team alone.
 */
import { deleteOtherSessions, sessionsOfPerson } from '../../../db/accounts/people/sessions.sql.ts'
import { idleSince } from '../../../db/accounts/people/sign-in.ts'
import { plural, status, text, time } from '../drawn/cell.ts'
import { type PersonPage, redirect, show, teamPath } from '../served/page.ts'

const start: PersonPage = {
  method: 'GET',
  path: '',
  access: 'person',
  async handle({ person }) {
    const [membership] = person.memberships
    return redirect(membership ? teamPath({ id: membership.team_id }) : '/operator/teams')
  },
}

const account: PersonPage = {
  method: 'GET',
  path: '/account',
  access: 'person',
  async handle({ person, now }, { database }) {
    const sessions = await sessionsOfPerson(database, person, { now, idle: idleSince(now) })
    const rows = sessions.map(({ id, user_agent, created_at, seen_at }) => ({
      cells: [
        text(user_agent || null),
        time(created_at, now),
        id === person.session_id ? status('active', { text: 'this one' }) : time(seen_at, now),
      ],
    }))
    return show({
      title: 'Your sessions',
      lead: `You are ${person.email}. A session ends after 12 hours without use, and after 7 days at most.`,
      sections: [
        {
          kind: 'table',
          columns: [{ label: 'Browser' }, { label: 'Signed in' }, { label: 'Last used' }],
          rows,
          empty: '',
        },
        {
          kind: 'actions',
          forms: [
            {
              action: '/account/end-others',
              method: 'post',
              fields: [],
              submit: 'End all other sessions',
              tone: 'danger',
            },
          ],
        },
      ],
    })
  },
}

const endOthers: PersonPage = {
  method: 'POST',
  path: '/account/end-others',
  access: 'person',
  async handle({ person }, { database }) {
    const ended = await deleteOtherSessions(database, person, person.session_id)
    return redirect('/account', `${plural(ended, 'session')} ended.`)
  },
}

export const accountPages = [start, account, endOthers]
