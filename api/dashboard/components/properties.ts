/**
 * Form fields for a contact's properties and topics. A new contact has one property per line, `name: value`.
 * Stored properties have a row each. Values that the user didn't edit keep their spaces and line breaks, and
 * changes made by others since the page was rendered are kept.
 */

import { object } from 'yup'
import { contactProperties, MAX_KEYS } from '../../../db/audience/contacts/fields.ts'
import { REQUIRED, RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { address, parse, uuids } from '../../../db/validation/fields.ts'
import { markOf } from '../../../db/validation/mark.ts'
import { isUuid, parseJson } from '../../../db/validation/strings.ts'
import { TEXTS } from '../texts.ts'
import { compareProperties } from './names.ts'
import type { Field } from './section.ts'
import { namedLines } from './typed.ts'

type Properties = Readonly<Record<string, string>>

const schema = object({ properties: contactProperties() })

const checked = (pairs: readonly (readonly [string, string])[]): Record<string, string> =>
  parse(schema, { properties: Object.fromEntries(pairs) }).properties ?? {}

/** Maximum number of lines, including empty ones. A contact has up to 100 properties. */
const MAX_PROPERTY_LINES = 1_000

const fields = object({ email: address().required(REQUIRED), topic_ids: uuids() })

/** Reads a new contact from a form. @throws RequestError bad_request that explains an invalid property or line. */
export const readContact = (form: URLSearchParams) => ({
  ...parse(fields, { email: form.get('email') || null, topic_ids: form.getAll('topic_ids') }),
  properties: checked(namedLines(form.get('properties') ?? '', 'properties', MAX_PROPERTY_LINES)),
})

export const readTopics = (form: URLSearchParams): string[] =>
  parse(object({ topic_ids: uuids() }), { topic_ids: form.getAll('topic_ids') }).topic_ids ?? []

/** Number of empty rows for new properties. */
const FREE_ROWS = 1

/** Sorts properties, because the database doesn't keep their order. */
export const inOrder = (properties: Properties): [string, string][] =>
  Object.entries(properties).sort(([one], [other]) => compareProperties(one, other))

const shortMark = (text: string): string => markOf(text).slice(0, 16)

/**
 * Builds a row for each property and empty rows for new ones. Names are sent as JSON, because forms change
 * line breaks. The fields of a row are named after a hash of the property, because the rows can differ when a
 * rejected form is shown again.
 */
export const propertyFields = (properties: Properties): Field[] => [
  ...inOrder(properties).flatMap(([name, value]): Field[] => {
    const row = shortMark(name)
    return [
      { name: `name.${row}`, label: '', type: 'hidden', value: JSON.stringify(name) },
      {
        name: `value.${row}`,
        label: name,
        type: 'textarea',
        rows: value.includes('\n') ? 4 : 1,
        value,
        removal: { name: 'remove', value: JSON.stringify(name), label: `Remove ${name}` },
      },
    ]
  }),
  ...Array.from({ length: FREE_ROWS }, (_, at): Field[] => [
    { name: `new_name.${at}`, label: 'New property', placeholder: 'Name', type: 'text', beside: true },
    {
      name: `new_value.${at}`,
      label: 'Its value',
      placeholder: 'Value',
      type: 'textarea',
      rows: 1,
      beside: true,
    },
  ]).flat(),
]

/** Converts line breaks to CRLF, like browsers. */
const asSent = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')

type KnownFields = { topics: ReadonlySet<string>; marks: ReadonlyMap<string, string> }

/** Returns a hash that shows if a value has been changed. */
const valueMark = (value: string): string => shortMark(asSent(value))

/** Builds a hidden field with the shown topics and hashes of the values, because others can edit the contact. */
export const shownField = (properties: Properties, topicIds: readonly string[]): Field => {
  const marks = Object.entries(properties).map(([name, value]) => [name, valueMark(value)])
  return { name: 'shown', label: '', type: 'hidden', value: JSON.stringify([topicIds, marks]) }
}

const isPair = (pair: unknown): pair is [string, string] =>
  Array.isArray(pair) && pair.length === 2 && pair.every((each) => typeof each === 'string')

/** Reads the hidden field of `shownField`, or returns null if it is missing or invalid. */
function shownIn(form: URLSearchParams): KnownFields | null {
  const shown = parseJson(form.get('shown') ?? '')
  const [topics, marks] = Array.isArray(shown) ? shown : []
  if (!Array.isArray(topics) || !Array.isArray(marks)) return null
  return { topics: new Set(topics.filter((id) => isUuid(id))), marks: new Map(marks.filter(isPair)) }
}

/** Applies a form's changes to the stored topics, which others may have changed. @throws RequestError bad_request. */
export function changedTopics(form: URLSearchParams, stored: readonly string[]): string[] {
  const ticked = readTopics(form)
  const shown = shownIn(form)?.topics
  if (!shown) return ticked
  const kept = stored.filter((id) => ticked.includes(id) || !shown.has(id))
  return [...kept, ...ticked.filter((id) => !shown.has(id) && !kept.includes(id))]
}

function nameIn(sent = ''): string | null {
  const name = parseJson(sent)
  return typeof name === 'string' ? name : null
}

/** Returns the first value of each field, in order. */
const pickFirst = (form: URLSearchParams): ReadonlyMap<string, string> =>
  new Map([...new Map([...form].reverse())].reverse())

/** Applies the changes of a form to the stored properties. @throws RequestError bad_request. */
export function changedProperties(form: URLSearchParams, stored: Properties): Record<string, string> {
  const pairs: (readonly [string, string])[] = []
  const removed = new Set(form.getAll('remove'))
  const sent = pickFirst(form)
  const shown = shownIn(form)?.marks
  const rows = new Set<string>()
  // One more than the maximum is enough for an error.
  for (const [field, json] of sent) {
    if (pairs.length > MAX_KEYS) break
    const [, row] = /^name\.(.+)$/s.exec(field) ?? []
    const name = row === undefined ? null : nameIn(json)
    if (name === null) continue
    rows.add(name)
    if (removed.has(JSON.stringify(name))) continue
    const before = Object.hasOwn(stored, name) ? stored[name] : undefined
    const value = sent.get(`value.${row}`) ?? before ?? ''
    const isLeft =
      shown?.get(name) === valueMark(value) || (before !== undefined && asSent(before) === asSent(value))
    if (!isLeft) pairs.push([name, value])
    else if (before !== undefined) pairs.push([name, before])
  }
  // Properties that were added since the page was rendered.
  if (shown) pairs.push(...Object.entries(stored).filter(([name]) => !rows.has(name)))
  for (let at = 0; at < FREE_ROWS; at += 1) {
    const name = form.get(`new_name.${at}`)?.trim() ?? ''
    const value = form.get(`new_value.${at}`) ?? ''
    if (name !== '') pairs.push([name, value])
    else if (value.trim() !== '') throw new RequestError('bad_request', TEXTS.unnamedProperty)
  }
  const seen = new Set<string>()
  const twice = pairs.map(([name]) => name).find((name) => seen.size === seen.add(name).size)
  if (twice !== undefined)
    throw new RequestError('bad_request', fill(TEXTS.propertyTwice, { name: JSON.stringify(twice) }))
  return checked(pairs)
}
