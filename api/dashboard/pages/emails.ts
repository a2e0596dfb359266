/** Lists the emails of a team with a filter, also as CSV. */

import { EMAIL } from '../../../db/channels/email.sql.ts'
import { loadPauses } from '../../../db/delivery/requeue.ts'
import { findEnds } from '../../../db/messages/emails/ended.sql.ts'
import { lastResponses } from '../../../db/messages/emails/events.sql.ts'
import { countFailed, MAX_FAILURES } from '../../../db/messages/emails/failed.sql.ts'
import { searchEmails } from '../../../db/messages/emails/search.ts'
import type { ListedEmail } from '../../../db/messages/emails/view.ts'
import { isTooSlow } from '../../../db/postgres/pool.ts'
import { dayBefore } from '../../../db/stats/daily/fold.ts'
import { figuresSince } from '../../../db/stats/daily/stats.sql.ts'
import { responseCell } from '../components/bounces.ts'
import { text, time } from '../components/cell.ts'
import type { Link, Section } from '../components/section.ts'
import { compact, fromReplica, get } from '../server/builders.ts'
import { defineCsv } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { buildList, fromList, pageById, type RowReader, readBy } from '../server/list.ts'
import { show, type TeamRequest, teamPath } from '../server/page.ts'
import { recipientsCell } from './email-place.ts'
import { chosenActions, emailsChosenPages } from './emails-chosen.ts'
import {
  ALL_EMAILS,
  FAILED_STATUS,
  filter,
  findBroadcast,
  nameOfBroadcast,
  namesOfTemplates,
  readSearch,
  type TemplateNames,
  templateName,
  withinBroadcast,
} from './emails-filter.ts'
import { listedState, scheduledApart } from './scheduled.ts'
import { testEmailForm } from './test-email.ts'

/** Data of a list in addition to the rows of its emails, by their IDs. */
type Further = {
  names: TemplateNames
  ends: Awaited<ReturnType<typeof findEnds>>
  responses: ReadonlyMap<string, string>
  /** True if delivery is paused for all emails of the team, or some. */
  isPaused: boolean
}

/** Statuses whose list has the last response of each email. */
const EXPLAINED: readonly (string | null)[] = ['queued', 'bounced', FAILED_STATUS]

/** Shown for a queued email without a response while delivery is paused. */
const PAUSED = 'Delivery is paused'

const isDue = ({ scheduled_at: at }: ListedEmail, now: Date): boolean =>
  !at || Date.parse(at) <= now.getTime()

const toCells =
  (request: TeamRequest, { names, ends, responses, isPaused }: Further) =>
  (email: ListedEmail) => ({
    Status: listedState(email, request.now, ends.get(email.id)),
    Recipient: recipientsCell(email),
    Subject: text(email.subject || '(no subject)', {
      href: fromList(request, teamPath(request.team, 'emails', email.id)),
      detail: templateName(email, names),
    }),
    Problem:
      (isPaused || responses.size > 0) &&
      responseCell(responses.get(email.id) ?? (isPaused && isDue(email, request.now) ? PAUSED : '')),
    Accepted: time(email.created_at, request.now),
  })

/** @throws RequestError bad_request for an invalid filter. */
function createReader(request: TeamRequest, deps: PageDeps): RowReader<ListedEmail> {
  const search = readSearch(request)
  return async (place) =>
    searchEmails(
      { ...deps, tx: deps.database },
      withinBroadcast(search, await findBroadcast(search, deps)),
      place,
    )
}

/** Links to the same search among all emails, because single emails are the default. */
function withBroadcasts({ query, path }: TeamRequest): Link | undefined {
  if (query.has('kind')) return undefined
  const all = new URLSearchParams({ ...Object.fromEntries(filter.set(query)), ...ALL_EMAILS })
  return { href: `${path}?${all}`, label: 'Include emails of broadcasts' }
}

