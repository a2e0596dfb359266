/** Counts why emails bounced, by the responses of servers. Pure. */
import type { Bounce } from '../../../db/messages/emails/bounces.sql.ts'
import type { FailureSubject } from '../../../db/validation/failure-table.ts'
import { classifyFailure } from '../../../db/validation/failures.ts'
import { headed, number } from './cell.ts'
import type { Section } from './section.ts'
import { meaningIn } from './sentence.ts'

/** Maximum number of bounced emails that are counted. */
export const MAX_BOUNCES = 500

const SUPPRESSED = 'the address is suppressed'
const REASONS: Readonly<Record<FailureSubject, string>> = {
  address: 'the mailbox does not exist',
  mailbox_full: 'the mailbox is full',
  policy: 'the server rejected it because of its policy',
  rate: 'the server limits how much it accepts',
  message: 'the server does not accept the message',
  sender: 'the server does not accept the sender',
  route: 'no mail server was found for the domain',
  expired: 'delivery timed out',
  unknown: 'other reasons',
}

/** Returns the meaning of a response's code, otherwise the reason that its text gives. */
const reasonOf = ({ kind, detail }: Bounce): string =>
  kind === 'suppressed' ? SUPPRESSED : meaningIn(detail) || REASONS[classifyFailure({ reply: detail }).about]

/** Builds the section, most common reason first. Empty without bounces. */
export function bounceSection(bounces: readonly Bounce[], note?: string): Section[] {
  const counts = new Map<string, number>()
  for (const bounce of bounces) {
    const reason = reasonOf(bounce)
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const tiles = [...counts]
    .sort(([reason, one], [other, more]) => more - one || reason.localeCompare(other))
    .map(([reason, count]) => ({ label: headed(reason), value: number(count).text }))
  const counted = bounces.length < MAX_BOUNCES ? note : `${number(MAX_BOUNCES).text} of them were counted.`
  return tiles.length === 0
    ? []
    : [{ kind: 'tiles', id: 'bounces', live: true, title: 'Why emails bounced', note: counted, tiles }]
}
