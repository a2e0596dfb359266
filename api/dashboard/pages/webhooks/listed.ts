/** Cells of events in lists: their status, the last response with the next attempt, and the recipient. */

import { CHANNEL_FACTS } from '../../../../db/channels/list.ts'
import { WEBHOOK } from '../../../../db/channels/webhook.sql.ts'
import { findWebhookEnd, type WebhookEnd } from '../../../../db/messages/webhooks/ends.ts'
import {
  type ListedWebhook,
  type OutcomeRow,
  readOutcomes,
} from '../../../../db/messages/webhooks/listing.sql.ts'
import { dueTimes } from '../../../../db/queue/jobs.sql.ts'
import { type Cell, formatAge, status, text, time } from '../../components/cell.ts'
import type { PageDeps } from '../../server/deps.ts'
import { type PageTeam, type TeamRequest, teamPath } from '../../server/page.ts'
import { answerCell } from './parts.ts'

/** Data of a list in addition to its rows, by their IDs. */
type Attempted = { outcomes: ReadonlyMap<string, OutcomeRow>; due: ReadonlyMap<string, string> }

export async function loadAttempted(
  rows: readonly ListedWebhook[],
  { team }: TeamRequest,
  { database }: PageDeps,
): Promise<Attempted> {
  const outcomes = await readOutcomes(
    database,
    team.id,
    rows.map(({ id }) => id),
  )
  const queued = rows.flatMap(({ id, status: word }) => (word === 'queued' ? [id] : []))
  return {
    outcomes: new Map(outcomes.map((each) => [each.id, each])),
    due: queued.length === 0 ? new Map() : await dueTimes(database, WEBHOOK.job, queued),
  }
}

/** Why a failed event isn't attempted again. */
const ENDS: Readonly<Record<WebhookEnd, string>> = {
  disabled: 'webhook disabled',
  gone: 'the server returned 410',
  rejected: 'rejected by the server',
  exhausted: 'no attempts left',
}

/** Describes why a failed event isn't attempted again. @param outcome of its last attempt. */
export const describeEnd = (outcome: OutcomeRow | undefined): string =>
  ENDS[findWebhookEnd(outcome?.status ?? null, outcome?.is_disabled === true)]

/** Describes the next attempt of an event, or the reason for the end of its attempts. */
function nextWords({ id, status: word }: ListedWebhook, { outcomes, due }: Attempted, now: Date) {
  if (word === 'delivered') return undefined
  if (word === 'failed') return describeEnd(outcomes.get(id))
  const at = due.get(id)
  return at === undefined || Date.parse(at) <= now.getTime() ? 'due now' : `next ${formatAge(at, now)}`
}

function responseCell(each: ListedWebhook, attempted: Attempted, now: Date): Cell {
  const outcome = attempted.outcomes.get(each.id)
  const code: Cell = outcome?.is_attempted ? answerCell(outcome.status) : text('not sent')
  const [detail, usual] = [nextWords(each, attempted, now), each.status === 'delivered']
  // The status has the color.
  return { ...code, tone: undefined, detail, usual }
}

/** Returns the path of the message or contact of an event. */
export function subjectPath(
  team: PageTeam,
  { type, subject_id: id }: Pick<ListedWebhook, 'type' | 'subject_id'>,
  recipient: string | null,
): string | undefined {
  const kind = type.split('.', 1)[0]
  const channel = CHANNEL_FACTS.find(({ name }) => name === kind)
  if (channel && id !== null) return teamPath(team, channel.path, id)
  return kind === 'contact' && recipient !== null ? teamPath(team, 'contacts', recipient) : undefined
}

export function listedCells(each: ListedWebhook, attempted: Attempted, { team, now }: TeamRequest) {
  return {
    Status: status(each.status),
    Response: responseCell(each, attempted, now),
    Event: text(each.type, { href: teamPath(team, 'webhooks', each.endpoint_id, 'events', each.event_id) }),
    Recipient: text(each.recipient, { href: subjectPath(team, each, each.recipient) }),
    Created: time(each.created_at, now),
  }
}
