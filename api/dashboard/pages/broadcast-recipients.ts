/** Lists the recipients of a broadcast with their outcome, and the skipped contacts with the reason, also as CSV. */

import { propertiesOf } from '../../../db/audience/contacts/contacts.sql.ts'
import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { matchingOf } from '../../../db/messages/broadcasts/audience.sql.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import {
  type Reached,
  reachedBy,
  type Skipped,
  skippedBy,
} from '../../../db/messages/broadcasts/recipients.sql.ts'
import { isEnded, requiredSlots } from '../../../db/messages/broadcasts/resend.ts'
import { type BroadcastView, broadcastView } from '../../../db/messages/broadcasts/view.ts'
import { findEnds } from '../../../db/messages/emails/ended.sql.ts'
import { countFailed, MAX_FAILURES } from '../../../db/messages/emails/failed.sql.ts'
import type { EmailStatus } from '../../../db/messages/emails/status.ts'
import { parseAddress } from '../../../db/validation/address.ts'
import { responseCell } from '../components/bounces.ts'
import { type Cell, status, text, time } from '../components/cell.ts'
import { findName } from '../components/names.ts'
import type { Chip, Link, Section } from '../components/section.ts'
import { findLacking, skipCell } from '../components/skips.ts'
import { buildTable, compact, fromReplica, get } from '../server/builders.ts'
import { chipCount } from '../server/chips.ts'
import { defineCsv } from '../server/csv.ts'
import type { PageDeps } from '../server/deps.ts'
import { chips, defineFilter } from '../server/filter.ts'
import { pageBy, type RowReader } from '../server/list.ts'
import { show, type TeamRequest, teamPath } from '../server/page.ts'
import { broadcastPath, SEND_TO_REST } from './broadcast-sections.ts'
import { FAILED_INCLUDES, FAILED_STATUS } from './emails-filter.ts'

const toKey = ({ team, params }: TeamRequest<'id'>) => ({ team_id: team.id, broadcast_id: params.id })

const OUTCOMES = [...EMAIL_LADDER, FAILED_STATUS] as const

/** Returns the statuses that count as having reached this one, like the stats of a broadcast. */
function listStatuses(reached: EmailStatus): readonly EmailStatus[] {
  if (reached === 'sent') return EMAIL_LADDER.filter((status) => status !== 'queued')
  if (reached === 'delivered') return ['delivered', 'opened', 'clicked', 'complained']
  if (reached === 'opened') return ['opened', 'clicked']
  return [reached]
}

/** Converts the value of a chip to the selected emails. Queued emails exclude failed ones. */
function toOutcomes(word: (typeof OUTCOMES)[number] | undefined) {
  if (word === undefined) return undefined
  if (word === FAILED_STATUS) return { statuses: ['queued'], failed: true } as const
  return { statuses: listStatuses(word), failed: word === 'queued' ? false : undefined }
}

/** The word for skipped contacts among the statuses. They have their own page. */
const SKIPPED = 'skipped'

const filter = defineFilter({ status: { ...chips(OUTCOMES, FAILED_INCLUDES), any: 'All emails' } })
const ALL = defineFilter({})

const contactOf = ({ contact_id }: { contact_id: string }): string => contact_id
const BY_CONTACT = { keyOf: contactOf, way: 'on' } as const

type Recipient = Reached & { ended: string | undefined }

/** Reads rows with how their emails ended, if they were queued and never sent. */
const reachedFor =
  (request: TeamRequest<'id'>, { database }: PageDeps): RowReader<Recipient> =>
  async ({ before: after, limit }) => {
    const outcomes = toOutcomes(filter.read(request.query).status)
    const rows = await reachedBy(database, toKey(request), outcomes, { after, limit })
    const queued = rows.filter(({ status }) => status === 'queued')
    const ends = await findEnds(database, request.team.id, queued, null)
    return rows.map((row) => ({ ...row, ended: ends.get(row.id) }))
  }

