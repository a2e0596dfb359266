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
import { choose, topicsOffered } from '../../db/audience/subscription/preferences.ts'
import { leaveByLink } from '../../db/audience/subscription/subscription.ts'
import { RequestError } from '../../db/errors.ts'
import { type BroadcastRow, broadcastById } from '../../db/messages/broadcasts/broadcasts.sql.ts'
import { readBroadcastToken } from '../../db/messages/emails/broadcast-token.ts'
import { readUnsubscribeToken } from '../../db/messages/emails/unsubscribe-token.ts'
import { escapeHtml } from '../../db/validation/slots.ts'
import type { Answer } from '../http/errors.ts'
import { isUrlencoded } from '../http/forms.ts'
import type { PublicRoute, Request } from '../http/route.ts'
import { TEXTS } from '../http/texts.ts'
import { publicRoute, type RecipientDeps } from './deps.ts'

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex',
}

const STYLE = `
  body { font: 1.125rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1.5rem; color: #222 }
  strong { overflow-wrap: anywhere }
  fieldset { border: 0; padding: 0; margin: 0 0 1rem }
  label { display: block; padding: .25rem 0; overflow-wrap: anywhere }
  form { margin: 0 0 1rem }
  button { font: inherit; padding: .5rem 1.25rem; border: 0; border-radius: .25rem; background: #1a4fa0; color: #fff }`

/** Returns a complete page. @param body is HTML */
const page = (title: string, body: string): Answer => ({
  status: 200,
  headers: HEADERS,
  body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`,
})

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
type Named = Omit<Recipient, 'contact'>

async function namedByBroadcast(token: string, { database, secrets }: RecipientDeps): Promise<Named | null> {
  const ref = readBroadcastToken(secrets, token)
  if (!ref) return null
  const { team_id, person } = ref
  const broadcast = await broadcastById(database, team_id, ref.broadcast_id)
  return { team_id, identity: person || null, broadcast, isBulk: true }
}

function namedByEmail(token: string, { secrets }: RecipientDeps): Named | null {
  const ref = readUnsubscribeToken(secrets, token)
  return ref && { team_id: ref.team_id, identity: ref.person || null, broadcast: null, isBulk: false }
}

/** Returns the recipient of the link. @throws RequestError not_found if the token isn't ours */
async function recipientOf({ params: { token = '' } }: Request, deps: RecipientDeps): Promise<Recipient> {
  const named = (await namedByBroadcast(token, deps)) ?? namedByEmail(token, deps)
  if (!named) throw new RequestError('not_found', TEXTS.unknownLink)
  const { team_id, identity } = named
  return { ...named, contact: identity ? await contactByIdentity(deps.database, team_id, identity) : null }
}

const shownOf = ({ email }: ContactRow): string => `<strong>${escapeHtml(email)}</strong>`

const button = (words: string, fields: Readonly<Record<string, string>> = {}): string => {
  const hidden = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
  )
  return `<form method="post">${hidden.join('')}<button>${words}</button></form>`
}

const GONE = page('Unsubscribed', '<p>You aren’t subscribed to these emails.</p>')

const ofTopics = ({ topic_ids }: BroadcastRow, topics: readonly TopicRow[]): string => {
  const names = topics.filter(({ id }) => topic_ids.includes(id)).map(({ name }) => escapeHtml(name))
  return names.length === 0 ? 'these emails' : names.join(', ')
}

/** Returns the page of a broadcast's link: its topics, everything, and a link to all topics. */
function choicePage(contact: ContactRow, broadcast: BroadcastRow, topics: readonly TopicRow[]): Answer {
  const names = ofTopics(broadcast, topics)
  return page(
    'Unsubscribe',
    `<p>Stop sending ${names} to ${shownOf(contact)}?</p>
${button(`Unsubscribe from ${names}`)}
${button('Unsubscribe from everything', { scope: 'everything' })}
<p><a href="?preferences=1">Choose topics</a></p>`,
  )
}

function preferencePage(contact: ContactRow, topics: readonly TopicRow[], saved: boolean): Answer {
  const isOn = ({ id }: TopicRow) => contact.status === 'subscribed' && contact.topic_ids.includes(id)
  const boxes = topics.map(
    (topic) =>
      `<label><input type="checkbox" name="topic" value="${topic.id}"${isOn(topic) ? ' checked' : ''}> ${escapeHtml(topic.name)}</label>`,
  )
  if (topics.length === 0)
    return page('Email preferences', `<p>${shownOf(contact)} has no topics to choose from.</p>`)
  return page(
    'Email preferences',
    `<p>${saved ? 'Saved. ' : ''}Topics for ${shownOf(contact)}:</p>
<form method="post"><input type="hidden" name="scope" value="topics"><fieldset>${boxes.join('\n')}</fieldset><button>Save</button></form>`,
  )
}

/** The largest form, enough for the IDs of 350 topics. */
const MAX_FORM_BYTES = 16 * 1024

/** Reads the form. A one-click request can have any other encoding. Its body isn't needed. */
async function formOf({ headers, bytes, form }: Request): Promise<URLSearchParams> {
  if (isUrlencoded(headers['content-type'] ?? '')) return form(MAX_FORM_BYTES)
  await bytes(MAX_FORM_BYTES)
  return new URLSearchParams()
}

export const unsubscribeRoutes: readonly PublicRoute<RecipientDeps>[] = [
  publicRoute({
    method: 'GET',
    path: '/u/:token',
    access: 'public',
    async handle(request, deps) {
      const { team_id, identity, contact, broadcast, isBulk } = await recipientOf(request, deps)
      if (!contact || !identity) return GONE
      const { database } = deps
      if (isBulk && request.search().has('preferences'))
        return preferencePage(contact, await topicsOffered(database, team_id, identity), false)
      if (broadcast) return choicePage(contact, broadcast, await topicsOfTeam(database, team_id))
      return page(
        'Unsubscribe',
        `<p>Stop sending emails to ${shownOf(contact)}?</p>\n${button('Unsubscribe')}`,
      )
    },
  }),
  publicRoute({
    method: 'POST',
    path: '/u/:token',
    access: 'public',
    async handle(request, deps) {
      // The token is checked first. If it isn't ours, the body isn't read.
      const { team_id, identity, contact, broadcast, isBulk } = await recipientOf(request, deps)
      const form = await formOf(request)
      if (!identity) return GONE
      const { database, secrets } = deps
      const { now } = request
      const ticked = isBulk && form.get('scope') === 'topics' ? form.getAll('topic') : null
      if (contact && ticked) {
        const chosen = await database.transaction((tx) =>
          choose({ tx, now, secrets }, team_id, identity, ticked),
        )
        return preferencePage(chosen, await topicsOffered(database, team_id, identity), true)
      }
      const ofThese = broadcast !== null && form.get('scope') !== 'everything' && ticked?.length !== 0
      const left = ofThese ? broadcast.topic_ids.filter((id) => !ticked?.includes(id)) : null
      await database.transaction((tx) => leaveByLink({ tx, now, secrets }, team_id, identity, left))
      if (!contact) return GONE
      const names =
        broadcast && left ? ` from ${ofTopics(broadcast, await topicsOfTeam(database, team_id))}` : ''
      return page('Unsubscribed', `<p>${shownOf(contact)} is unsubscribed${names}.</p>`)
    },
  }),
]
