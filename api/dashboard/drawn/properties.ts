/**
 * A contact's properties as people type them: a new contact's are one a line, `name: value`; those that are stored have
 * a row each. Promises: what is stored comes back as it was unless somebody changed it, outer blanks and line breaks
 * too.
 */
import { object } from 'yup'
import { contactProperties, MAX_KEYS } from '../../../db/audience/contacts/fields.ts'
import { Refusal } from '../../../db/errors.ts'
import { address, parse, uuids } from '../../../db/text/fields.ts'
import { jsonOf } from '../../../db/text/strings.ts'
import type { Field } from './section.ts'
import { namedLines } from './typed.ts'

type Properties = Readonly<Record<string, string>>

const schema = object({ properties: contactProperties() })

const checked = (pairs: readonly (readonly [string, string])[]): Record<string, string> =>
  parse(schema, { properties: Object.fromEntries(pairs) }).properties ?? {}

/** Lines at most, empty ones among them: a contact has 100 properties. */
const MAX_PROPERTY_LINES = 1_000

/** @throws Refusal bad_request naming the line, or what a property may not be. */
const propertiesOf = (typed: string): Record<string, string> =>
  checked(namedLines(typed, 'properties', MAX_PROPERTY_LINES))

const fields = object({ email: address().required('${path} is required'), topic_ids: uuids() })

/** A new contact as a form has it. @throws Refusal bad_request. */
export const contactOf = (form: URLSearchParams) => ({
  ...parse(fields, { email: form.get('email') || null, topic_ids: form.getAll('topic_ids') }),
  properties: propertiesOf(form.get('properties') ?? ''),
})

/** The topics that a form has ticked. @throws Refusal bad_request. */
export const topicsOf = (form: URLSearchParams): string[] =>
  parse(object({ topic_ids: uuids() }), { topic_ids: form.getAll('topic_ids') }).topic_ids ?? []

/** How many rows there are for properties to add. */
const FREE_ROWS = 3

const removeFields = (names: readonly string[]): Field[] => {
  if (names.length === 0) return []
  const options = names.map((name) => ({ value: JSON.stringify(name), label: name }))
  return [{ name: 'remove', label: 'Remove properties', type: 'checks', options }]
}

/** A row for each property, and some to add others. Names travel as JSON: a form would change their line breaks. */
export const propertyFields = (properties: Properties): Field[] => [
  ...Object.entries(properties).flatMap(([name, value], at): Field[] => [
    { name: `name.${at}`, label: '', type: 'hidden', value: JSON.stringify(name) },
    {
      name: `value.${at}`,
      label: name,
      type: 'textarea',
      code: true,
      rows: value.includes('\n') ? 4 : 1,
      value,
    },
  ]),
  ...removeFields(Object.keys(properties)),
  ...Array.from({ length: FREE_ROWS }, (_, at): Field[] => [
    { name: `new_name.${at}`, label: 'New property', type: 'text' },
    { name: `new_value.${at}`, label: 'Its value', type: 'textarea', code: true, rows: 1 },
  ]).flat(),
]

/** A text as a browser sends it back: its line breaks are all of one kind. */
const asSent = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')

function nameIn(sent = ''): string | null {
  const name = jsonOf(sent)
  return typeof name === 'string' ? name : null
}

/** The first value of each field. */
const firstOf = (form: URLSearchParams): ReadonlyMap<string, string> => new Map([...form].reverse())

/** Stored properties as a form has changed them. @throws Refusal bad_request. */
export function changedProperties(form: URLSearchParams, stored: Properties): Record<string, string> {
  const pairs: (readonly [string, string])[] = []
  const removed = new Set(form.getAll('remove'))
  const sent = firstOf(form)
  // One more than there may be is refused as it is.
  for (let at = 0; pairs.length <= MAX_KEYS; at += 1) {
    const name = nameIn(sent.get(`name.${at}`))
    if (name === null) break
    if (removed.has(JSON.stringify(name))) continue
    const before = Object.hasOwn(stored, name) ? stored[name] : undefined
    const value = sent.get(`value.${at}`) ?? before ?? ''
    pairs.push([name, before !== undefined && asSent(before) === asSent(value) ? before : value])
  }
  for (let at = 0; at < FREE_ROWS; at += 1) {
    const name = form.get(`new_name.${at}`)?.trim() ?? ''
    const value = form.get(`new_value.${at}`) ?? ''
    if (name !== '') pairs.push([name, value])
    else if (value.trim() !== '') throw new Refusal('bad_request', 'a new property needs a name')
  }
  const seen = new Set<string>()
  const twice = pairs.map(([name]) => name).find((name) => seen.size === seen.add(name).size)
  if (twice !== undefined)
    throw new Refusal('bad_request', `there are two properties ${JSON.stringify(twice)}`)
  return checked(pairs)
}
