/**
 * From an id alone to the message's page, in whichever of the person's teams it is: what the sandbox's inbox, a log
 * line or a colleague's note links to. An operator looks through all teams.
 */
import { type MessagePlace, messagesWithId } from '../../../db/delivery/locate.sql.ts'
import { status, text } from '../drawn/cell.ts'
import type { Section } from '../drawn/section.ts'
import { given } from '../served/list.ts'
import { type PersonPage, redirect, show, teamPath } from '../served/page.ts'

const MOST = 50

const pathTo = ({ team_id, channel, id }: MessagePlace): string =>
  teamPath({ id: team_id }, channel === 'email' ? 'emails' : 'whatsapp', id)

/** The messages that one id names: a request's key names as many as it had numbers. */
const choice = (id: string, found: readonly MessagePlace[]): Section => ({
  kind: 'table',
  columns: ['Channel', 'Message', 'Team'].map((label) => ({ label })),
  rows: found.map((place) => ({
    cells: [
      status(place.channel),
      text(place.id, { code: true, href: pathTo(place) }),
      text(place.team_id, { code: true }),
    ],
  })),
  empty: `No message that you may see has the id ${id}.`,
})

const locate: PersonPage = {
  method: 'GET',
  path: '/find',
  access: 'person',
  async handle({ query, person }, { database }) {
    const id = given(query, 'q') ?? given(query, 'id')
    const teams = person.operator ? null : person.seats.map(({ team_id }) => team_id)
    const found = id === undefined ? [] : await messagesWithId(database, id, { teams, limit: MOST })
    const [first, ...others] = found
    if (first && others.length === 0) return redirect(pathTo(first))
    return show({
      title: 'Find a message',
      sections: [
        {
          kind: 'filter',
          action: '/find',
          method: 'get',
          fields: [
            {
              name: 'q',
              label: 'Message, request or idempotency ID',
              placeholder: 'ours, yours or the provider’s',
              type: 'search',
              value: id ?? '',
              required: true,
            },
          ],
          submit: 'Find',
          reset: null,
        },
        ...(id === undefined ? [] : [choice(id, found)]),
      ],
    })
  },
}

export const locatePages = [locate]
