/**
 * /u/:token, the link in an email that unsubscribes its recipient: a page with one button, and the POST behind it,
 * which mail programs also send by themselves (RFC 8058 one-click).
 * Promises: nothing changes on GET, since scanners follow links; the signed token is the only credential; one that
 * was not made by us, or whose email or contact is gone, is 404.
 */

import { contactByIdentity } from '../db/contacts/contacts.sql.ts'
import { unsubscribe } from '../db/contacts/subscription.ts'
import { addresseesOfEmail } from '../db/emails/emails.sql.ts'
import { recipientIdentity } from '../db/emails/recipients.ts'
import { readUnsubscribeToken } from '../db/emails/unsubscribe-token.ts'
import { Refusal } from '../db/errors.ts'
import { escapeHtml } from '../db/text/slots.ts'
import type { Answer } from './errors.ts'
import { type Deps, type PublicRoute, publicRoute, type Request } from './route.ts'

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
  button { font: inherit; padding: .5rem 1.25rem; border: 0; border-radius: .25rem; background: #1a4fa0; color: #fff }`

/** A whole page around a body that is HTML already. */
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

/** Whose link this is. An email to a stored contact has one recipient. @throws Refusal not_found. */
async function recipientOf({ params }: Request, { database, secrets }: Deps) {
  const unknown = () => new Refusal('not_found', 'this link is unknown or no longer valid')
  const ref = readUnsubscribeToken(secrets, params.token ?? '')
  const email = ref && (await addresseesOfEmail(database, ref.team_id, ref.email_id))
  const [address] = email?.to_emails ?? []
  if (!email || email.contact_id === null || address === undefined) throw unknown()
  const identity = recipientIdentity(address)
  const contact = await contactByIdentity(database, ref.team_id, identity)
  if (!contact) throw unknown()
  return { team_id: ref.team_id, identity, shown: `<strong>${escapeHtml(contact.email)}</strong>` }
}

export const unsubscribeRoutes: readonly PublicRoute[] = [
  publicRoute({
    method: 'GET',
    path: '/u/:token',
    access: 'public',
    async handle(request, deps) {
      const { shown } = await recipientOf(request, deps)
      const form = '<form method="post"><button>Unsubscribe</button></form>'
      return page('Unsubscribe', `<p>Stop sending emails to ${shown}?</p>\n${form}`)
    },
  }),
  publicRoute({
    method: 'POST',
    path: '/u/:token',
    access: 'public',
    // The body is not looked at: the button sends none, one-click says `List-Unsubscribe=One-Click`.
    async handle(request, deps) {
      const { team_id, identity, shown } = await recipientOf(request, deps)
      await deps.database.transaction((tx) => unsubscribe({ tx, now: request.now }, team_id, identity))
      return page('Unsubscribed', `<p>${shown} is unsubscribed.</p>`)
    },
  }),
]
