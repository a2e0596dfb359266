/** What a contact's fields may hold, for one contact and for the items of a bulk call alike. Decisions: sizes. */
import { type AnyObject, type TestContext, ValidationError } from 'yup'
import { stringMap } from '../text/fields.ts'
import { codePoints, memberPath } from '../text/strings.ts'

const MOST_KEYS = 100
const LONGEST_KEY = 128
const LONGEST_VALUE = 2_048

/** The first breach of the limits: where it is under `path`, and what, after a "must". */
function breach(map: Readonly<Record<string, string>>, path: string): string | null {
  const entries = Object.entries(map)
  if (entries.length > MOST_KEYS) return `${path} must have at most ${MOST_KEYS} keys`
  for (const [key, value] of entries) {
    if (codePoints(key) > LONGEST_KEY) {
      return `${memberPath(path, key)} must have a key of at most ${LONGEST_KEY} characters`
    }
    if (codePoints(value) > LONGEST_VALUE) {
      return `${memberPath(path, key)} must have at most ${LONGEST_VALUE} characters`
    }
  }
  return null
}

/** The `properties` of a contact. */
export const contactProperties = () =>
  stringMap().test('limits', (value, { path }: TestContext<AnyObject>) => {
    const fault = value === undefined ? null : breach(value, path)
    // Made by hand: a message of yup's would read the key's `${…}` as its own.
    return fault === null || new ValidationError(fault, undefined, path)
  })
