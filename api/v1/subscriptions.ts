/** Unsubscribes and resubscribes contacts. The rules are in db/audience/subscription/subscription.ts. */
import { contactIdentity } from '../../db/audience/contacts/edit.ts'
import { leaveTopics, resubscribe, unsubscribe } from '../../db/audience/subscription/subscription.ts'
import type { About } from '../docs/about.ts'
import { anyKeyOrSession, keyOnly } from '../http/auth.ts'
import { ABOUT } from './about.ts'
import { unsubscribeBody } from './contact-bodies.ts'
import { pathIdentity } from './contacts.ts'
import { asClient, teamRoute, type V1Route } from './deps.ts'
import { presentContact } from './present.ts'

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
