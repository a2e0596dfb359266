/**
 * Contacts: create, read, list, change, delete, unsubscribe, resubscribe. The rules are in
 * db/audience/contacts/edit.ts and db/audience/subscription/subscription.ts.
 */

import { object } from 'yup'
import {
  CONTACT_STATUSES,
  contactByIdentity,
  contactsOfTeam,
} from '../../db/audience/contacts/contacts.sql.ts'
import {
  changeContact,
  contactIdentity,
  createContact,
  noContact,
  removeContact,
} from '../../db/audience/contacts/edit.ts'
import { leaveTopics, resubscribe, unsubscribe } from '../../db/audience/subscription/subscription.ts'
import { text, unsupported } from '../../db/validation/fields.ts'
import type { About } from '../docs/about.ts'
import { anyKeyOrSession, keyOnly } from '../http/auth.ts'
import { defineQuery } from '../http/input.ts'
import { ABOUT } from './about.ts'
import { changeBody, createBody, unsubscribeBody } from './contact-bodies.ts'
import { asClient, teamRoute, type V1Route } from './deps.ts'
import { paging, readPage } from './paging.ts'
import { presentContact } from './present.ts'

/** Paging parameters of other services. If they were ignored, each request would return the first page. */
const otherPaging = () =>
  unsupported('is not supported. Pass the next_cursor of the previous response as cursor')

const listSchema = object({
  ...paging(),
  email: text(),
  status: text().oneOf(CONTACT_STATUSES, 'must be one of ${values}'),
  after: otherPaging(),
  page: otherPaging(),
  offset: otherPaging(),
})

/** Returns the identity of the email in the path. An invalid address belongs to no contact. */
const pathIdentity = ({ email = '' }: Readonly<Record<string, string>>): string => contactIdentity(email)

export const contactRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/contacts',
    about: ABOUT.createContact,
    access: keyOnly('contacts:write'),
    body: createBody,
    async handle({ body, principal: { team_id }, now }, { database, secrets }) {
      const contact = await asClient(database, now, (by) => createContact({ ...by, secrets }, team_id, body))
      return { status: 201, body: presentContact(contact) }
    },
  }),
  teamRoute({
    method: 'GET',
    path: '/v1/contacts',
    about: ABOUT.listContacts,
    access: keyOnly('contacts:read'),
    query: defineQuery(listSchema),
    searches: true,
    async handle({ query, principal }, { database }) {
      const { email, status } = query
      const { rows, next } = await readPage(query, (page) =>
        contactsOfTeam(database, principal.team_id, { email, status }, page),
      )
      return { status: 200, body: { data: rows.map(presentContact), ...next } }
    },
  }),
  teamRoute({
    method: 'GET',
    path: '/v1/contacts/:email',
    about: ABOUT.getContact,
    access: keyOnly('contacts:read'),
    async handle({ params, principal }, { database }) {
      const contact = await contactByIdentity(database, principal.team_id, pathIdentity(params))
      if (!contact) throw noContact()
      return { status: 200, body: presentContact(contact) }
    },
  }),
  teamRoute({
    method: 'PATCH',
    path: '/v1/contacts/:email',
    about: ABOUT.changeContact,
    access: keyOnly('contacts:write'),
    body: changeBody,
    async handle({ body, params, principal, now }, { database }) {
      const contact = await asClient(database, now, (by) =>
        changeContact(by, principal.team_id, pathIdentity(params), body),
      )
      return { status: 200, body: presentContact(contact) }
    },
  }),
  teamRoute({
    method: 'DELETE',
    path: '/v1/contacts/:email',
    about: ABOUT.deleteContact,
    access: keyOnly('contacts:write'),
    async handle({ params, principal: { team_id }, now }, { database }) {
      await asClient(database, now, (by) => removeContact(by, team_id, pathIdentity(params)))
      return { status: 204 }
    },
  }),
]

/** Declares POST /v1/contacts/:email/<verb>. A body is ignored. */
const statusRoute = (verb: string, change: typeof resubscribe, about: About): V1Route =>
  teamRoute({
    method: 'POST',
    path: `/v1/contacts/:email/${verb}`,
    about,
    access: keyOnly('contacts:write'),
    async handle({ params, principal, now }, { database, secrets }) {
      const contact = await asClient(database, now, (by) =>
        change({ ...by, secrets }, principal.team_id, pathIdentity(params)),
      )
      return { status: 200, body: presentContact(contact) }
    },
  })

export const subscriptionRoutes: readonly V1Route[] = [
  statusRoute('unsubscribe', unsubscribe, ABOUT.unsubscribeContact),
  statusRoute('resubscribe', resubscribe, ABOUT.resubscribeContact),
  teamRoute({
    method: 'POST',
    path: '/v1/marketing/unsubscribe',
    about: ABOUT.unsubscribeEmail,
    access: anyKeyOrSession('contacts:write'),
    body: unsubscribeBody,
    async handle({ body: { email, topic_ids }, principal, now }, { database }) {
      const identity = contactIdentity(email)
      await asClient(database, now, async (by) => {
        if (topic_ids === undefined) await unsubscribe(by, principal.team_id, identity)
        else await leaveTopics(by, principal.team_id, identity, { topic_ids, by: 'api' })
      })
      return { status: 204 }
    },
  }),
]