const skippedFor =
  (request: TeamRequest<'id'>, { database }: PageDeps): RowReader<Skipped> =>
  ({ before: after, limit }) =>
    skippedBy(database, toKey(request), { after, limit })

const loadBroadcast = ({ team, params }: TeamRequest<'id'>, { database }: PageDeps) =>
  requireBroadcast(database, team.id, params.id)

const loadView = async (request: TeamRequest<'id'>, deps: PageDeps): Promise<BroadcastView> =>
  broadcastView(deps.database, await loadBroadcast(request, deps))

/** Returns the link to the CSV file of a list, unless it is empty. */
const exported = ({ rows, first }: { rows: readonly unknown[]; first: boolean }, href: string): Link[] =>
  rows.length === 0 && first ? [] : [{ href, label: 'Export as CSV' }]

type Counts = ReadonlyMap<string, number>

/**
 * Returns the number of emails by the chip of their outcome, like the stats of the broadcast. Null if there are too
 * many failures to check.
 */
async function countOutcomes(
  { id, team_id, created_at, stats }: BroadcastView,
  { database }: PageDeps,
): Promise<Counts | null> {
  const among = { from: new Date(created_at), most: MAX_FAILURES, broadcast_id: id }
  const failed = await countFailed(database, team_id, among)
  if (failed === null) return null
  const { made, queued, delivered, opened, clicked, bounced, complained } = stats
  return new Map(
    Object.entries({
      ...{ '': made, clicked, bounced, complained, failed },
      // The stats are up to a minute old.
      queued: Math.max(0, queued - failed),
      sent: made - queued,
      delivered: delivered + opened + clicked + complained,
      opened: opened + clicked,
    }),
  )
}

/** True unless the chip leads to an empty list. The first one is always useful. */
const isUseful = ({ count, current }: Chip, index: number): boolean =>
  index === 0 || current === true || count !== '0'

function outcomeChips(
  { stats }: BroadcastView,
  counts: Counts | null,
  request: TeamRequest<'id'>,
  isSkips = false,
): Section[] {
  const skips = {
    ...{ label: SKIPPED, href: broadcastPath(request, 'skips'), current: isSkips },
    count: chipCount(stats.skipped),
  }
  const query = isSkips ? new URLSearchParams({ status: SKIPPED }) : request.query
  const path = broadcastPath(request, 'people')
  const sections = filter.shown({ ...request, path, query }, { counts, others: [skips] })
  return sections.map((section) =>
    section.kind === 'chips' ? { ...section, chips: section.chips.filter(isUseful) } : section,
  )
}

/** Returns the identity of an address, or '' after an erasure. */
const readIdentity = (email: string): string => parseAddress(email)?.identity ?? ''

type Properties = Awaited<ReturnType<typeof propertiesOf>>

