/** A team's suppressed contacts: who, why, since when; and the same as CSV. One is lifted on the contact's own page. */
import { suppressedContacts } from '../../../db/audience/suppressions/suppressions.sql.ts'
import { status, text, time } from '../drawn/cell.ts'
import { noteLook } from '../served/act.ts'
import type { PageDeps } from '../served/deps.ts'
import { addressWith, fromList, idGiven, onlyKnown, PAGE_SIZE, pageOf, wordGiven } from '../served/list.ts'
import { show, type TeamPage, type TeamRequest, teamPath } from '../served/page.ts'
import { csvFile } from './csv.ts'

const CAUSES = ['bounced', 'complained'] as const

const list: TeamPage = {
  method: 'GET',
  path: '/teams/:team/suppressions',
  access: 'viewer',
  lags: true,
  async handle(request, { database }) {
    const { team, query, now } = request
    const cause = wordGiven(query, 'status', CAUSES)
    const page = { status: cause, before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
    const { rows, next } = pageOf(request, await suppressedContacts(database, team.id, page), ({ id }) => id)
    const chip = (word: (typeof CAUSES)[number] | undefined, label: string) => ({
      label,
      href: addressWith(request, { status: word, before: undefined, newer: undefined }),
      current: cause === word,
    })
    const csv = cause === undefined ? '' : `?status=${cause}`
    return show({
      title: 'Suppressions',
      lead: 'Contacts that bounced for good or complained. Broadcasts leave them out; an email that your program sends to one still goes out.',
      actions: {
        kind: 'actions',
        links: [{ href: `${teamPath(team, 'suppressions.csv')}${csv}`, label: 'CSV' }],
      },
      sections: [
        {
          kind: 'chips',
          chips: [chip(undefined, 'All'), chip('bounced', 'bounced'), chip('complained', 'complained')],
        },
        {
          kind: 'table',
          columns: ['Status', 'Address', 'Cause', 'Since', 'In the server’s words'].map((label) => ({
            label,
          })),
          rows: rows.map(({ id, email, status: word, suppression_cause: because }) => ({
            key: id,
            cells: [
              status(word),
              text(email, { href: fromList(request, teamPath(team, 'contacts', email)) }),
              text(because?.what ?? null),
              because ? time(because.at, now) : text(null),
              text(because?.detail ?? null),
            ],
          })),
          next,
          empty: 'Nobody is suppressed.',
        },
      ],
    })
  },
}

/** How many are read at a time. */
const LOT = 500

async function* csvRows({ team, query }: TeamRequest, { database }: PageDeps) {
  const cause = wordGiven(query, 'status', CAUSES)
  for (let before: string | undefined; ; ) {
    const rows = await suppressedContacts(database, team.id, { status: cause, before, limit: LOT })
    for (const { email, status: word, suppression_cause: because } of rows)
      yield [email, word, because?.what ?? '', because?.at ?? '', because?.detail ?? '']
    before = rows.at(-1)?.id
    if (rows.length < LOT) return
  }
}

const csv: TeamPage = {
  method: 'GET',
  path: '/teams/:team/suppressions.csv',
  access: 'viewer',
  lags: true,
  async handle(request, deps) {
    onlyKnown(request.query, ['status'])
    const header = ['email', 'status', 'cause', 'since', 'words']
    const file = await csvFile('suppressions', header, csvRows(request, deps))
    await noteLook(request, deps, { action: 'suppression.export', subject: request.query.toString() })
    return file
  },
}

export const suppressionPages = [list, csv]
