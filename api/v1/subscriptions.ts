/**
 * Whether a contact hears from a team: unsubscribe, resubscribe, and the one-shot unsubscribe.
 * Owns the shape of the calls; the rules for states are in db/audience/subscription/subscription.ts.
 */

import { object } from 'yup'
import { contactIdentity } from '../../db/audience/contacts/edit.ts'
import { leaveTopics, resubscribe, unsubscribe } from '../../db/audience/subscription/subscription.ts'
import { REQUIRED } from '../../db/errors.ts'
import { address, uuids } from '../../db/validation/fields.ts'
import type { About } from '../docs/about.ts'
import { anyKeyOrSession, keyOnly } from '../http/auth.ts'
import { json } from '../http/input.ts'
import { ABOUT } from './about.ts'
import { pathIdentity } from './contacts.ts'
import { teamRoute, type V1Route } from './deps.ts'
import { presentContact } from './present.ts'

const unsubscribeSchema = object({ email: address().required(REQUIRED), topic_ids: uuids() })

/** POST /v1/contacts/:email/<verb>; a body is not looked at. */
const statusRoute = (verb: string, change: typeof resubscribe, about: About): V1Route =>
  teamRoute({
    method: 'POST',
    path: `/v1/contacts/:email/${verb}`,
    about,
    access: keyOnly('contacts:write'),
    async handle({ params, principal, now }, { database, secrets }) {
      const contact = await database.transaction((tx) =>
        change({ tx, now, secrets, actor: null }, principal.team_id, pathIdentity(params)),
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
    body: json(unsubscribeSchema),
    async handle({ body: { email, topic_ids }, principal, now }, { database }) {
      const identity = contactIdentity(email)
      await database.transaction(async (tx) => {
        if (topic_ids === undefined) await unsubscribe({ tx, now, actor: null }, principal.team_id, identity)
        else await leaveTopics({ tx, now }, principal.team_id, identity, { topic_ids, by: 'api' })
      })
      return { status: 204 }
    },
  }),
]
