/** Sections that the pages of messages share on all channels: why it waits, timeline, times and IDs. */
import type { Waiting } from '../../../db/delivery/waiting.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { text, time } from '../components/cell.ts'
import type { Alert, Moment, Section } from '../components/section.ts'
import { buildAlerts, buildFacts } from '../server/builders.ts'

type MessageIds = Pick<ShownEmail, 'id' | 'http_request_id' | 'idempotency_key' | 'provider_message_id'>
type MessageTimes = Pick<ShownEmail, 'created_at' | 'scheduled_at' | 'expires_at' | 'requeued_at'>

/** Builds the section with why a message waits or failed. While it is being sent, only an earlier response is news. */
export function whyItWaits(alerts: readonly Alert[], state: Waiting['state'] | undefined): Section[] {
  const shown = state === 'in_flight' ? alerts.filter(({ text }) => text) : alerts
  const title = state === 'failed' ? 'Last response' : 'Why it waits'
  return buildAlerts(shown, { id: 'waiting', live: true, title })
}

/** Builds the link to the content of a message, for an operator who isn't a member. */
export const closedContent = (title: string, href: string): Section => ({
  kind: 'actions',
  title,
  note: 'You aren’t a member of this team, so opening it is recorded in the audit log.',
  links: [{ href, label: 'Open the content' }],
})

export const whatHappened = (moments: Moment[]): Section => ({
  kind: 'timeline',
  id: 'timeline',
  live: true,
  title: 'What happened',
  moments,
  empty: 'Nothing has happened yet.',
})

export const messageTimes = (message: MessageTimes, now: Date) => ({
  Accepted: time(message.created_at, now),
  'Scheduled for': message.scheduled_at && time(message.scheduled_at, now),
  'Not sent after': message.expires_at && time(message.expires_at, now),
  'Queued again': message.requeued_at && time(message.requeued_at, now),
})

export function buildIds(message: MessageIds): Section {
  const shown = (id: string | null) => id !== null && text(id, { code: true, copy: true })
  const ids = {
    ID: shown(message.id),
    'Request ID': shown(message.http_request_id),
    'Idempotency key': shown(message.idempotency_key),
    'Provider ID': shown(message.provider_message_id),
  }
  return buildFacts(ids, { title: 'IDs', fold: true })
}
