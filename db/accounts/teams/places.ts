/**
 * A team's places in line: one for each line before a queue (db/queue/line.ts), each with a column of allowances. Pure.
 */
import { CHANNEL_FACTS, type ChannelFacts } from '../../channels/list.ts'

export type LineName = ChannelFacts['lines'][number]
type PlaceColumn = `${LineName}_place`

const LINES: readonly LineName[] = CHANNEL_FACTS.flatMap(({ lines }) => [...lines])

/** The column that keeps a team's place in a line. */
export const placeColumn = (line: LineName): PlaceColumn => `${line}_place`

// Loops, since each charge makes both (plans/quotas.ts).

/** A value for each line. */
export function byLine<V>(value: (line: LineName) => V): Record<LineName, V> {
  const values: Partial<Record<LineName, V>> = {}
  for (const line of LINES) values[line] = value(line)
  return values as Record<LineName, V>
}

/** A value for each line, by its column. */
export function byPlace<V>(value: (line: LineName) => V): Record<PlaceColumn, V> {
  const values: Partial<Record<PlaceColumn, V>> = {}
  for (const line of LINES) values[placeColumn(line)] = value(line)
  return values as Record<PlaceColumn, V>
}
