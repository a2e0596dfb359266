/**
 * Turns a row and a template version into the message on the wire. Pure: a row gives the same message at each
 * attempt. It doesn't depend on the provider.
 */

import { ownReturnPath } from '../../db/accounts/domains/return-path.ts'
import type { CompiledVersion } from '../../db/content/templates/versions.ts'
import type { Content } from '../../db/messages/emails/content.ts'
import type { EmailRow } from '../../db/messages/emails/emails.sql.ts'
import type { OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import { bareRecipients, named, present } from '../../db/messages/emails/recipients.ts'
import { type Mailbox, parseMailbox } from '../../db/validation/address.ts'
import { UNSUBSCRIBE_SLOT } from '../../db/validation/slots.ts'
import type { DkimKey, OutgoingEmail, OutgoingFile } from '../providers/provider.ts'

/**
 * The parts to send, and those that need a secret: the domain's key, this row's return address at a domain (null if
 * too long), and its local part.
 */
type Sealing = {
  content: Content
  dkim: DkimKey | null
  ed25519: DkimKey | null
  /** True if bounces return to the From domain's own return path. */
  own_return_path: boolean
  /** Where they return to otherwise. Null means the From domain itself. */
  return_domain: string | null
  returnPathAt: (domain: string) => string | null
  reference: string
}

type Files = readonly OutgoingFile[]

/** The remaining recipients: bare addresses, one for all spellings. */
export const recipientsOf = ({ pending_recipients, to_emails }: EmailRow): string[] => [
  ...bareRecipients(pending_recipients ?? present(to_emails)).values(),
]

/**
 * Returns the List-Unsubscribe link of broadcasts and of `list_unsubscribe`, unless the client set its own header.
 */
function findUnsubscribeLink(
  { headers, variables, broadcast_id }: EmailRow,
  version: CompiledVersion | undefined,
): string | null {
  const own = Object.keys(headers ?? {}).some((name) => name.toLowerCase().startsWith('list-unsubscribe'))
  const isAsked = version?.list_unsubscribe || broadcast_id !== null
  return isAsked && !own ? (variables?.[UNSUBSCRIBE_SLOT] ?? null) : null
}

/**
 * Returns the Date header: the accepted or scheduled time, or the first claim if that was more than an hour later.
 */
const chooseDate = ({ created_at, scheduled_at, dated_at }: EmailRow & Pick<OutgoingRow, 'dated_at'>): Date =>
  new Date(dated_at ?? Math.max(Date.parse(created_at), Date.parse(scheduled_at ?? created_at)))

function returnPaths(
  from: Mailbox,
  at: Sealing['returnPathAt'],
  { own_return_path, return_domain }: Pick<Sealing, 'own_return_path' | 'return_domain'>,
): Pick<OutgoingEmail, 'return_path' | 'shared_return_path'> {
  const shared = at(return_domain ?? from.domain) ?? from.address
  const own = own_return_path ? at(ownReturnPath(from.domain)) : null
  return own === null
    ? { return_path: shared, shared_return_path: null }
    : { return_path: own, shared_return_path: shared }
}

/** @throws Error if the row's template version is missing. */
export function renderEmail<T extends boolean>(
  row: EmailRow & Pick<OutgoingRow<T>, 'test' | 'deferrals' | 'dated_at'>,
  version: CompiledVersion | undefined,
  {
    content: { html, text },
    dkim,
    ed25519,
    returnPathAt,
    reference,
    files = [],
    ...paths
  }: Sealing & { files?: Files },
): OutgoingEmail<T> {
  const from = parseMailbox(row.from_address)
  if (!from) throw new Error(`email ${row.id} has an invalid from address`)
  return {
    test: row.test,
    team_id: row.team_id,
    email_id: row.id,
    message_id: `${row.id}@${from.domain}`,
    from: row.from_address,
    ...named(row),
    recipients: recipientsOf(row),
    ...returnPaths(from, returnPathAt, paths),
    reference,
    subject: row.subject,
    html,
    text,
    reply_to: row.reply_to,
    headers: row.headers,
    list_unsubscribe: findUnsubscribeLink(row, version),
    deferrals: row.deferrals,
    date: chooseDate(row),
    dkim,
    ed25519,
    files,
    is_broadcast: row.broadcast_id !== null,
  }
}
