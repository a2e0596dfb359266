/** Who did what, and when: people on the dashboard and operators at the command line. */
import { auditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import { text, time } from '../../drawn/cell.ts'
import { filled, idGiven, PAGE_SIZE, pageOf } from '../../served/list.ts'
import { type PersonPage, show } from '../../served/page.ts'

const FILTER = [
  { name: 'team', label: 'Team', type: 'search', placeholder: 'id of a team', code: true },
] as const

const audit: PersonPage = {
  method: 'GET',
  path: '/operator/audit',
  access: 'operator',
  lags: true,
  async handle(request, { database }) {
    const { query, now } = request
    const team = idGiven(query, 'team')
    const before = idGiven(query, 'before')
    const entries = await auditEntries(database, { team, before, limit: PAGE_SIZE + 1 })
    const { rows, next } = pageOf(request, entries, ({ id }) => id)
    return show({
      title: 'Audit',
      lead: 'Everything that a person changed, newest first. Entries are never edited.',
      sections: [
        {
          kind: 'filter',
          action: '/operator/audit',
          method: 'get',
          fields: filled(FILTER, query),
          submit: 'Filter',
          reset: query.size > 0 ? { href: '/operator/audit', label: 'All entries' } : null,
        },
        {
          kind: 'table',
          columns: [
            { label: 'When' },
            { label: 'Who' },
            { label: 'What' },
            { label: 'To what' },
            { label: 'Team' },
          ],
          rows: rows.map(({ created_at, actor, action, subject, detail, team_id }) => ({
            cells: [
              time(created_at, now),
              text(actor),
              text(action, { code: true }),
              text(subject, detail === '' ? {} : { detail }),
              text(team_id, team_id === null ? {} : { href: `/teams/${team_id}` }),
            ],
          })),
          empty: 'Nothing has been changed by a person yet.',
          next,
        },
      ],
    })
  },
}

export const auditPages = [audit]
