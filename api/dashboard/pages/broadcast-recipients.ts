/**
 * Lists the recipients of a broadcast with their outcome, and the skipped contacts with the reason, also as
 * CSV.
 */

import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import {
  type Reached,
  reachedBy,
  type Skipped,
  skippedBy,
} from '../../../db/messages/broadcasts/recipients.sql.ts'
import type { EmailStatus } from '../../../db/messages/emails/status.ts'
import { status, text, time } from '../components/cell.ts'
import type { Actions } from '../components/section.ts'
import { buildTable, fromReplica, get } from '../server/builders.ts'
import { defineCsv } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, defineFilter } from '../server/filter.ts'
import { pageBy, type RowReader } from '../server/list.ts'
import { show, type TeamRequest, teamPath } from '../server/page.ts'
import { broadcastPath } from './broadcast-sections.ts'

const toKey = ({ team, params }: TeamRequest<'id'>) => ({ team_id: team.id, broadcast_id: params.id })

/** Returns the statuses that count as having reached this one, like the stats of a broadcast. */
function listStatuses(reached: EmailStatus | undefined): readonly EmailStatus[] | undefined {
  if (reached === 'sent') return EMAIL_LADDER.filter((status) => status !== 'queued')
  if (reached === 'delivered') return ['delivered', 'opened', 'clicked', 'complained']
  if (reached === 'opened') return ['opened', 'clicked']
  return reached && [reached]
}

const filter = defineFilter({ status: chips(EMAIL_LADDER) })
/** A filter without parts. */
const ALL = defineFilter({})

const contactOf = ({ contact_id }: { contact_id: string }): string => contact_id
const BY_CONTACT = { keyOf: contactOf, way: 'on' } as const

const reachedFor =
  (request: TeamRequest<'id'>, { database }: PageDeps): RowReader<Reached> =>
  ({ before: after, limit }) =>
    reachedBy(database, toKey(request), listStatuses(filter.read(request.query).status), { after, limit })

const skippedFor =
  (request: TeamRequest<'id'>, { database }: PageDeps): RowReader<Skipped> =>
  ({ before: after, limit }) =>
    skippedBy(database, toKey(request), { after, limit })

const loadBroadcast = ({ team, params }: TeamRequest<'id'>, { database }: PageDeps) =>
  requireBroadcast(database, team.id, params.id)

/** Returns the link to the CSV file of a list, unless it is empty. */
const exported = ({ rows, first }: { rows: readonly unknown[]; first: boolean }, href: string): Actions => ({
  links: rows.length === 0 && first ? [] : [{ href, label: 'Export as CSV' }],
})

const reached = get(fromReplica('viewer'), '/teams/:team/broadcasts/:id/people', async (request, deps) => {
  const { team, query, now } = request
  const { name } = await loadBroadcast(request, deps)
  const { status: word } = filter.read(query)
  const page = await pageBy(request, reachedFor(request, deps), BY_CONTACT)
  return show({
    title: word ? `Recipients: ${word}` : 'Recipients',
    back: { href: broadcastPath(request), label: name },
    actions: exported(page, `${broadcastPath(request, 'people.csv')}?${filter.set(query)}`),
    sections: [
      ...filter.shown(request),
      buildTable(
        page.rows,
        ({ id, email, status: stands, detail, created_at }) => ({
          Status: status(stands),
          Address: text(email, { href: teamPath(team, 'contacts', email) }),
          'Last response': text(detail),
          Created: time(created_at, now),
          '': text('The email', { href: teamPath(team, 'emails', id) }),
        }),
        { main: 'Address', grow: ['Address', 'Last response'], next: page.next, empty: 'No recipients.' },
      ),
    ],
  })
})

const SKIP_WORDS: Readonly<Record<string, string>> = {
  variables: 'a variable had no value',
  unsubscribed: 'unsubscribed',
  suppressed: 'suppressed',
  left_topic: 'left the topic',
  deleted: 'the contact was deleted',
  cancelled: 'the broadcast was cancelled',
}

const skipped = get(fromReplica('viewer'), '/teams/:team/broadcasts/:id/skips', async (request, deps) => {
  const { team, now } = request
  const { name } = await loadBroadcast(request, deps)
  const page = await pageBy(request, skippedFor(request, deps), BY_CONTACT)
  return show({
    title: 'Skipped contacts',
    lead: 'Contacts in the audience that the broadcast skipped, and why.',
    back: { href: broadcastPath(request), label: name },
    actions: exported(page, broadcastPath(request, 'skips.csv')),
    sections: [
      buildTable(
        page.rows,
        ({ email, reason, detail, at }) => ({
          Address: text(email, { href: teamPath(team, 'contacts', email) }),
          Why: text(SKIP_WORDS[reason] ?? reason, { detail }),
          When: time(at, now),
        }),
        { grow: ['Address', 'Why'], next: page.next, empty: 'No contacts were skipped.' },
      ),
    ],
  })
})

const reachedCsv = defineCsv<Reached>(
  '/teams/:team/broadcasts/:id/people.csv',
  {
    name: 'broadcast-people',
    action: 'broadcast.export',
    header: ['email', 'status', 'detail', 'created_at', 'email_id', 'contact_id'],
    filter,
  },
  async (request, deps) => ({
    subject: (await loadBroadcast(request, deps)).id,
    read: reachedFor(request, deps),
    keyOf: contactOf,
    line: (row) => [row.email, row.status, row.detail, row.created_at, row.id, row.contact_id],
  }),
)

const skippedCsv = defineCsv<Skipped>(
  '/teams/:team/broadcasts/:id/skips.csv',
  {
    name: 'broadcast-skips',
    action: 'broadcast.export',
    header: ['email', 'reason', 'detail', 'at', 'contact_id'],
    filter: ALL,
  },
  async (request, deps) => ({
    subject: (await loadBroadcast(request, deps)).id,
    read: skippedFor(request, deps),
    keyOf: contactOf,
    line: (row) => [row.email, row.reason, row.detail, row.at, row.contact_id],
  }),
)

export const broadcastPeoplePages = [reached, skipped, reachedCsv, skippedCsv]
