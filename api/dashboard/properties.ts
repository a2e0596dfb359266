/** A contact as people type it; its properties are one a line, `name: value`. */
import { object } from 'yup'
import { contactProperties } from '../../db/contacts/fields.ts'
import { Refusal } from '../../db/errors.ts'
import { address, parse, uuids } from '../../db/text/fields.ts'

const schema = object({ properties: contactProperties() })

/** @throws Refusal bad_request naming the line, or what a property may not be. */
export function propertiesOf(typed: string): Record<string, string> {
  const lines = typed
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const pairs = lines.map((line) => {
    const at = line.indexOf(':')
    if (at > 0) return [line.slice(0, at).trim(), line.slice(at + 1).trim()] as const
    throw new Refusal('bad_request', `properties: ${JSON.stringify(line)} is not of the form name: value`)
  })
  return parse(schema, { properties: Object.fromEntries(pairs) }).properties ?? {}
}

const fields = object({ email: address().required('${path} is required'), topic_ids: uuids() })

/** A new contact as a form has it. @throws Refusal bad_request. */
export const contactOf = (form: URLSearchParams) => ({
  ...parse(fields, { email: form.get('email') || null, topic_ids: form.getAll('topic_ids') }),
  properties: propertiesOf(form.get('properties') ?? ''),
})

/** Properties as they are typed. */
export const typedProperties = (properties: Readonly<Record<string, string>>): string =>
  Object.entries(properties)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
