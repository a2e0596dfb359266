/**
 * Lists and their filters: the link to the next page by its last row, forms filled with what the address holds, and
 * the readers of what a filter says. Promises: a value that does not parse is refused, never ignored: a bulk act on
 * "all that match" must not widen because of a typo.
 */

import { invalidField, RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { readQuery } from '../../http/forms.ts'
import type { Field, Link, PageLink, Section } from '../components/section.ts'
import { momentOf } from '../components/zone.ts'
import { TEXTS } from '../texts.ts'
import { compact, tableOf } from './builders.ts'
import type { PageRequest } from './page.ts'

/** How many rows a page of a list has; a query reads one more, to know whether more follow. */
const PAGE_SIZE = 50

/** The address of this page with some of its parameters changed; undefined takes one away. */
export function addressWith(
  { path, query }: Pick<PageRequest, 'path' | 'query'>,
  changes: Record<string, string | undefined>,
): string {
  const changed = new URLSearchParams([...query])
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) changed.delete(name)
    else changed.set(name, value)
  }
  for (const [name, value] of [...changed]) if (value === '') changed.delete(name)
  const search = changed.toString()
  return search === '' ? path : `${path}?${search}`
}

/** The field of an address that keeps the filter of the list that a page was opened from. */
export const LIST = 'list'

/** The longest filter that the links of a list carry, in characters: each of its rows has one. */
const MAX_LIST_CHARACTERS = 2_000

/** A link from a list to a page of its own, which finds back to the list as it is. */
export function fromList({ query }: PageRequest, href: string): string {
  const list = query.toString()
  return list === '' || list.length > MAX_LIST_CHARACTERS
    ? href
    : `${href}?${new URLSearchParams({ [LIST]: list })}`
}

/** The way back to the list that a page was opened from, filtered as it was. */
export function backTo({ query }: PageRequest, path: string, label: string): Link {
  const list = readQuery(query.get(LIST) ?? '').toString()
  return { href: list === '' ? path : `${path}?${list}`, label }
}

/** How many pages back `Newer` leads; from there on `First` does. */
const MAX_PAGES_BACK = 20

/** How a list goes on: back in time, or on by another order. */
type Way = 'back' | 'on'
const WAYS = {
  back: { name: 'before', newer: 'Newer', older: 'Older' },
  on: { name: 'after', newer: 'Previous', older: 'Next' },
} as const

/** What an address says of the page of a list. */
export const PLACE_PARAMS = ['before', 'after', 'newer'] as const

/** The links to the first page, to the one before, and to rows beyond `key`; null: there are none. */
function pageLinks(request: PageRequest, way: Way, key: string | null, label?: string): PageLink[] {
  const { name, newer, older } = WAYS[way]
  const here = request.query.get(name) || undefined
  const back = (request.query.get('newer') ?? '').split(',').filter((part) => isUuid(part))
  const link = (words: string, to: string | undefined, passed: readonly string[]): PageLink => ({
    href: addressWith(request, { [name]: to, newer: passed.slice(-MAX_PAGES_BACK).join(',') }),
    label: words,
  })
  return compact([
    here !== undefined && [
      link('First', undefined, []),
      { ...link(newer, back.at(-1), back.slice(0, -1)), rel: 'prev' },
    ],
    key !== null && { ...link(label ?? older, key, compact([...back, here])), rel: 'next' },
  ])
}

/**
 * What reads a list, a page or a batch at a time: the rows that follow the key `before`, and where a search was broken
 * off, if it was.
 */
export type RowReader<R> = (place: {
  before: string | undefined
  limit: number
}) => Promise<readonly R[] | { rows: readonly R[]; reached: string | null }>

/** @param reached null where nothing was broken off. */
export async function readBy<R>(
  read: RowReader<R>,
  place: Parameters<RowReader<R>>[0],
): Promise<{ rows: readonly R[]; reached: string | null }> {
  const found = await read(place)
  return 'rows' in found ? found : { rows: found, reached: null }
}

/** @param further the link to what was not looked at yet. */
type Paged<R> = {
  rows: readonly R[]
  next: readonly PageLink[]
  first: boolean
  further?: PageLink | undefined
}

/** The page of a list that the address asks for. */
export const pageById = <R extends { id: string }>(
  request: PageRequest,
  read: RowReader<R>,
): Promise<Paged<R>> => pageBy(request, read, { keyOf: ({ id }) => id, way: 'back' })

/** The same of any list. @param keyOf what the next page follows. */
export async function pageBy<R>(
  request: PageRequest,
  read: RowReader<R>,
  { keyOf, way }: { keyOf: (row: R) => string; way: Way },
): Promise<Paged<R>> {
  const before = idParam(request.query, WAYS[way].name)
  const { rows, reached } = await readBy(read, { before, limit: PAGE_SIZE + 1 })
  const shown = rows.slice(0, PAGE_SIZE)
  const last = shown.at(-1)
  const first = before === undefined
  if (rows.length > PAGE_SIZE && last)
    return { rows: shown, first, next: pageLinks(request, way, keyOf(last)) }
  const next = pageLinks(request, way, reached, 'Look further back')
  return { rows: shown, first, next, further: reached === null ? undefined : next.at(-1) }
}

