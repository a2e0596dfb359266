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
import type { PageDeps } from '../served/deps.ts'
import { addressWith, fromList, idGiven, onlyKnown, PAGE_SIZE, pageOf, wordGiven } from '../served/list.ts'
import { act, get, lagging, some } from '../served/made.ts'
import { redirect, show, type TeamRequest, teamPath } from '../served/page.ts'
import { csvFile } from './csv.ts'

const addForm = ({ team }: TeamRequest): Section => ({
  kind: 'form',
  folded: true,
  action: teamPath(team, 'suppressions'),
  method: 'post',
  submit: 'Add a suppression',
  fields: [
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
})

const list = get(lagging('viewer'), '/teams/:team/suppressions', async (request, { database }) => {
  const { team, query, now } = request
  const cause = wordGiven(query, 'status', SUPPRESSIONS)
  const page = { status: cause, before: idGiven(query, 'before'), limit: PAGE_SIZE + 1 }
  const { rows, next } = pageOf(request, await suppressedContacts(database, team.id, page), ({ id }) => id)
  const chip = (word: (typeof SUPPRESSIONS)[number] | undefined, label: string) => ({
    label,
    href: addressWith(request, { status: word, before: undefined, newer: undefined }),
    current: cause === word,
  })
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
      {
        kind: 'chips',
        chips: [chip(undefined, 'All'), chip('bounced', 'bounced'), chip('complained', 'complained')],
      },
      {
        kind: 'table',
        columns: ['Status', 'Address', 'Cause', 'Since', 'Detail'].map((label) => ({
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
      team.role !== 'viewer' && addForm(request),
    ]),
  })
})

/** How many are read at a time. */
const LOT = 500

async function* csvRows({ team, query }: TeamRequest, { database }: PageDeps) {
  const cause = wordGiven(query, 'status', SUPPRESSIONS)
  for (let before: string | undefined; ; ) {
    const rows = await suppressedContacts(database, team.id, { status: cause, before, limit: LOT })
    for (const { email, status: word, suppression_cause: because } of rows)
      yield [email, word, because?.what ?? '', because?.at ?? '', because?.detail ?? '']
    before = rows.at(-1)?.id
    if (rows.length < LOT) return
  }
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
