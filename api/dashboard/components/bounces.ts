/** Counts why emails bounced, by the status codes of responses. Skipped emails aren't counted. Pure. */
import type { Bounce } from '../../../db/messages/emails/bounces.sql.ts'
import { type Cell, headed, number, text } from './cell.ts'
import type { Section } from './section.ts'
import { meaningIn } from './sentence.ts'

/** Maximum number of bounced emails that are counted. */
export const MAX_BOUNCES = 500

const TITLE = { title: 'Why emails bounced', id: 'bounces', live: true } as const

/** Returns how many emails bounced for each reason, most common first. */
function countReasons(bounces: readonly Bounce[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const { kind, detail } of bounces) {
    if (kind === 'suppressed') continue
    const reason = meaningIn(detail) || 'other reasons'
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  return [...counts]
    .sort(([reason, one], [other, more]) => more - one || reason.localeCompare(other))
    .map(([reason, count]) => [headed(reason), count])
}

const noteOn = (bounces: readonly Bounce[], note?: string): string | undefined =>
  bounces.length < MAX_BOUNCES ? note : `At most ${number(MAX_BOUNCES).text} bounced emails are counted.`

/** Builds the section for the right column, where tiles are a list. Empty without bounces. */
export function bounceTiles(bounces: readonly Bounce[], note: string): Section[] {
  const tiles = countReasons(bounces).map(([label, count]) => ({ label, value: number(count).text }))
  return tiles.length === 0 ? [] : [{ ...TITLE, kind: 'tiles', note: noteOn(bounces, note), tiles }]
}

/** Builds the section for a broadcast. Empty without bounces. */
export function bounceTable(bounces: readonly Bounce[]): Section[] {
  const rows = countReasons(bounces).map(([reason, count]) => ({ cells: [text(reason), number(count)] }))
  const columns = [
    { label: 'Reason', main: true, wrap: true },
    { label: 'Emails', number: true },
  ]
  return rows.length === 0
    ? []
    : [{ ...TITLE, kind: 'table', note: noteOn(bounces), columns, rows, empty: '' }]
}

/** Builds the cell with the meaning of a response, if its status code has one, and the response itself. */
export function responseCell(response: string): Cell {
  const meaning = meaningIn(response)
  return meaning === '' ? text(response) : text(headed(meaning), { detail: response })
}
