/**
 * A team's suppressed contacts: who, why, since when; one added by hand; and the same as CSV. One is lifted on the
 * contact's own page.
 */

import { SUPPRESSION_COLUMNS } from '../../../db/audience/import/csv.ts'
import { SUPPRESSIONS, suppressByHand } from '../../../db/audience/suppressions/by-hand.ts'
import { suppressedContacts } from '../../../db/audience/suppressions/suppressions.sql.ts'
import { status, text, time } from '../drawn/cell.ts'
import type { Section } from '../drawn/section.ts'
import { noteLook } from '../served/act.ts'
import { wordChips } from '../served/chips.ts'
import { csvFile, rowsBy } from '../served/csv.ts'
import type { PageDeps } from '../served/deps.ts'
import { fromList, idGiven, onlyKnown, PAGE_SIZE, pageOf, wordGiven } from '../served/list.ts'
import { act, formOf, get, lagging, some, tableOf } from '../served/made.ts'
import { redirect, show, type TeamRequest, teamPath } from '../served/page.ts'

const addForm = ({ team }: TeamRequest): Section =>
  formOf(
    teamPath(team, 'suppressions'),
    'Add a suppression',
    [
      {
        name: 'email',
        label: 'Email address',
        type: 'email',
        required: true,
        hint: 'An address that is no contact yet becomes one.',
      },
      {
        name: 'as',
        label: 'Suppress as',
        type: 'radios',
        options: [
          { value: 'bounced', label: 'bounced: the mailbox is gone', selected: true },
          { value: 'complained', label: 'complained: reported as spam, or asked never to be written to' },
        ],
      },
      { name: 'reason', label: 'Reason', type: 'text', required: true, hint: 'Kept in the audit trail.' },
    ],
    { folded: true },
  )

const list = get(lagging('viewer'), '/teams/:team/suppressions', async (request, { database }) => {
  const { team, query, now } = request
  const cause = wordGiven(query, 'status', SUPPRESSIONS)
  const page = { status: cause, before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
  const { rows, next } = pageOf(request, await suppressedContacts(database, team.id, page), ({ id }) => id)
  const csv = cause === undefined ? '' : `?status=${cause}`
  return show({
    title: 'Suppressions',
    lead: 'Contacts that bounced for good or complained, and those that you have added. Broadcasts leave them out; an email that your program sends to one still goes out.',
    actions: {
      kind: 'actions',
      links: some([
        team.role !== 'viewer' && { href: teamPath(team, 'suppressions', 'import'), label: 'Import' },
        { href: `${teamPath(team, 'suppressions.csv')}${csv}`, label: 'CSV' },
      ]),
    },
    sections: some([
      { kind: 'chips', chips: wordChips(request, 'status', SUPPRESSIONS) },
      tableOf(
        rows,
        ({ email, status: word, suppression_cause: because }) => ({
          Status: status(word),
          Address: text(email, { href: fromList(request, teamPath(team, 'contacts', email)) }),
          Cause: text(because?.what ?? null),
          Since: because ? time(because.at, now) : text(null),
          Detail: text(because?.detail ?? null),
        }),
        {
          keyOf: ({ id }) => id,
          next,
          empty: 'Nobody is suppressed.',
        },
      ),
      team.role !== 'viewer' && addForm(request),
    ]),
  })
})

async function* csvRows({ team, query }: TeamRequest, { database }: PageDeps) {
  const cause = wordGiven(query, 'status', SUPPRESSIONS)
  const read = async (before: string | undefined, limit: number) => ({
    rows: await suppressedContacts(database, team.id, { status: cause, before, limit }),
  })
  for await (const { email, status: word, suppression_cause: because } of rowsBy(read, ({ id }) => id))
    yield [email, word, because?.what ?? '', because?.at ?? '', because?.detail ?? '']
}

const csv = get(lagging('viewer'), '/teams/:team/suppressions.csv', async (request, deps) => {
  onlyKnown(request.query, ['status'])
  const file = await csvFile('suppressions', SUPPRESSION_COLUMNS, csvRows(request, deps))
  await noteLook(request, deps, { action: 'suppression.export', subject: request.query.toString() })
  return file
})

const add = act('editor', '/teams/:team/suppressions', async (by, { team, form }) => {
  const given = {
    email: form.get('email') ?? '',
    as: wordGiven(form, 'as', SUPPRESSIONS) ?? 'bounced',
    reason: form.get('reason') ?? '',
  }
  const { email } = await suppressByHand(by, team.id, given)
  return redirect(teamPath(team, 'suppressions'), `${email} is suppressed.`)
})

export const suppressionPages = [list, csv, add]
