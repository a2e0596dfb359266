/**
 * The choices of a list's filter as chips: one of some words, such as a status, and whatever else is set, with a way to
 * take it away. Promises: a press begins at the list's first page. Must not know any list.
 */
import type { Chip, Chips, Section } from '../components/section.ts'
import { addressWith, PLACE_PARAMS } from './list.ts'
import type { PageRequest } from './page.ts'

/** The address of the list's first page with a part of its filter changed. */
const filteredBy = (request: PageRequest, name: string, value: string | undefined): string =>
  addressWith(request, {
    ...Object.fromEntries(PLACE_PARAMS.map((part) => [part, undefined])),
    [name]: value,
  })

/** A chip for each word that a part of the filter may be, behind one for all. @param counts of each. */
export function wordChips(
  request: PageRequest,
  name: string,
  words: readonly string[],
  counts: ReadonlyMap<string, number> | null = null,
): Chip[] {
  const current = request.query.get(name) ?? ''
  const chip = (word: string, label: string, count: number): Chip => ({
    label,
    href: filteredBy(request, name, word || undefined),
    current: current === word,
    count: counts ? count.toLocaleString('en-US') : undefined,
  })
  const total = [...(counts?.values() ?? [])].reduce((sum, count) => sum + count, 0)
  return [
    chip('', 'All', total),
    ...words.map((word) => chip(word, word.replaceAll('_', ' '), counts?.get(word) ?? 0)),
  ]
}

/** The same with figures of the last days, which are those of the whole list: shown while nothing else is asked for. */
export function statusChips(
  request: PageRequest,
  words: readonly string[],
  figures: readonly { status: string; count: number }[],
  others: URLSearchParams,
): Chips {
  const isBare = [...others.keys()].every((name) => name === 'status' || name === 'kind')
  const counts = new Map<string, number>()
  for (const { status, count } of figures) counts.set(status, (counts.get(status) ?? 0) + count)
  const chips = wordChips(request, 'status', words, isBare ? counts : null)
  return { chips, after: isBare ? '30 days' : undefined }
}

/** What of the filter is set, each with a way to take it away. @param called a part's name. @param said a value's. */
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
