/**
 * Lists the suppressed addresses of a team, also as CSV. Adds one, or lifts all that match a filter. The page
 * of a contact lifts a single one.
 */

import type { SuppressTransactional } from '../../../db/accounts/teams/suppress-transactional.ts'
import { readSuppressTransactional } from '../../../db/accounts/teams/teams.sql.ts'
import type { Cause } from '../../../db/audience/contacts/effect.ts'
import { SUPPRESSION_COLUMNS } from '../../../db/audience/import/csv.ts'
import {
  countSuppressed,
  type ListedAddress,
  suppressedAddresses,
} from '../../../db/audience/suppressions/addresses.sql.ts'
import { SUPPRESSIONS, suppressByHand } from '../../../db/audience/suppressions/by-hand.ts'
import { causeShown, statusBy } from '../../../db/audience/suppressions/cause.ts'
import { parseReason } from '../../../db/audience/suppressions/lift.ts'
import { beginBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { plural } from '../../../db/plural.ts'
import { seenNow } from '../../../db/postgres/snapshot.sql.ts'
import { responseCell } from '../components/bounces.ts'
import { text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { meaningIn } from '../components/sentence.ts'
import { noneLeft } from '../server/already.ts'
import { action, buildForm, compact, field, get, hidden, post } from '../server/builders.ts'
import { countedFields, readCounted } from '../server/confirmed-count.ts'
import { defineCsv } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, defineFilter, search } from '../server/filter.ts'
import { addressWith, buildList, fromList, pageById, type RowReader, wordParam } from '../server/list.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { backgroundJobAnswer } from './background-job.ts'
import { CAUSE_NAMES, causeName } from './contact-suppression.ts'

const addForm = ({ team }: TeamRequest): Section =>
  buildForm(teamPath(team, 'suppressions'), 'Suppress address', {
    title: 'Add a suppression',
    folded: true,
    fields: [
      field('email', 'Email address', {
        type: 'email',
        required: true,
        hint: 'It doesn’t have to be a contact.',
      }),
      field('as', 'Suppress as', {
        type: 'radios',
        options: [
          { value: 'bounced', label: 'bounced: the mailbox doesn’t exist', selected: true },
          {
            value: 'complained',
            label: 'complained: reported a message as spam, or asked not to be contacted again',
          },
        ],
      }),
      field('reason', 'Reason', { required: true, hint: 'Recorded in the audit log.' }),
    ],
  })

/** The causes in the filter, the most common first. */
const CAUSES_SHOWN = ['bounce', 'complaint', 'soft_bounces', 'manual'] as const satisfies readonly Cause[]

const filter = defineFilter({
  email: search('Part of the address', { short: 'Address' }),
  response: search('Part of the response', { short: 'Response' }),
  cause: { ...chips(CAUSES_SHOWN), labels: { ...CAUSE_NAMES, manual: 'other, added manually' } },
})

const createReader =
  ({ team, query }: TeamRequest, { database }: PageDeps): RowReader<ListedAddress> =>
  (place) =>
    suppressedAddresses(database, team.id, { ...filter.read(query), ...place })

const MAX_COUNTED = 10_000

const countWords = (count: number): string =>
  `${Math.min(count, MAX_COUNTED).toLocaleString('en-US')}${count > MAX_COUNTED ? '+' : ''}`

async function liftForm(request: TeamRequest, { database }: PageDeps): Promise<Section | false> {
  const { team, query } = request
  if (filter.set(query).size === 0) return false
  const seen = await seenNow(database)
  const count = await countSuppressed(database, team.id, filter.read(query), null)
  if (count === 0) return false
  const path = addressWith({ path: teamPath(team, 'suppressions', 'lift'), query: filter.set(query) }, {})
  return buildForm(path, `Lift ${plural(count, 'suppression')}`, {
    title: 'Lift all that match',
    folded: true,
    fields: [
      field('reason', 'Reason', { required: true, hint: 'Recorded in the audit log.' }),
      ...[...filter.set(query)].map(([name, value]) => hidden(name, value)),
      ...countedFields({ most: count, seen }),
    ],
  })
}

/** Describes which suppressions also stop transactional email. */
const STOPPED: Readonly<Record<SuppressTransactional, string>> = {
  nothing: 'Transactional email still goes to it.',
  bounces: 'Transactional email doesn’t go to it after a hard bounce.',
  bounces_and_complaints:
    'Transactional email still goes to addresses suppressed for soft bounces, but not to other suppressed addresses.',
}

const list = get('viewer', '/teams/:team/suppressions', async (request, deps) => {
  const { team, query, now } = request
  const page = await pageById(request, createReader(request, deps))
  const set = filter.set(query)
  const count = await countSuppressed(deps.database, team.id, {}, MAX_COUNTED + 1)
  const stops = await readSuppressTransactional(deps.database, team.id)
  const edits = team.role !== 'viewer'
  const isShown = (response: string) => set.has('response') || meaningIn(response) === ''
  return show({
    title: 'Suppressions',
    state: { text: countWords(count) },
    lead: `Broadcasts don’t go to a suppressed address. ${STOPPED[stops]}`,
    actions: {
      links: compact([
        edits && { href: teamPath(team, 'suppressions', 'import'), label: 'Import' },
        {
          href: `${teamPath(team, 'suppressions.csv')}${set.size > 0 ? `?${set}` : ''}`,
          label: 'Export as CSV',
          menu: true,
        },
      ]),
    },
    sections: compact([
      ...filter.shown(request),
      buildList(
        page,
        ({ email, since, response, ...stored }) => ({
          Address: text(email, { href: fromList(request, teamPath(team, 'contacts', email)) }),
          Cause: text(causeName(stored), { tone: 'plain' }),
          // In a card, a known response has a line only if the filter is for responses.
          Response: { ...responseCell(response), usual: stored.cause === 'bounce' && !isShown(response) },
          Since: time(since, now),
        }),
        {
          grow: ['Response'],
          filtered: set.size > 0,
          nothing: 'No suppressed address matches.',
          none: 'No address is suppressed.',
        },
      ),
      edits && addForm(request),
      edits && (await liftForm(request, deps)),
    ]),
  })
})

const csv = defineCsv<ListedAddress>(
  '/teams/:team/suppressions.csv',
  { name: 'suppressions', action: 'suppression.export', header: SUPPRESSION_COLUMNS, filter },
  (request, deps) => ({
    read: createReader(request, deps),
    keyOf: ({ id }) => id,
    line: (row) => {
      const { what, at, detail } = causeShown(row)
      return [row.email, statusBy(row.cause), what, at, detail]
    },
  }),
)

const add = action('editor', '/teams/:team/suppressions', async (by, { team, form }) => {
  const given = {
    email: form.get('email') ?? '',
    as: wordParam(form, 'as', SUPPRESSIONS) ?? 'bounced',
    reason: form.get('reason') ?? '',
  }
  const { email } = await suppressByHand(by, team.id, given)
  return redirect(teamPath(team, 'suppressions'), `${email} was suppressed.`)
})

const lift = post('editor', '/teams/:team/suppressions/lift', async ({ team, form, person }, deps) => {
  const { most, seen } = readCounted(form)
  const set = filter.set(form)
  const given = {
    filter: { ...filter.read(form), seen },
    reason: parseReason(form.get('reason') ?? ''),
    words: [...set].map(([name, value]) => `${name}: ${value}`).join(', '),
    most,
  }
  const wanted = { kind: 'suppression.lift' as const, given, total: most }
  const job = await beginBackgroundJob(deps, { ...wanted, team_id: team.id, actor: person.email })
  return backgroundJobAnswer(job, `${teamPath(team, 'suppressions')}?${set}`)
}).confirm(async ({ team, form }, { database }) => {
  const { most, seen } = readCounted(form)
  const count = await countSuppressed(database, team.id, { ...filter.read(form), seen }, most)
  if (count === 0) throw noneLeft()
  const many = plural(count, 'suppression')
  parseReason(form.get('reason') ?? '')
  return {
    question: `Lift ${many}?`,
    answer: `Lift ${many}`,
    warning: 'Contacts return to their previous status. These addresses can receive email again.',
  }
})

export const suppressionPages = [list, csv, add, lift]
