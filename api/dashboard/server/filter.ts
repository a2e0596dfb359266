/**
 * Defines the filter of a list. Its form, its parser and its chips come from the same parts. An invalid value
 * is an error and is never ignored, because a typo must not widen a bulk action on "all that match".
 */
import { headed } from '../components/cell.ts'
import type { Chip, Field, Link, Section, SectionOf } from '../components/section.ts'
import { parseZone } from '../components/zone.ts'
import { compact } from './builders.ts'
import { setChips, statusChips, wordChips } from './chips.ts'
import {
  filled,
  idParam,
  optionsWithAny,
  queryParam,
  readDay,
  refuseUnknownParams,
  wordParam,
} from './list.ts'
import type { PageRequest } from './page.ts'

/**
 * `short` is the label of its chip. `words` are the values chosen by chips, with their `labels`. `includes` explains
 * values that also select other states.
 */
type FilterPart<V> = {
  read: (query: URLSearchParams, name: string, zone: string) => V | undefined
  label: string
  field: Partial<Field>
  short?: string | undefined
  words?: readonly string[]
  labels?: Readonly<Record<string, string>>
  includes?: Readonly<Record<string, string>>
  /** The label of the chip without a value, and a text before the chips. */
  any?: string | undefined
  before?: string
}
type FieldOptions = Partial<Field> & { short?: string }

const part = <V>(
  read: FilterPart<V>['read'],
  label: string,
  { short, ...field }: FieldOptions,
): FilterPart<V> => {
  return { read, label, field, short }
}

export const search = (label: string, more: FieldOptions = {}) =>
  part(queryParam, label, { type: 'search', ...more })

/** A part with a fixed set of values, chosen in a select. */
export const defineChoice = <W extends string>(label: string, words: readonly W[], more: FieldOptions = {}) =>
  part((query, name) => wordParam(query, name, words), label, {
    type: 'select',
    options: optionsWithAny(words),
    ...more,
  })

/** A part with a fixed set of values, chosen by chips. */
export const chips = <W extends string>(
  words: readonly W[],
  includes: NonNullable<FilterPart<unknown>['includes']> = {},
) => ({
  ...part((query, name) => wordParam(query, name, words), '', { type: 'hidden' }),
  ...{ words, includes },
})

/** A part with the order of a list, as chips. The first word is the default. */
export const sorts = <W extends string>(words: readonly W[]) => ({
  ...chips(words),
  words: words.slice(1),
  ...{ any: words[0], before: 'Sort:' },
})

/** A part with the ID of an object. Without choices, only links set it. */
export const defineId = (label: string, more: FieldOptions = {}) =>
  part(idParam, label, { type: 'select', ...more })

/** Returns the label of a date field. Days are in the reader's time zone, or UTC without scripts. */
export const dayLabel = (label: string, zone: string): string => (zone === 'UTC' ? `${label} (UTC)` : label)

const day = (short: string, next: boolean) =>
  part((query, name, zone) => readDay(query, name, { zone, next }), `${short} day`, { type: 'date', short })

export const DAY_RANGE = { from: day('From', false), to: day('To', true) }

type Filter = SectionOf<'filter'>
type FilterParts = Readonly<Record<string, FilterPart<unknown>>>
type ReadOf<P extends FilterParts> = {
  [N in keyof P]: P[N] extends FilterPart<infer V> ? V | undefined : never
}

type FilterOptions = {
  /** Choices of each part: IDs with their labels. */
  choices?: Readonly<Record<string, ReadonlyMap<string, string>>>
  more?: readonly Link[]
  /** Counts for the chips, by value. That of '' is the count of all. */
  counts?: ReadonlyMap<string, number> | null
  others?: readonly Chip[]
  /** Counts for the chips in the last 30 days, by status. */
  figures?: readonly { status: string; count: number }[] | undefined
}

/** Names the part in its "any" option, because only screen readers get the labels of most filters. */
const namedAny = (options: NonNullable<Field['options']>, any: string): NonNullable<Field['options']> =>
  options.map((option) =>
    option.value === '' && option.label === 'any' ? { ...option, label: any } : option,
  )

/** Shows choices in a select, or as suggestions of a text field. */
const choicesOf = ({ type }: Partial<Field>, options: NonNullable<Field['options']>): Partial<Field> =>
  type === 'select' ? { options } : { offers: options.slice(1) }

