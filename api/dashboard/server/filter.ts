/**
 * The filter of a list as one value: what it asks for, what an address or a form says of it, and what of it is set.
 * Promises: its form, its reader and its chips come from the same parts; a value that does not parse is refused, never
 * ignored: a bulk act on "all that match" must not widen because of a typo. Must not know any list.
 */
import type { Field, Link, Section } from '../components/section.ts'
import { zoneOf } from '../components/zone.ts'
import { compact } from './builders.ts'
import { setChips, statusChips, wordChips } from './chips.ts'
import { dayOf, filled, idParam, optionsWithAny, queryParam, refuseUnknownParams, wordParam } from './list.ts'
import type { PageRequest } from './page.ts'

/** @param short what it is called where it is set. @param words those that are chosen by chips. */
type Part<V> = {
  read: (query: URLSearchParams, name: string, zone: string) => V | undefined
  label: string
  field: Partial<Field>
  short?: string | undefined
  words?: readonly string[]
}
type More = Partial<Field> & { short?: string }

const part = <V>(read: Part<V>['read'], label: string, { short, ...field }: More): Part<V> => {
  return { read, label, field, short }
}

/** Words that somebody types. */
export const search = (label: string, more: More = {}) => part(queryParam, label, { type: 'search', ...more })

/** One of some words, chosen in a list of them. */
export const oneOf = <W extends string>(label: string, words: readonly W[], more: More = {}) =>
  part((query, name) => wordParam(query, name, words), label, {
    type: 'select',
    options: optionsWithAny(words),
    ...more,
  })

/** One of some words, chosen by a press. */
export const chips = <W extends string>(words: readonly W[]) => ({
  ...part((query, name) => wordParam(query, name, words), '', { type: 'hidden' }),
  words,
})

/** An existing thing, by its id; without choices it is set by links alone. */
export const idOf = (label: string, more: More = {}) => part(idParam, label, { type: 'select', ...more })

/** The label of a field for a day. Days are those of the reader's zone, which is unknown without a script. */
export const dayLabel = (label: string, zone: string): string => (zone === 'UTC' ? `${label} (UTC)` : label)

const day = (short: string, next: boolean) =>
  part((query, name, zone) => dayOf(query, name, { zone, next }), `${short} day`, { type: 'date', short })

/** From one day to another, which counts whole. */
export const DAY_RANGE = { from: day('From', false), to: day('To', true) }

type Filter = Extract<Section, { kind: 'filter' }>
type Parts = Readonly<Record<string, Part<unknown>>>
type ReadOf<P extends Parts> = { [N in keyof P]: P[N] extends Part<infer V> ? V | undefined : never }

type Around = {
  /** What can be chosen, by the part's name: ids with their words. */
  choices?: Readonly<Record<string, ReadonlyMap<string, string>>>
  more?: readonly Link[]
  /** How many there are of each word of the list's chips. */
  figures?: readonly { status: string; count: number }[] | undefined
}

/** A choice says by itself what it is about: a filter's labels are for who hears them. */
const namedAny = (options: NonNullable<Field['options']>, any: string): NonNullable<Field['options']> =>
  options.map((option) =>
    option.value === '' && option.label === 'any' ? { ...option, label: any } : option,
  )

/** A select without options, and without choices, is no field: links alone set it. */
function filterFields(
  parts: Parts,
  { query, cookies }: PageRequest,
  choices: NonNullable<Around['choices']>,
): Field[] {
  const fields = Object.entries(parts).flatMap(([name, { label, field }]): Field[] => {
    const named = choices[name]
    if (field.type === 'select' && !field.options && !named) return []
    const options = [...(named ?? [])].map(([value, words]) => ({ value, label: words }))
    const any = `${label}: any`
    return [
      {
        name,
        label: field.type === 'date' ? dayLabel(label, zoneOf(cookies('zone'))) : label,
        type: 'search',
        placeholder: label,
        ...(named ? { options: [...optionsWithAny([], any), ...options] } : {}),
        ...field,
        ...(field.options ? { options: namedAny(field.options, any) } : {}),
      },
    ]
  })
  return filled(fields, query)
}

/** The part that is chosen by a click, as chips. */
function pressedOf(parts: Parts, request: PageRequest, set: URLSearchParams, { figures }: Around) {
  const [found] = Object.entries(parts).filter(([, { words }]) => words)
  if (found === undefined) return undefined
  const [name, { words = [] }] = found
  return figures ? statusChips(request, words, figures, set) : { chips: wordChips(request, name, words) }
}

/** @param further what is asked for behind a fold; what of it is set shows as a chip. */
export function defineFilter<P extends Parts, F extends Parts = Record<never, never>>(near: P, further?: F) {
  const parts: Parts = { ...near, ...further }
  const names = Object.keys(parts)
  const set = (query: URLSearchParams): URLSearchParams =>
    new URLSearchParams([...query].filter(([name, value]) => name in parts && value.trim() !== ''))

  const formOf = (request: PageRequest, { choices = {}, more = [] }: Around): Filter => ({
    ...{ kind: 'filter', action: request.path, method: 'get', submit: 'Find' },
    fields: filterFields(near, request, choices),
    further: further && filterFields(further, request, choices),
    more,
    reset: set(request.query).size > 0 ? { href: request.path, label: 'Clear' } : null,
  })

  return {
    names,
    /** What is set, as the address has it. */
    set,
    /** @param zone in which days start. @throws RequestError bad_request. */
    read: (query: URLSearchParams, zone = 'UTC') =>
      Object.fromEntries(names.map((name) => [name, parts[name]?.read(query, name, zone)])) as ReadOf<P & F>,
    /** Refuses whatever else an address says. @throws RequestError bad_request. */
    only: (query: URLSearchParams, ...others: string[]): void =>
      refuseUnknownParams(query, [...names, ...others]),
    /** Its form, unless presses are all there is to it, and its chips. */
    shown(request: PageRequest, around: Around = {}): Section[] {
      const isSet = set(request.query)
      const said = (name: string, value: string) => around.choices?.[name]?.get(value) ?? value
      const hidden = (all: URLSearchParams) =>
        new URLSearchParams([...all].filter(([name]) => further !== undefined && name in further))
      const called = (name: string) => parts[name]?.short ?? parts[name]?.label ?? name
      const pressed = pressedOf(parts, request, isSet, around)
      const isForm = Object.values(parts).some(({ words }) => !words)
      return compact<Section>([
        isForm && { ...formOf(request, around), pressed },
        !isForm && pressed && { kind: 'chips', ...pressed },
        further && setChips(request, hidden(isSet), called, said),
      ])
    },
  }
}
