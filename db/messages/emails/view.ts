/** The fields of the Email object in the API's order, for the API, the CLI and replays. */

import type { CompiledVersion } from '../../content/templates/versions.ts'
import type { Secrets } from '../../process/secrets.ts'
import { addressees, recipientIdentity } from '../../validation/addressees.ts'
import { pick } from '../../validation/keys.ts'
import { shownTimes } from '../../validation/moments.ts'
import { type Content, shownContent, sizeKb } from './content.ts'
import type { EmailRow } from './emails.sql.ts'
import { broadcastToken, unsubscribeToken } from './unsubscribe-token.ts'

export type EmailView = ReturnType<typeof toView>

/** Lists leave out the bodies, because each HTML part can have a mebibyte. */
export type ListedEmail = Omit<EmailView, 'html' | 'body_text'>

/** @param version required if the row names one. @throws Error if it is missing. */
export function emailView(row: EmailRow, version: CompiledVersion | undefined, secrets: Secrets): EmailView {
  const { html, text } = shownContent(row, version)
  return toView(row, { html, text, size_kb: row.size_kb ?? sizeKb(html) }, secrets)
}

/** Does the same as `emailView` for lists. `html` or `version` is only needed if the size isn't stored. */
export function listedEmail(
  row: EmailRow,
  version: CompiledVersion | undefined,
  secrets: Secrets,
): ListedEmail {
  const size_kb = row.size_kb ?? sizeKb(shownContent(row, version).html)
  const { html: _html, body_text: _text, ...listed } = toView(row, { html: '', text: '', size_kb }, secrets)
  return listed
}

/** Returns the token of its unsubscribe link. */
function signToken(
  { team_id, id, broadcast_id, contact_id, to_emails: [to = ''] }: EmailRow,
  secrets: Secrets,
): string | null {
  if (contact_id === null) return null
  const person = recipientIdentity(to)
  return broadcast_id === null
    ? unsubscribeToken(secrets, { team_id, id, person })
    : broadcastToken(secrets, { team_id, broadcast_id, person })
}

function toView(row: EmailRow, { html, text, size_kb }: Content & { size_kb: number }, secrets: Secrets) {
  const { to, cc, bcc } = addressees(row)
  return {
    ...pick(row, 'id', 'team_id', 'domain_id', 'template_id', 'from_address'),
    to_emails: to,
    // Left out if empty, like attachments and times that weren't given.
    ...(cc.length > 0 ? { cc_emails: cc } : {}),
    ...(bcc.length > 0 ? { bcc_emails: bcc } : {}),
    subject: row.subject,
    html,
    size_kb,
    ...pick(row, 'tags', 'status', 'idempotency_key', 'created_at', 'requeued_at', 'provider_message_id'),
    ...pick(row, 'broadcast_id', 'contact_id'),
    unsubscribe_token: signToken(row, secrets),
    body_text: text,
    ...pick(row, 'headers', 'reply_to'),
    ...(row.attachments === null ? {} : { attachments: row.attachments }),
    ...shownTimes(row),
  }
}
