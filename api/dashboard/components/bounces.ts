/** Counts why emails bounced, by the status codes of responses. Skipped emails aren't counted. Pure. */
import type { Bounce } from '../../../db/messages/emails/bounces.sql.ts'
import { type Cell, headed, number, text } from './cell.ts'
import type { Section } from './section.ts'
import { meaningIn } from './sentence.ts'

/** Maximum number of bounced emails that are counted. */
export const MAX_BOUNCES = 500

/** Builds the section, most common reason first. Empty without bounces. */
export function bounceSection(bounces: readonly Bounce[], note?: string): Section[] {
  const counts = new Map<string, number>()
  for (const { kind, detail } of bounces) {
    if (kind === 'suppressed') continue
    const reason = meaningIn(detail) || 'other reasons'
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const tiles = [...counts]
    .sort(([reason, one], [other, more]) => more - one || reason.localeCompare(other))
    .map(([reason, count]) => ({ label: headed(reason), value: number(count).text }))
  const counted =
    bounces.length < MAX_BOUNCES ? note : `At most ${number(MAX_BOUNCES).text} bounced emails are counted.`
  return tiles.length === 0
    ? []
    : [{ kind: 'tiles', id: 'bounces', live: true, title: 'Why emails bounced', note: counted, tiles }]
}

/** Builds the cell with the meaning of a response, if its status code has one, and the response itself. */
export function responseCell(response: string): Cell {
  const meaning = meaningIn(response)
  return meaning === '' ? text(response) : text(headed(meaning), { detail: response })
}
