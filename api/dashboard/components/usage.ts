/** Builds the tile with the use of a quota, its limit and a bar. Pure. */
import { number } from './cell.ts'
import type { Tile } from './section.ts'

/** @param limit null for no limit. */
export function usageTile(
  label: string,
  used: number,
  limit: number | null,
  { href, words = (count) => number(count).text }: { href?: string; words?(count: number): string } = {},
): Tile {
  const value = words(used)
  if (limit === null) return { label, value, detail: 'no limit', href }
  const filled = limit === 0 ? 100 : Math.min(100, Math.round((used / limit) * 100))
  const tone = filled >= 100 ? 'bad' : filled >= 80 ? 'warn' : 'plain'
  return { label, value, detail: `of ${words(limit)}`, filled, tone, href }
}
