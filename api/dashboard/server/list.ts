/**
 * Lists: keyset pagination, filter fields with the values in the URL, and parsers of URL parameters. An
 * invalid value is an error and is never ignored, because a typo must not widen a bulk action on "all that
 * match".
 */

import { invalidField, RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { Searched } from '../../../db/postgres/search-parts.ts'
import { timeOfId } from '../../../db/validation/ids.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { readQuery } from '../../http/forms.ts'
import { time } from '../components/cell.ts'
import type { Field, Form, Link, PageLink, Section } from '../components/section.ts'
import { parseLocalTime } from '../components/zone.ts'
import { TEXTS } from '../texts.ts'
import { buildTable, compact, type Roles, type RowCells } from './builders.ts'
import type { PageRequest } from './page.ts'

/** Rows per page. Queries read one more to detect a next page. */
const PAGE_SIZE = 50

/** Returns the URL of this page with some parameters changed. Undefined removes one. */
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

/** The parameter with the filter of the list that a page was opened from. */
export const LIST = 'list'

/** Maximum length of a filter in the links of a list, which has one per row. In characters. */
const MAX_LIST_CHARACTERS = 2_000

/** Returns the URL of a row's page, with the list's filter for the link back. */
export function fromList({ query }: PageRequest, href: string): string {
  const list = query.toString()
  return list === '' || list.length > MAX_LIST_CHARACTERS
    ? href
    : `${href}?${new URLSearchParams({ [LIST]: list })}`
}

/** Returns the link back to the list, with the filter that the page was opened from. */
export function backTo({ query }: PageRequest, path: string, label: string): Link {
  const list = readQuery(query.get(LIST) ?? '').toString()
  return { href: list === '' ? path : `${path}?${list}`, label }
}

/** Number of pages that `Newer` can go back. After these, only `First` remains. */
const MAX_PAGES_BACK = 20

/** The direction of a list: back in time, or forward in another order. */
type Direction = 'back' | 'on'
const WAYS = {
  back: { name: 'before', newer: 'Newer', older: 'Older' },
  on: { name: 'after', newer: 'Previous', older: 'Next' },
} as const

/** URL parameters for the position in a list. */
export const PLACE_PARAMS = ['before', 'after', 'newer'] as const

/** Builds links to the first, previous and next page. @param key the last row's, or null without a next page. */
function pageLinks(request: PageRequest, way: Direction, key: string | null, label?: string): PageLink[] {
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

/** Reads the rows that follow the key `before`. `reached` is the key at which a search stopped early, or null. */
export type RowReader<R> = (place: {
  before: string | undefined
  limit: number
}) => Promise<readonly R[] | Searched<R>>

export async function readBy<R>(
  read: RowReader<R>,
  place: Parameters<RowReader<R>>[0],
): Promise<Searched<R>> {
  const found = await read(place)
  return 'rows' in found ? found : { rows: found, reached: null }
}

/** The label of the link to the rest of a stopped search. */
export const SEARCH_FURTHER = 'Search further back'

/** Describes how far back a search got before its time limit. Empty if it is complete. */
export const lookedTo = (reached: string | null, now: Date): Pick<Section, 'note' | 'noteAt'> =>
  reached === null
    ? {}
    : { note: 'Searched back to', noteAt: time(new Date(timeOfId(reached)).toISOString(), now) }

/** `further` links to rows that weren't searched yet, and `searched` tells how far back the search got. */
type Paged<R> = {
  rows: readonly R[]
  next: readonly PageLink[]
  first: boolean
  further?: PageLink | undefined
  searched?: ReturnType<typeof lookedTo>
}

/** Reads the requested page of a list that is ordered by ID, newest first. */
export const pageById = <R extends { id: string }>(request: PageRequest, read: RowReader<R>) =>
  pageBy(request, read, { keyOf: ({ id }) => id, way: 'back' })

/** Reads the requested page of any list. @param keyOf returns the key of a row, which the next page follows. */
export async function pageBy<R>(
  request: PageRequest,
  read: RowReader<R>,
  { keyOf, way }: { keyOf: (row: R) => string; way: Direction },
): Promise<Paged<R>> {
  const before = idParam(request.query, WAYS[way].name)
  const { rows, reached } = await readBy(read, { before, limit: PAGE_SIZE + 1 })
  const shown = rows.slice(0, PAGE_SIZE)
  const last = shown.at(-1)
  const first = before === undefined
  if (rows.length > PAGE_SIZE && last)
    return { rows: shown, first, next: pageLinks(request, way, keyOf(last)) }
  const next = pageLinks(request, way, reached, SEARCH_FURTHER)
  const further = reached === null ? undefined : next.at(-1)
  return { rows: shown, first, next, further, searched: lookedTo(reached, request.now) }
}

/**
 * Texts and options of a list. An empty list shows `nothing` and the link `wider` if it is filtered, otherwise `none`
 * and the link `start`. `many` names the rows in the plural. A list that is `fresh` counts new rows while it is open.
 */
type ListTexts = {
  filtered: boolean
  nothing: string
  none: string
  start?: Link | undefined
  wider?: Link | undefined
  many?: string
  fresh?: boolean
  picks?: readonly Form[] | undefined
}

export function buildList<R extends { id: string }, L extends string>(
  { rows, next, first, further, searched }: Paged<R>,
  shown: RowCells<R, L>,
  { filtered, nothing, none, start, wider, many = '', fresh = false, ...more }: ListTexts & Roles<NoInfer<L>>,
): Section {
  const empty = further
    ? `No match so far. Older ${many} haven’t been searched yet.`
    : filtered
      ? nothing
      : none
  return buildTable(rows, shown, {
    ...{ ...more, ...searched, empty },
    next: rows.length === 0 ? next.filter((link) => link !== further) : next,
    start: further ?? (filtered ? wider : start),
    ...(fresh ? { keyOf: ({ id }: R) => id, id: 'list', live: first, fresh } : {}),
  })
}

/** Fills fields with values. @param sent true for a submitted form, where missing checkboxes are unchecked. */
export const filled = (fields: readonly Field[], given: URLSearchParams, sent = false): Field[] =>
  fields.map((field) => {
    const { removal } = field
    const checked = removal && given.getAll(removal.name).includes(removal.value)
    const shown = removal ? { ...field, removal: { ...removal, checked } } : field
    // Browsers don't let pages set a file field.
    if (field.type === 'file' || field.own || !(given.has(field.name) || (sent && field.type === 'checks')))
      return shown
    const values = given.getAll(field.name)
    const options = field.options?.map((option) => ({ ...option, selected: values.includes(option.value) }))
    // Otherwise a browser shows the first option as selected.
    const isUnknown =
      sent && field.type === 'select' && values[0] && !options?.some(({ selected }) => selected)
    const unset = isUnknown ? [{ value: '', label: 'Choose a value', selected: true }] : []
    return { ...shown, value: values[0] ?? '', ...(options ? { options: [...unset, ...options] } : {}) }
  })

/** Builds options from values, after one for any. */
export const optionsWithAny = (words: readonly string[], any = 'any'): { value: string; label: string }[] => [
  { value: '', label: any },
  ...words.map((word) => ({ value: word, label: word.replaceAll('_', ' ') })),
]

/** Maximum length of a filter value. A subject has up to 998 characters. */
const MAX_FILTER_CHARACTERS = 1_000

const MAX_SHOWN = 40

const refused = (name: string, must: string) => invalidField(name, `must be ${must}`)

/** Returns a URL parameter, trimmed. Undefined if it is empty. @throws RequestError bad_request if it is too long. */
export function queryParam(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name)?.trim() || undefined
  if (value !== undefined && value.length > MAX_FILTER_CHARACTERS)
    throw refused(name, `at most ${MAX_FILTER_CHARACTERS.toLocaleString('en-US')} characters long`)
  return value
}

/** Returns a URL parameter that is an ID. @throws RequestError bad_request unless it is a UUID. */
export function idParam(query: URLSearchParams, name: string): string | undefined {
  const value = queryParam(query, name)
  if (value === undefined || isUuid(value)) return value?.toLowerCase()
  throw refused(name, 'an ID, such as 019a0000-0000-7000-8000-000000000000')
}

/** Returns a URL parameter with a fixed set of values. @throws RequestError bad_request for any other value. */
export function wordParam<W extends string>(
  query: URLSearchParams,
  name: string,
  words: readonly W[],
): W | undefined {
  const value = queryParam(query, name)
  const word = words.find((candidate) => candidate === value)
  if (value === undefined || word !== undefined) return word
  const known = words.length > 1 ? `${words.slice(0, -1).join(', ')} or ${words.at(-1)}` : words.join()
  throw invalidField(name, `can’t be “${value.slice(0, MAX_SHOWN)}”. It can be ${known}`)
}

/** Rejects unknown and repeated parameters. @throws RequestError bad_request. */
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
/** UUIDv7 starts in 1970. Browsers and PostgreSQL write years with four digits, also for the day after. */
const YEARS = { first: 1970, last: 9998 }

/** Returns the start of a day in a zone, or of the day after it with `next`. @throws RequestError bad_request. */
export function readDay(
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
  return new Date(parseLocalTime(`${day}T00:00`, zone))
}
