/** The fields of a contact, for single contacts and bulk calls. DECISIONS: Sizes. */

import { mixed, object } from 'yup'
import { type FieldError, REQUIRED } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { address, type Described, stringMap } from '../../validation/fields.ts'
import { keysOf } from '../../validation/keys.ts'
import { codePoints, memberPath } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import type { ContactStatus } from './contacts.sql.ts'

export const MAX_KEYS = 100
export const LONGEST_KEY = 128
const LONGEST_VALUE = 2_048

/**
 * Returns the first violation of the limits, or null. The problem is a phrase that starts with "must". @param path of
 * the map.
 */
export function breach(map: Readonly<Record<string, string>>, path: string): FieldError | null {
  const entries = Object.entries(map)
  if (entries.length > MAX_KEYS) return { field: path, problem: `must have at most ${MAX_KEYS} keys` }
  for (const [key, value] of entries) {
    if (codePoints(key) > LONGEST_KEY) {
      return { field: memberPath(path, key), problem: `must have a key of at most ${LONGEST_KEY} characters` }
    }
    if (codePoints(value) > LONGEST_VALUE) {
      return { field: memberPath(path, key), problem: `must have at most ${LONGEST_VALUE} characters` }
    }
  }
  return null
}

export const contactProperties = () =>
  stringMap()
    .meta({
      jsonSchema: {
        type: 'object',
        maxProperties: MAX_KEYS,
        propertyNames: { maxLength: LONGEST_KEY },
        additionalProperties: { type: 'string', maxLength: LONGEST_VALUE },
      },
    } satisfies Described)
    .test('limits', '', (value, { path, createError }) => {
      const fault = value === undefined ? null : breach(value, path)
      return fault === null || createError({ path: fault.field, message: () => fault.problem })
    })

const claim = () => mixed().meta({ jsonSchema: { not: {} } } satisfies Described)

/** Names of a contact's status, here and in other services, with the values for each status. */
const STATUS_NAMES = {
  status: (status: ContactStatus) => status,
  subscribed: (status: ContactStatus) => status === 'subscribed',
  unsubscribed: (status: ContactStatus) => status === 'unsubscribed',
  emailBlacklisted: (status: ContactStatus) => status !== 'subscribed',
}
type StatusName = keyof typeof STATUS_NAMES
const NAMES = keysOf(STATUS_NAMES)

/** Status fields in a body. Clients send back the fields of a response, so these are accepted if they match. */
export const statusClaims = () => ({
  status: claim(),
  subscribed: claim(),
  unsubscribed: claim(),
  emailBlacklisted: claim(),
})
export const upsertSchema = object({
  email: address().required(REQUIRED),
  properties: contactProperties(),
  ...statusClaims(),
})

export type StatusClaims = { [name in StatusName]?: unknown }

export const claimsStatus = (claims: StatusClaims): boolean =>
  NAMES.some((name) => claims[name] !== undefined)

/**
 * Returns an error if the body claims another status than the contact's, or null. @param path a prefix, '' or `x.`
 */
export function claimFault(claims: StatusClaims, actual: ContactStatus, path = ''): FieldError | null {
  const wrong = NAMES.find(
    (name) => claims[name] !== undefined && claims[name] !== STATUS_NAMES[name](actual),
  )
  if (wrong === undefined) return null
  return { field: `${path}${wrong}`, problem: fill(TEXTS.statusClaim, { status: actual }) }
}
