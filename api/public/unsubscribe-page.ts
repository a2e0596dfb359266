/**
 * /u/:token, the unsubscribe link in emails: a page with a button, and its POST, which mail clients also send
 * by themselves (RFC 8058 one-click). The link of a broadcast unsubscribes from its topics or from
 * everything, and leads to a page with the topics that the contact gets or has left.
 *
 * GET changes nothing, because scanners follow links. The token is the only credential. A token that isn't
 * ours returns 404. If the email or the contact was deleted, the response is 200. An unsubscribe applies to
 * the address, even if the contact is created again.
 */

import { type ContactRow, contactByIdentity } from '../../db/audience/contacts/contacts.sql.ts'
import { type TopicRow, topicsOfTeam } from '../../db/audience/contacts/topics.sql.ts'
import { type Choice, choose, topicsOffered } from '../../db/audience/subscription/preferences.ts'
import { leaveByLink } from '../../db/audience/subscription/subscription.ts'
import { RequestError } from '../../db/errors.ts'
import { type BroadcastRow, broadcastById } from '../../db/messages/broadcasts/broadcasts.sql.ts'
import { readBroadcastToken, readUnsubscribeToken } from '../../db/messages/emails/unsubscribe-token.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { Answer } from '../http/errors.ts'
import { isUrlencoded } from '../http/forms.ts'
import { type PublicRoute, publicRoutes, type Request } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'

export type RecipientDeps = { database: Database; secrets: Secrets }

const publicRoute = publicRoutes<RecipientDeps>()

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
}

/** Loads the views with the first page. */
async function page(view: string, context: object = {}): Promise<Answer> {
  const { render } = await import('./views.ts')
  return { status: 200, headers: HEADERS, body: render(view, context) }
}

/**
 * The recipient of a link. `identity` is null for a test email. `contact` is null if it was deleted.
 * `broadcast` is the broadcast of the link, if any.
 */
type Recipient = {
  team_id: string
  identity: string | null
  contact: ContactRow | null
  broadcast: BroadcastRow | null
  isBulk: boolean
}

/** A recipient whose contact hasn't been read yet. */
type LinkTarget = Omit<Recipient, 'contact'>

async function namedByBroadcast(
  token: string,
  { database, secrets }: RecipientDeps,
): Promise<LinkTarget | null> {
  const ref = readBroadcastToken(secrets, token)
  if (!ref) return null
  const { team_id, person } = ref
  const broadcast = await broadcastById(database, team_id, ref.broadcast_id)
  return { team_id, identity: person || null, broadcast, isBulk: true }
}

function namedByEmail(token: string, { secrets }: RecipientDeps): LinkTarget | null {
  const ref = readUnsubscribeToken(secrets, token)
  return ref && { team_id: ref.team_id, identity: ref.person || null, broadcast: null, isBulk: false }
}

/** Returns the recipient of the link. @throws RequestError not_found if the token isn't ours */
async function findRecipient({ params: { token = '' } }: Request, deps: RecipientDeps): Promise<Recipient> {
  const named = (await namedByBroadcast(token, deps)) ?? namedByEmail(token, deps)
  if (!named) throw new RequestError('not_found', TEXTS.unknownLink)
  const { team_id, identity } = named
  return { ...named, contact: identity ? await contactByIdentity(deps.database, team_id, identity) : null }
}

const topicNames = ({ topic_ids }: BroadcastRow, topics: readonly TopicRow[]): string => {
  const names = topics.filter(({ id }) => topic_ids.includes(id)).map(({ name }) => name)
  return names.length === 0 ? 'these emails' : names.join(', ')
}

function preferencePage(
  { email, status, topic_ids }: ContactRow,
  topics: readonly TopicRow[],
  saved: boolean,
): Promise<Answer> {
  const isChecked = (id: string) => status === 'subscribed' && topic_ids.includes(id)
  const boxes = topics.map(({ id, name }) => ({ id, name, checked: isChecked(id) }))
  return page('preferences', { email, saved, topics: boxes, shown: topics.map(({ id }) => id).join(' ') })
}

/** The largest form, enough for 350 topics, shown and chosen. */
const MAX_FORM_BYTES = 32 * 1024

/** Returns the choice of a form of the preferences page, or null for any other. */
function readChoice(form: URLSearchParams): Choice | null {
  if (form.get('scope') !== 'topics') return null
  return { chosen: form.getAll('topic'), shown: form.get('shown')?.split(' ') ?? null }
}

/** Reads the form. A one-click request can have any other encoding. Its body isn't needed. */
async function readForm({ headers, bytes, form }: Request): Promise<URLSearchParams> {
  if (isUrlencoded(headers['content-type'] ?? '')) return form(MAX_FORM_BYTES)
  await bytes(MAX_FORM_BYTES)
  return new URLSearchParams()
}

export const unsubscribeRoutes: readonly PublicRoute<RecipientDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/u/:token',
    async handle(request, deps) {
      const { team_id, identity, contact, broadcast, isBulk } = await findRecipient(request, deps)
      if (!contact || !identity) return page('gone')
      const { database } = deps
      if (isBulk && request.search().has('preferences'))
        return preferencePage(contact, await topicsOffered(database, team_id, identity), false)
      const { email } = contact
      if (!broadcast) return page('confirm', { email })
      return page('choice', { email, topics: topicNames(broadcast, await topicsOfTeam(database, team_id)) })
    },
  }),
  publicRoute({
    method: 'POST',
    path: '/u/:token',
    async handle(request, deps) {
      // The token is checked first. If it isn't ours, the body isn't read.
      const { team_id, identity, contact, broadcast, isBulk } = await findRecipient(request, deps)
      const form = await readForm(request)
      if (!identity) return page('gone')
      const { database, secrets } = deps
      const { now } = request
      const choice = isBulk ? readChoice(form) : null
      const chosen =
        choice &&
        (await database.transaction((tx) => choose({ tx, now, secrets }, team_id, identity, choice)))
      if (chosen) return preferencePage(chosen, await topicsOffered(database, team_id, identity), true)
      const ofThese = broadcast !== null && form.get('scope') !== 'everything' && choice?.chosen.length !== 0
      const left = ofThese ? broadcast.topic_ids.filter((id) => !choice?.chosen.includes(id)) : null
      await database.transaction((tx) => leaveByLink({ tx, now, secrets }, team_id, identity, left))
      if (!contact) return page('gone')
      const topics = broadcast && left && topicNames(broadcast, await topicsOfTeam(database, team_id))
      return page('unsubscribed', { email: contact.email, topics })
    },
  }),
]
