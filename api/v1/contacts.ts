/**
 * Contacts: create, read, list, change, delete (contract §4.1). Bulk upsert is bulk.ts.
 * Owns the shape of bodies and queries; what may become of a contact is db/contacts/edit.ts.
 */
import { object } from 'yup'
import { CONTACT_STATUSES, contactByIdentity, contactsOfTeam } from '../../db/contacts/contacts.sql.ts'
import {
  changeContact,
  contactIdentity,
  createContact,
  noContact,
  removeContact,
} from '../../db/contacts/edit.ts'
import { contactProperties } from '../../db/contacts/fields.ts'
import { address, parse, text, uuids } from '../../db/text/fields.ts'
import { keyOnly } from '../auth.ts'
import { parseQuery, readJson, wholeNumber } from '../input.ts'
import type { PrivateRoute } from '../route.ts'
import { presentContact } from './present.ts'

const DEFAULT_LIMIT = 20
const LARGEST_LIMIT = 100

/** What PATCH takes, and POST besides the email. */
const changeSchema = object({ properties: contactProperties(), topic_ids: uuids() })

const createSchema = changeSchema.shape({ email: address().required('${path} is required') })

const listSchema = object({
  limit: wholeNumber(1, LARGEST_LIMIT),
  cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  email: text(),
  status: text().oneOf(CONTACT_STATUSES, '${path} must be one of ${values}'),
})

/** The email in the path; what is no email names no contact. */
export const pathIdentity = ({ email = '' }: Readonly<Record<string, string>>): string =>
  contactIdentity(email)

export const contactRoutes: readonly PrivateRoute[] = [
  {
    method: 'POST',
    path: '/v1/contacts',
    access: keyOnly('contacts:write'),
    async handle({ raw, principal, now }, { database }) {
      const fields = parse(createSchema, await readJson(raw))
      const contact = await database.transaction((tx) =>
        createContact({ tx, now }, principal.team_id, fields),
      )
      return { status: 201, body: presentContact(contact) }
    },
  },
  {
    method: 'GET',
    path: '/v1/contacts',
    access: keyOnly('contacts:read'),
    async handle({ raw, principal }, { database }) {
      const { limit: size, cursor, ...filter } = parseQuery(listSchema, raw.url ?? '')
      const limit = Number(size ?? DEFAULT_LIMIT)
      const offset = Number(cursor ?? 0)
      // One more than is shown tells whether a page follows.
      const page = { offset, limit: limit + 1 }
      const contacts = await contactsOfTeam(database, principal.team_id, filter, page)
      const next = contacts.length > limit ? { next_cursor: String(offset + limit) } : {}
      return { status: 200, body: { data: contacts.slice(0, limit).map(presentContact), ...next } }
    },
  },
  {
    method: 'GET',
    path: '/v1/contacts/:email',
    access: keyOnly('contacts:read'),
    async handle({ params, principal }, { database }) {
      const contact = await contactByIdentity(database, principal.team_id, pathIdentity(params))
      if (!contact) throw noContact()
      return { status: 200, body: presentContact(contact) }
    },
  },
  {
    method: 'PATCH',
    path: '/v1/contacts/:email',
    access: keyOnly('contacts:write'),
    async handle({ raw, params, principal, now }, { database }) {
      const fields = parse(changeSchema, await readJson(raw))
      const identity = pathIdentity(params)
      const contact = await database.transaction((tx) =>
        changeContact({ tx, now }, principal.team_id, identity, fields),
      )
      return { status: 200, body: presentContact(contact) }
    },
  },
  {
    method: 'DELETE',
    path: '/v1/contacts/:email',
    access: keyOnly('contacts:write'),
    async handle({ params, principal }, { database }) {
      const identity = pathIdentity(params)
      await database.transaction((tx) => removeContact({ tx }, principal.team_id, identity))
      return { status: 204 }
    },
  },
]
