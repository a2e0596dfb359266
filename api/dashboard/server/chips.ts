/**
 * Builds the chips of a list's filter: one for each value of a part, such as a status, and one for each other
 * part that is set, which removes it. A chip leads to the first page of the list.
 */
import type { Chip, Chips, Section } from '../components/section.ts'
import { addressWith, PLACE_PARAMS } from './list.ts'
import type { PageRequest } from './page.ts'

/** Returns the URL of the list's first page with one part of its filter changed. */
const filteredBy = (request: PageRequest, name: string, value: string | undefined): string =>
  addressWith(request, {
    ...Object.fromEntries(PLACE_PARAMS.map((part) => [part, undefined])),
    [name]: value,
  })

const shortCount = new Intl.NumberFormat('en-US', { notation: 'compact' })
/** Formats a count exactly below 10,000, and otherwise such as `132K`, so that all chips fit on a line. */
export const chipCount = (count: number): string =>
  count < 10_000 ? count.toLocaleString('en-US') : shortCount.format(count)

/** Builds a chip for all values, called `any`, then one for each value. The count of '' is that of all. */
export function wordChips(
  request: PageRequest,
  name: string,
  words: readonly string[],
  {
    counts = null,
    any = 'All',
    labels = {},
  }: {
    counts?: ReadonlyMap<string, number> | null
    any?: string | undefined
    labels?: Readonly<Record<string, string>> | undefined
  } = {},
): Chip[] {
  const current = request.query.get(name) ?? ''
  const chip = (word: string, label: string, count: number): Chip => ({
    label,
    href: filteredBy(request, name, word || undefined),
    current: current === word,
    count: counts ? chipCount(count) : undefined,
  })
  const sum = [...(counts?.values() ?? [])].reduce((total, count) => total + count, 0)
  return [
    chip('', any, counts?.get('') ?? sum),
    ...words.map((word) => chip(word, labels[word] ?? word.replaceAll('_', ' '), counts?.get(word) ?? 0)),
  ]
}

/**
 * Builds chips for statuses with counts of the last 30 days. The counts ignore the rest of the filter, so
 * they are only shown while nothing else is set. @param included a sentence about the chosen status.
 */
export function statusChips(
  request: PageRequest,
  words: readonly string[],
  figures: readonly { status: string; count: number }[],
  { others, included }: { others: URLSearchParams; included: string | undefined },
): Chips {
  const isBare = [...others.keys()].every((name) => name === 'status' || name === 'kind')
  const counts = new Map<string, number>()
  for (const { status, count } of figures) counts.set(status, (counts.get(status) ?? 0) + count)
  const chips = wordChips(request, 'status', words, { counts: isBare ? counts : null })
  const counted = isBare ? 'in the last 30 days' : ''
  return { chips, after: [counted, included].filter(Boolean).join('. ') }
}

/**
 * Builds a chip for each part that is set. Clicking it removes the part.
 * @param called returns the label of a part.
 * @param said builds the label of a value.
 */
export function setChips(
  request: PageRequest,
  set: URLSearchParams,
  called: (name: string) => string,
  said: (name: string, value: string) => string,
): Section[] {
  const chips = [...set].map(([name, value]) => ({
    label: `${called(name)}: ${said(name, value)}`,
    href: filteredBy(request, name, undefined),
    off: true,
  }))
  return chips.length === 0 ? [] : [{ kind: 'chips', chips }]
}