/** Returns the properties of contacts, by identity. */
const loadProperties = (
  rows: readonly { email: string }[],
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<Properties> => {
  const identities = rows.map(({ email }) => readIdentity(email))
  return propertiesOf(database, team.id, identities, false)
}

const findNames = (properties: Properties): ReadonlyMap<string, string> =>
  new Map([...properties].map(([identity, own]) => [identity, findName(own) ?? '']))

export const loadNames = async (...of: Parameters<typeof loadProperties>) =>
  findNames(await loadProperties(...of))

/** Builds the cell with a contact: the name, and the address below it. */
export function contactCell(email: string, names: ReadonlyMap<string, string>, { team }: TeamRequest): Cell {
  const name = names.get(readIdentity(email))
  return text(name || email, {
    href: email === '' ? undefined : teamPath(team, 'contacts', email),
    detail: name ? email : undefined,
  })
}

/** Describes an empty list. Retention deletes old emails and keeps the stats. */
function describeNone(counts: Counts | null, status: string | undefined): string {
  const count = counts?.get(status ?? '') ?? 0
  if (count > 0) return 'These emails have been deleted. Their counts are kept.'
  return status === undefined ? 'No recipients yet.' : 'No recipient matches.'
}

const reached = get(fromReplica('viewer'), '/teams/:team/broadcasts/:id/people', async (request, deps) => {
  const { team, query, now } = request
  const view = await loadView(request, deps)
  const page = await pageBy(request, reachedFor(request, deps), BY_CONTACT)
  const names = await loadNames(page.rows, request, deps)
  const counts = await countOutcomes(view, deps)
  const hasResponses = page.rows.some(({ detail }) => detail)
  return show({
    title: 'Recipients',
    back: { href: broadcastPath(request), label: view.name },
    actions: { links: exported(page, `${broadcastPath(request, 'people.csv')}?${filter.set(query)}`) },
    sections: [
      ...outcomeChips(view, counts, request),
      buildTable(
        page.rows,
        ({ id, email, status: stands, ended, detail, created_at }) => ({
          Status: status(ended ?? stands),
          Contact: { ...contactCell(email, names, request), href: teamPath(team, 'emails', id) },
          'Last response': hasResponses && (detail ? responseCell(detail) : { text: '' }),
          Accepted: time(created_at, now),
        }),
        {
          main: 'Contact',
          grow: [hasResponses ? 'Last response' : 'Contact'],
          next: page.next,
          empty: describeNone(counts, filter.read(query).status),
          start:
            filter.read(query).status === 'bounced'
              ? { href: teamPath(team, 'suppressions'), label: 'Suppressed addresses' }
              : undefined,
        },
      ),
    ],
  })
})

const skipped = get(fromReplica('viewer'), '/teams/:team/broadcasts/:id/skips', async (request, deps) => {
  const row = await loadBroadcast(request, deps)
  const view = await broadcastView(deps.database, row)
  const page = await pageBy(request, skippedFor(request, deps), BY_CONTACT)
  const properties = await loadProperties(page.rows, request, deps)
  const slots = await requiredSlots(deps.database, row)
  const matching = await matchingOf(deps.database, row, [...properties.keys()])
  const names = findNames(properties)
  const lacksOf = (identity: string) => findLacking(slots, properties.get(identity))
  const isSendable = isEnded(row) && request.team.role !== 'viewer'
  const isAnyLeft = isSendable && [...matching.keys()].some((identity) => lacksOf(identity).length === 0)
  return show({
    title: 'Skipped contacts',
    lead: 'These contacts were in the audience, but the broadcast wasn’t sent to them.',
    back: { href: broadcastPath(request), label: view.name },
    actions: {
      links: compact<Link>([
        isAnyLeft && { href: broadcastPath(request, 'again'), label: SEND_TO_REST, main: true },
        exported(page, broadcastPath(request, 'skips.csv')),
      ]),
    },
    sections: [
      ...outcomeChips(view, await countOutcomes(view, deps), request, true),
      buildTable(
        page.rows,
        (skip) => {
          const identity = readIdentity(skip.email)
          return {
            Contact: contactCell(skip.email, names, request),
            Why: skipCell(skip, { matches: matching.has(identity), lacks: lacksOf(identity) }),
          }
        },
        {
          grow: ['Contact', 'Why'],
          next: page.next,
          empty:
            view.stats.skipped > 0
              ? 'These entries have been deleted. Their count is kept.'
              : 'No contacts were skipped.',
        },
      ),
    ],
  })
})

const reachedCsv = defineCsv<Recipient>(
  '/teams/:team/broadcasts/:id/people.csv',
  {
    name: 'broadcast-people',
    action: 'broadcast.export',
    header: ['email', 'status', 'detail', 'created_at', 'email_id', 'contact_id', 'ended'],
    filter,
  },
  async (request, deps) => ({
    subject: (await loadBroadcast(request, deps)).id,
    read: reachedFor(request, deps),
    keyOf: contactOf,
    line: (row) => [row.email, row.status, row.detail, row.created_at, row.id, row.contact_id, row.ended],
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