/**
 * What a list says where there is nothing. @param filtered whether anything is asked for. @param nothing what is said
 * then. @param none what is said otherwise. @param start where one begins when there is none.
 * @param fresh whether it says how many rows are new, as long as it is looked at.
 */
type Said = {
  filtered: boolean
  nothing: string
  none: string
  start?: Link | undefined
  many?: string
  fresh?: boolean
  wrap?: readonly string[]
}

/** The table of a list's page. */
export function listOf<R extends { id: string }>(
  { rows, next, first, further }: Paged<R>,
  shown: Parameters<typeof tableOf<R>>[1],
  { filtered, nothing, none, start, many = '', fresh = false, wrap }: Said,
): Section {
  const empty = further
    ? `Nothing matches so far: there are many ${many}, and older ones were not looked at yet.`
    : filtered
      ? nothing
      : none
  return tableOf(rows, shown, {
    ...{ wrap, next, empty, start: further ?? (filtered ? undefined : start) },
    ...(fresh ? { keyOf: ({ id }) => id, id: 'list', live: first, fresh } : {}),
  })
}

/**
 * Fields with the values that were given; a select chooses its option.
 * @param sent whether the form itself was sent: then boxes that it does not name were not ticked.
 */
export const filled = (fields: readonly Field[], given: URLSearchParams, sent = false): Field[] =>
  fields.map((field) => {
    const { removal } = field
    const checked = removal && given.getAll(removal.name).includes(removal.value)
    const shown = removal ? { ...field, removal: { ...removal, checked } } : field
    // Browsers let no page preset a file field.
    if (field.type === 'file' || field.own || !(given.has(field.name) || (sent && field.type === 'checks')))
      return shown
    const values = given.getAll(field.name)
    const options = field.options?.map((option) => ({ ...option, selected: values.includes(option.value) }))
    return { ...shown, value: values[0] ?? '', ...(options ? { options } : {}) }
  })

/** Choices from words. The first is for any. */
export const optionsWithAny = (words: readonly string[], any = 'any'): { value: string; label: string }[] => [
  { value: '', label: any },
  ...words.map((word) => ({ value: word, label: word.replaceAll('_', ' ') })),
]

/** The longest value that a filter takes: a subject has at most 998 characters. */
const MAX_FILTER_CHARACTERS = 1_000

const refused = (name: string, must: string) => invalidField(name, `must be ${must}`)

/** A parameter of the address, trimmed; undefined when it is absent or empty. @throws RequestError bad_request. */
export function queryParam(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)?.trim() || undefined
  if (value !== undefined && value.length > MAX_FILTER_CHARACTERS)
    throw refused(name, `at most ${MAX_FILTER_CHARACTERS.toLocaleString('en-US')} characters long`)
  return value
}

/** An id of the address. @throws RequestError bad_request for what is no UUID. */
export function idParam(query: URLSearchParams, name: string): string | undefined {
  const value = queryParam(query, name)
  if (value === undefined || isUuid(value)) return value?.toLowerCase()
  throw refused(name, 'an id, such as 019a0000-0000-7000-8000-000000000000')
}

/** One of some words of the address. @throws RequestError bad_request for any other. */
export function wordParam<W extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly W[],
): W | undefined {
  const value = queryParam(query, name)
  const word = words.find((candidate) => candidate === value)
  if (value === undefined || word !== undefined) return word
  throw refused(name, `one of ${words.join(', ')}`)
}

/** Refuses an address that names anything else than these, or one of them twice. @throws RequestError bad_request. */
export function refuseUnknownParams(query: URLSearchParams, names: readonly string[]): void {
  const seen = new Set<string>()
  for (const name of query.keys()) {
    if (!names.includes(name))
      throw new RequestError('bad_request', fill(TEXTS.noFilter, { name: JSON.stringify(name) }))
    if (seen.has(name)) throw invalidField(name, 'must be given once')
    seen.add(name)
  }
}

const DAY_MS = 86_400_000
/** Years that both a browser and PostgreSQL write with four digits, a day later too; UUIDv7 begins in 1970. */
const YEARS = { first: 1970, last: 9998 }

/** The start of a day of the address in a zone, or of the day that follows it. @throws RequestError bad_request. */
export function dayOf(
  query: URLSearchParams,
  name: string,
  { zone, next = false }: { zone: string; next?: boolean },
): Date | undefined {
  const value = queryParam(query, name)
  if (value === undefined) return undefined
  const time = new Date(/^\d{4}-\d{2}-\d{2}$/.test(value) ? `${value}T00:00:00Z` : Number.NaN)
  const year = time.getUTCFullYear()
  // Date reads February 30 as March 2.
  const exists = time.toJSON()?.startsWith(value) === true
  if (!exists || year < YEARS.first || year > YEARS.last) throw refused(name, 'a date, such as 2026-01-31')
  const day = new Date(time.getTime() + (next ? DAY_MS : 0)).toISOString().slice(0, 10)
  return new Date(momentOf(`${day}T00:00`, zone))
}
