/**
 * Who did what, and when: people on the dashboard and operators at the command line. Operators see everything, owners
 * what concerns their team.
 */

import { auditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import { namesOfTeams } from '../../../../db/accounts/teams/directory.sql.ts'
import { text, time } from '../../drawn/cell.ts'
import type { Field, View } from '../../drawn/section.ts'
import type { PageDeps } from '../../served/deps.ts'
import { dayOf, filled, given, idGiven, PAGE_SIZE, pageOf } from '../../served/list.ts'
import { get, lagging, tableOf } from '../../served/made.ts'
import { type PageRequest, show, teamPath } from '../../served/page.ts'

const FILTER: readonly Field[] = [
  { name: 'actor', label: 'Person', type: 'search', placeholder: 'ana@example.com' },
  { name: 'action', label: 'Action', type: 'search', placeholder: 'email, or email.delete' },
  { name: 'from', label: 'From day (UTC)', type: 'date' },
  { name: 'to', label: 'To day', type: 'date' },
]

const OF_TEAM: Field = { name: 'team', label: 'Team', type: 'search', placeholder: 'id of a team' }

/** The trail as a page. @param only the team that it is about; null: all of them. */
async function auditView(request: PageRequest, { database }: PageDeps, only: string | null): Promise<View> {
  const { query, now, path } = request
  const entries = await auditEntries(database, {
    team: only ?? idGiven(query, 'team'),
    actor: given(query, 'actor'),
    action: given(query, 'action'),
    from: dayOf(query, 'from'),
    to: dayOf(query, 'to', 1),
    before: idGiven(query, 'before'),
    limit: PAGE_SIZE + 1,
  })
  const { rows, next } = pageOf(request, entries, ({ id }) => id)
  const ids = only === null ? rows.flatMap(({ team_id }) => team_id ?? []) : []
  const names = await namesOfTeams(database, [...new Set(ids)])
  return {
    title: 'Audit',
    lead: 'Everything that a person changed, newest first. Entries are never edited.',
    sections: [
      {
        kind: 'filter',
        action: path,
        method: 'get',
        fields: filled(only === null ? [...FILTER, OF_TEAM] : FILTER, query),
        submit: 'Filter',
        reset: query.size > 0 ? { href: path, label: 'All entries' } : null,
      },
      tableOf(
        rows,
        ({ created_at, actor, action, subject, detail, team_id }) => ({
          When: time(created_at, now),
          Who: text(actor),
          What: text(action, { code: true }),
          'To what': text(subject, detail === '' ? {} : { detail }),
          ...(only === null
            ? {
                Team: text(
                  names.get(team_id ?? '') ?? team_id,
                  team_id ? { href: teamPath({ id: team_id }) } : {},
                ),
              }
            : {}),
        }),
        {
          empty: query.size > 0 ? 'No entry matches.' : 'Nothing has been changed by a person yet.',
          next,
        },
      ),
    ],
  }
}

const audit = get(lagging('operator'), '/operator/audit', async (request, deps) =>
  show(await auditView(request, deps, null)),
)

const ofTeam = get('owner', '/teams/:team/audit', async (request, deps) =>
  show(await auditView(request, deps, request.team.id)),
)

export const auditPages = [audit, ofTeam]
