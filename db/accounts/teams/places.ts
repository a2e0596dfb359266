/**
 * A team's places in line: one for each line before a queue (db/queue/line.ts), each with a column of allowances. Pure.
 */
import { CHANNEL_FACTS, type ChannelFacts } from '../../channels/list.ts'

export type LineName = ChannelFacts['lines'][number]
type PlaceColumn = `${LineName}_place`

const LINES: readonly LineName[] = CHANNEL_FACTS.flatMap(({ lines }) => [...lines])

/** A value for each line. */
export const byLine = <V>(value: (line: LineName) => V): Record<LineName, V> =>
  Object.fromEntries(LINES.map((line) => [line, value(line)])) as Record<LineName, V>

/** The column that keeps a team's place in a line. */
export const placeColumn = (line: LineName): PlaceColumn => `${line}_place`

/** A value for each line, by its column. */
export const byPlace = <V>(value: (line: LineName) => V): Record<PlaceColumn, V> =>
  Object.fromEntries(LINES.map((line) => [placeColumn(line), value(line)])) as Record<PlaceColumn, V>