/** Builds the fields of a filter. A select without options or choices has none, because only links set it. */
function filterFields(
  parts: FilterParts,
  { query, cookies }: PageRequest,
  choices: NonNullable<FilterOptions['choices']>,
): Field[] {
  // Beside days, labels are visible.
  const isLabelled = Object.values(parts).some(({ field }) => field.type === 'date')
  const fields = Object.entries(parts).flatMap(([name, { label, field }]): Field[] => {
    const named = choices[name]
    if (field.type === 'select' && !field.options && !named) return []
    const options = [...(named ?? [])].map(([value, words]) => ({ value, label: words }))
    const any = isLabelled ? 'any' : `${label}: any`
    return [
      {
        name,
        label: field.type === 'date' ? dayLabel(label, parseZone(cookies('zone'))) : label,
        type: 'search',
        placeholder: label,
        ...(named ? choicesOf(field, [...optionsWithAny([], any), ...options]) : {}),
        ...field,
        ...(field.options ? { options: namedAny(field.options, any) } : {}),
      },
    ]
  })
  return filled(fields, query)
}

function activeChips(
  parts: FilterParts,
  request: PageRequest,
  set: URLSearchParams,
  { figures, counts = null, others = [] }: FilterOptions,
) {
  const [found] = Object.entries(parts).filter(([, { words }]) => words)
  if (found === undefined) return undefined
  const [name, { words = [], labels, any, before, includes }] = found
  const included = includes?.[request.query.get(name) ?? '']
  return figures
    ? statusChips(request, words, figures, { others: set, included })
    : {
        chips: [...wordChips(request, name, words, { any, counts, labels }), ...others],
        before,
        after: included,
      }
}

/** @param further parts in the collapsed area of the form. A chip shows each that is set. */
export function defineFilter<P extends FilterParts, F extends FilterParts = Record<never, never>>(
  near: P,
  further?: F,
) {
  const parts: FilterParts = { ...near, ...further }
  const names = Object.keys(parts)
  const set = (query: URLSearchParams): URLSearchParams =>
    new URLSearchParams([...query].filter(([name, value]) => name in parts && value.trim() !== ''))

  const called = (name: string): string => parts[name]?.short ?? (parts[name]?.label || headed(name))
  const said = (name: string, value: string, choices: FilterOptions['choices']): string =>
    choices?.[name]?.get(value) ??
    parts[name]?.field.options?.find((option) => option.value === value)?.label ??
    value

  const buildForm = (request: PageRequest, { choices = {}, more = [] }: FilterOptions): Filter => ({
    ...{ kind: 'filter', action: request.path, method: 'get', submit: 'Find' },
    fields: filterFields(near, request, choices),
    further: further && filterFields(further, request, choices),
    more,
    // Chips have one for all values.
    reset: [...set(request.query).keys()].some((name) => !parts[name]?.words)
      ? { href: request.path, label: 'Clear' }
      : null,
  })

  return {
    names,
    /** Returns the parameters that are set. */
    set,
    /** Parses the filter. @param zone the time zone of days. @throws RequestError bad_request. */
    read: (query: URLSearchParams, zone = 'UTC') =>
      Object.fromEntries(names.map((name) => [name, parts[name]?.read(query, name, zone)])) as ReadOf<P & F>,
    /** Rejects unknown and repeated parameters. @throws RequestError bad_request. */
    only: (query: URLSearchParams, ...others: string[]): void =>
      refuseUnknownParams(query, [...names, ...others]),
    /** Describes the parts that are set, with the labels of their values. */
    describe: (query: URLSearchParams, choices?: FilterOptions['choices']): string =>
      [...set(query)].map(([name, value]) => `${called(name)}: ${said(name, value, choices)}`).join(', '),
    /** Builds its form, unless all its parts are chips, and its chips. */
    shown(request: PageRequest, around: FilterOptions = {}): Section[] {
      const isSet = set(request.query)
      const hidden = (all: URLSearchParams) =>
        new URLSearchParams([...all].filter(([name]) => further !== undefined && name in further))
      const pressed = activeChips(parts, request, isSet, around)
      const isForm = Object.values(parts).some(({ words }) => !words)
      return compact<Section>([
        isForm && { ...buildForm(request, around), pressed },
        !isForm && pressed && { kind: 'chips', ...pressed },
        further &&
          setChips(request, hidden(isSet), called, (name, value) => said(name, value, around.choices)),
      ])
    },
  }
}
