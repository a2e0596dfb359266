/** Lists and their filters: the link to the next page by its last row, and forms filled with what the address holds. */
import { Refusal } from '../../db/errors.ts'
import type { PageRequest } from './page.ts'
import type { Field, Link } from './section.ts'

/** How many rows a page of a list has; a query reads one more, to know whether more follow. */
export const PAGE_SIZE = 50

/** The address of this page with some of its parameters changed; undefined takes one away. */
export function addressWith(
  { path, query }: PageRequest,
  changes: Record<string, string | undefined>,
): string {
  const changed = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) changed.delete(name)
    else changed.set(name, value)
  }
  for (const [name, value] of [...changed]) if (value === '') changed.delete(name)
  const search = changed.toString()
  return search === '' ? path : `${path}?${search}`
}

/** The rows to show, and the link to those that follow. @param rows PAGE_SIZE + 1 at most. */
export function pageOf<R>(
  request: PageRequest,
  rows: readonly R[],
  keyOf: (row: R) => string,
): { rows: readonly R[]; next: Link | null } {
  const shown = rows.slice(0, PAGE_SIZE)
  const last = shown.at(-1)
  if (rows.length <= PAGE_SIZE || last === undefined) return { rows: shown, next: null }
  return { rows: shown, next: { href: addressWith(request, { before: keyOf(last) }), label: 'Older' } }
}

/** Fields with the values that were given; a select chooses its option. */
export const filled = (fields: readonly Field[], given: URLSearchParams): Field[] =>
  fields.map((field) => {
    // Browsers let no page preset a file field.
    if (!given.has(field.name) || field.type === 'file') return field
    const values = given.getAll(field.name)
    const options = field.options?.map((option) => ({ ...option, selected: values.includes(option.value) }))
    return { ...field, value: values[0] ?? '', ...(options ? { options } : {}) }
  })

/** Choices from words. The first is for any. */
export const anyOf = (words: readonly string[], any = 'any'): { value: string; label: string }[] => [
  { value: '', label: any },
  ...words.map((word) => ({ value: word, label: word.replaceAll('_', ' ') })),
]

/** A parameter of the address, trimmed; undefined when it is absent or empty. */
export const given = (query: URLSearchParams, name: string): string | undefined =>
  query.get(name)?.trim() || undefined

const DAY = 86_400_000

/** A day of the address, in UTC, and so many days later. @throws Refusal bad_request. */
export function dayOf(query: URLSearchParams, name: string, later = 0): Date | undefined {
  const value = given(query, name)
  if (value === undefined) return undefined
  const time = Date.parse(`${value}T00:00:00Z`)
  if (Number.isNaN(time)) throw new Refusal('bad_request', `${name} must be a date, such as 2026-01-31`)
  return new Date(time + later * DAY)
}
