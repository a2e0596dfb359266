/**
 * A team's suppressed contacts: who, why, since when; one added by hand; and the same as CSV. One is lifted on the
 * contact's own page.
 */

import { SUPPRESSION_COLUMNS } from '../../../db/audience/import/csv.ts'
import { SUPPRESSIONS, suppressByHand } from '../../../db/audience/suppressions/by-hand.ts'
import {
  type SuppressedRow,
  suppressedContacts,
  suppressedCount,
} from '../../../db/audience/suppressions/suppressions.sql.ts'
import { plural, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { act, compact, field, formOf, fromReplica, get } from '../server/builders.ts'
import { csvOf } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, defineFilter, search } from '../server/filter.ts'
import { fromList, listOf, pageById, type RowReader, wordParam } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'

const addForm = ({ team }: TeamRequest): Section =>
  formOf(
    teamPath(team, 'suppressions'),
    'Add a suppression',
    [
      field('email', 'Email address', {
        type: 'email',
        required: true,
        hint: 'An address that is not a contact yet becomes one.',
      }),
      field('as', 'Suppress as', {
        type: 'radios',
        options: [
          { value: 'bounced', label: 'bounced: the mailbox is gone', selected: true },
          {
            value: 'complained',
            label: 'complained: reported a message as spam, or asked never to get one again',
          },
        ],
      }),
      field('reason', 'Reason', { required: true, hint: 'It is kept in the audit trail.' }),
    ],
    { folded: true },
  )

const filter = defineFilter({ email: search('Part of the address'), status: chips(SUPPRESSIONS) })

const readerOf =
  ({ team, query }: TeamRequest, { database }: PageDeps): RowReader<SuppressedRow> =>
  (place) =>
    suppressedContacts(database, team.id, { ...filter.read(query), ...place })

/** Contacts that are counted at most. */
const MAX_COUNTED = 10_000

const countWords = (count: number): string =>
  count > MAX_COUNTED ? `More than ${plural(MAX_COUNTED, 'contact')}.` : `${plural(count, 'contact')}.`

const list = get(fromReplica('viewer'), '/teams/:team/suppressions', async (request, deps) => {
  const { team, query, now } = request
  const page = await pageById(request, readerOf(request, deps))
  const set = filter.set(query)
  const count = await suppressedCount(deps.database, team.id, MAX_COUNTED + 1)
  return show({
    title: 'Suppressions',
    lead: `${countWords(count)} The list has those that bounced for good or complained, and those that you have added. Broadcasts leave them out; an email that your program sends to one still goes out.`,
    actions: {
      links: compact([
        team.role !== 'viewer' && { href: teamPath(team, 'suppressions', 'import'), label: 'Import' },
        { href: `${teamPath(team, 'suppressions.csv')}${set.size > 0 ? `?${set}` : ''}`, label: 'CSV' },
      ]),
    },
    sections: compact([
      ...filter.shown(request),
      listOf(
        page,
        ({ email, status: word, suppression_cause: because }) => ({
          Status: status(word),
          Address: text(email, { href: fromList(request, teamPath(team, 'contacts', email)) }),
          Cause: text(because?.what ?? null),
          Since: because ? time(because.at, now) : text(null),
          Detail: text(because?.detail ?? null),
        }),
        { filtered: set.size > 0, nothing: 'No suppressed contact matches.', none: 'Nobody is suppressed.' },
      ),
      team.role !== 'viewer' && addForm(request),
    ]),
  })
})

const csv = csvOf<SuppressedRow>(
  '/teams/:team/suppressions.csv',
  { name: 'suppressions', action: 'suppression.export', header: SUPPRESSION_COLUMNS, filter },
  (request, deps) => ({
    read: readerOf(request, deps),
    keyOf: ({ id }) => id,
    line: (row) => {
      const { what, at, detail } = row.suppression_cause ?? {}
      return [row.email, row.status, what, at, detail]
    },
  }),
)

const add = act('editor', '/teams/:team/suppressions', async (by, { team, form }) => {
  const given = {
    email: form.get('email') ?? '',
    as: wordParam(form, 'as', SUPPRESSIONS) ?? 'bounced',
    reason: form.get('reason') ?? '',
  }
  const { email } = await suppressByHand(by, team.id, given)
  return redirect(teamPath(team, 'suppressions'), `${email} was suppressed.`)
})

export const suppressionPages = [list, csv, add]
