/** What the pages of messages have alike, whatever the channel: why one waits, what happened, and its ids. */
import { text } from '../drawn/cell.ts'
import type { Moment, Section } from '../drawn/section.ts'
import { waitingAlerts } from '../drawn/timeline.ts'
import type { TeamRequest } from '../served/page.ts'

type Message = {
  id: string
  http_request_id: string | null
  idempotency_key: string | null
  provider_message_id: string | null
}

/** Empty when nothing holds it up. */
export function whyItWaits(message: Parameters<typeof waitingAlerts>[0], request: TeamRequest): Section[] {
  const alerts = waitingAlerts(message, request)
  if (alerts.length === 0) return []
  return [{ kind: 'alerts', id: 'waiting', live: true, title: 'Why it waits', calm: '', alerts }]
}

export const whatHappened = (moments: Moment[]): Section => ({
  kind: 'timeline',
  id: 'timeline',
  live: true,
  title: 'What happened',
  moments,
  empty: 'Nothing has happened yet.',
})

/** Its ids, behind a press. */
export function idsOf(message: Message): Section {
  const all = [
    { label: 'ID', value: message.id },
    { label: 'Request ID', value: message.http_request_id },
    { label: 'Idempotency key', value: message.idempotency_key },
    { label: 'Provider ID', value: message.provider_message_id },
  ]
  const facts = all.flatMap(({ label, value }) =>
    value === null ? [] : [{ label, cell: text(value, { code: true, copy: true }) }],
  )
  return { kind: 'facts', title: 'IDs', fold: true, facts }
}
