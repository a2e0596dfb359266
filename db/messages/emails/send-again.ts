/**
 * Sends the content of an email again as a new email: a copy to the current user, or to a corrected address. In the
 * same transaction, both timelines are linked, and a corrected address is recorded in the audit log. Unsubscribe
 * links work for the new recipient, and for no one in a copy. Not for internal email.
 */
import { type By, record } from '../../accounts/audit/record.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import { reusedFiles } from '../../content/files/reuse.ts'
import { deliveryState } from '../../delivery/requeue.sql.ts'
import { purgedError } from '../../delivery/requeue.ts'
import { RequestError, requestError } from '../../errors.ts'
import type { Secrets } from '../../process/secrets.ts'
import { formatMailbox, type Mailbox, parseMailbox } from '../../validation/address.ts'
import { recipientIdentity } from '../../validation/addressees.ts'
import { TEXTS } from '../texts.ts'
import { type AcceptDeps, acceptEmails, type EmailOutcome } from './accept.ts'
import type { EmailItem } from './call.ts'
import { emailItem } from './item.ts'
import { linkEmails } from './links.ts'
import { everyone } from './recipients.ts'
import type { ShownEmail } from './show.ts'
import type { Again } from './status.ts'
import { LINK_PURPOSES, namesTeam, personToken, readPersonToken } from './unsubscribe-token.ts'

type Outcomes = readonly EmailOutcome[]

type AgainDeps = AcceptDeps & By & { secrets: Secrets }

async function sendAgain(
  deps: AgainDeps,
  email: ShownEmail,
  how: Again,
  changes: Pick<EmailItem, 'to' | 'tags' | 'reply_to' | 'headers'> & { person: string },
): Promise<Outcomes> {
  const ref = { team_id: email.team_id, id: email.id }
  if ((await deliveryState(deps.tx, EMAIL, ref))?.emptied) throw purgedError(EMAIL)
  const from = parseMailbox(email.from_address)
  if (!from || email.internal) throw new RequestError('bad_request', TEXTS.cannotCopy)
  const { team_id, subject, attachments } = email
  const { person, ...said } = changes
  const relinked = relinker(deps.secrets, email, person)
  const [html, text] = [relinked(email.html), relinked(email.body_text)]
  const item = emailItem({
    ...{ from, subject, html, text: text === '' ? null : text, ...said },
    ...(attachments ? { attachments: await reusedFiles(deps.tx, team_id, attachments) } : {}),
  })
  const outcomes = await acceptEmails(deps, { team_id, domain: null }, [item])
  for (const outcome of outcomes) {
    if (outcome.kind === 'stored')
      await linkEmails(deps, team_id, { original: email.id, fresh: outcome.row.id, how })
  }
  return outcomes
}

/** Sends a copy to an address. @throws RequestError. */
export const copyEmail = (deps: AgainDeps, email: ShownEmail, address: string): Promise<Outcomes> =>
  sendAgain(deps, email, 'copied', { to: [address], tags: ['copy'], reply_to: '', headers: null, person: '' })

/** Sends the email unchanged to another address. If it had one recipient, the name stays. @throws RequestError. */
export async function resendEmail(deps: AgainDeps, email: ShownEmail, { name, address, domain }: Mailbox) {
  if (email.broadcast_id !== null) throw new RequestError('bad_request', TEXTS.copyOfBroadcast)
  const { team_id, id: subject, tags, reply_to, headers } = email
  const all = everyone(email)
  const [former = ''] = all.length === 1 ? all : []
  const to = [formatMailbox({ name: name ?? parseMailbox(former)?.name ?? null, address, domain })]
  const person = recipientIdentity(address)
  const outcomes = await sendAgain(deps, email, 'resent', { to, tags, reply_to, headers, person })
  for (const outcome of outcomes) {
    if (outcome.kind === 'stored')
      await record(deps, { team_id, action: 'email.resend', subject, detail: outcome.row.id })
  }
  return outcomes
}

/** Matches text that may be a link token. */
const LINK_TOKEN = /(?<=\/u\/)[\w-]{60,}/g
/** The maximum number of different links of its team in an email. Decrypting each is slow. */
const MAX_LINKS = 100

/**
 * Returns a function that replaces the unsubscribe links in a part of the email with those of an address, or '' for no
 * one. Links of other teams or addresses don't change, so that a user can't create a link by entering an address.
 * @throws RequestError bad_request if the email has too many links.
 */
function relinker(secrets: Secrets, email: ShownEmail, person: string): (part: string) => string {
  const recipients = new Set(everyone(email).map(recipientIdentity))
  const links = new Map<string, string>()
  function toLink(token: string): string {
    if (links.size === MAX_LINKS) throw requestError('bad_request', TEXTS.tooManyLinks, { most: MAX_LINKS })
    for (const purpose of LINK_PURPOSES) {
      const named = readPersonToken(secrets, purpose, token)
      if (named && recipients.has(named.person)) return personToken(secrets, purpose, { ...named, person })
    }
    return token
  }
  return (part) =>
    part.replace(LINK_TOKEN, (token) => {
      if (!namesTeam(token, email.team_id)) return token
      const link = links.get(token) ?? toLink(token)
      links.set(token, link)
      return link
    })
}