/** @param anyFailed false if no email of the team has failed. */
async function listSection(
  request: TeamRequest,
  deps: PageDeps,
  { names, anyFailed }: { names: TemplateNames; anyFailed: boolean },
): Promise<Section> {
  try {
    const page = await pageById(request, createReader(request, deps))
    const { query, team, now } = request
    const ends = await findEnds(deps.database, team.id, page.rows, anyFailed ? null : now)
    const status = query.get('status')
    const ids = EXPLAINED.includes(status) ? page.rows.map(({ id }) => id) : []
    const responses = await lastResponses(deps.database, team.id, ids)
    const isPaused =
      status === 'queued' &&
      ids.length > responses.size &&
      (await loadPauses(deps.database, EMAIL, { team_id: team.id })).length > 0
    return buildList(page, toCells(request, { names, ends, responses, isPaused }), {
      ...{ fresh: true, many: 'emails', main: 'Subject', grow: ['Recipient', 'Subject', 'Problem'] },
      filtered: filter.set(query).size > 0,
      nothing: 'No email matches.',
      none: 'No emails yet. Send the first one with the API.',
      start: { href: teamPath(request.team, 'integration'), label: 'How to send' },
      wider: withBroadcasts(request),
      picks: chosenActions(request),
    })
  } catch (error) {
    if (!isTooSlow(error)) throw error
    const text = 'Filter by recipient or ID, or choose a shorter time range.'
    const alert = { tone: 'warn', title: 'The search timed out', text } as const
    return { kind: 'alerts', alerts: [alert] }
  }
}

/**
 * Counts emails by status. Undefined if the counts would include broadcasts that the list leaves out, or if there are
 * too many failures to check.
 */
async function countByStatus(request: TeamRequest, deps: PageDeps) {
  const { team, query, now } = request
  const apart = query.get('kind') !== ALL_EMAILS.kind
  const from = dayBefore(now, 29)
  const failed = await countFailed(deps.database, team.id, { from, most: MAX_FAILURES, apart })
  if (failed === null) return undefined
  const figures = await figuresSince(deps.database, team.id, EMAIL, from)
  // The list of bounced emails includes skipped ones, which count as suppressed.
  const counted = figures.map((each) =>
    each.status === 'suppressed' ? { ...each, status: 'bounced' } : each,
  )
  const failedApart = [
    { status: 'queued', count: -failed },
    { status: FAILED_STATUS, count: failed },
  ]
  return scheduledApart(request, deps, EMAIL, [...counted, ...failedApart])
}

const list = get(fromReplica('viewer'), '/teams/:team/emails', async (request, deps) => {
  const { team, query, path } = request
  const names = await namesOfTemplates(request, deps)
  const figures = await countByStatus(request, deps)
  const anyFailed = figures?.some(({ status, count }) => status === FAILED_STATUS && count > 0) ?? true
  const section = await listSection(request, deps, { names, anyFailed })
  const isEmpty = section.kind === 'table' && section.rows.length === 0 && filter.set(query).size === 0
  return show({
    title: 'Emails',
    actions: {
      links: compact([
        { href: `${path}.csv?${filter.set(query)}`, label: 'Export as CSV', menu: true },
        team.role !== 'viewer' && {
          href: `${path}/all?${filter.set(query)}`,
          label: 'Bulk actions',
          menu: true,
        },
      ]),
    },
    sections: [
      ...filter.shown(request, {
        choices: { template: names, ...(await nameOfBroadcast(request, deps)) },
        figures,
      }),
      section,
      ...(await testEmailForm(request, deps.database, { folded: isEmpty || 'menu' })),
    ],
  })
})

const HEADER = [
  ...['id', 'accepted', 'status', 'from', 'to', 'subject', 'tags', 'template', 'key', 'provider_id'],
  ...['cc', 'bcc', 'ended'],
]

/** A mailbox list (RFC 5322). */
const mailboxes = (each: readonly string[]): string => each.join(', ')

type Ended = ListedEmail & { ended: string | undefined }

/** Reads rows with how they ended, if they were never sent. */
function endedReader(request: TeamRequest, deps: PageDeps): RowReader<Ended> {
  const read = createReader(request, deps)
  return async (place) => {
    const { rows, reached } = await readBy(read, place)
    const ends = await findEnds(deps.database, request.team.id, rows, null)
    return { rows: rows.map((email) => ({ ...email, ended: ends.get(email.id) })), reached }
  }
}

const csv = defineCsv<Ended>(
  '/teams/:team/emails.csv',
  { name: 'emails', action: 'email.export', header: HEADER, filter },
  async (request, deps) => {
    const names = await namesOfTemplates(request, deps)
    const findTemplateName = (id: string | null) => id && (names.get(id) ?? id)
    return {
      read: endedReader(request, deps),
      keyOf: ({ id }) => id,
      line: ({ tags, to_emails, cc_emails = [], bcc_emails = [], ...email }) => [
        ...[
          email.id,
          email.created_at,
          email.status,
          email.from_address,
          mailboxes(to_emails),
          email.subject,
        ],
        ...[
          tags.join(' '),
          findTemplateName(email.template_id),
          email.idempotency_key,
          email.provider_message_id,
        ],
        ...[mailboxes(cc_emails), mailboxes(bcc_emails), email.ended],
      ],
    }
  },
)

export const emailsPages = [list, csv, ...emailsChosenPages]
