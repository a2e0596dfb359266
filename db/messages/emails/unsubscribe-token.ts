/** Tokens in the unsubscribe links of single emails: team, email and person (sealed-token.ts); and these links. */
import type { Secrets } from '../../process/secrets.ts'
import { openedToken, sealedToken } from './sealed-token.ts'

/** `person`: the identity of the address; '' for nobody's. */
type EmailRecipient = { team_id: string; email_id: string; person: string }

/** The token of an email, the same at each call. */
export const unsubscribeToken = (
  secrets: Secrets,
  { team_id, email_id: id, person }: EmailRecipient,
): string => sealedToken(secrets, 'unsubscribe', { team_id, id, person })

/** The link that a token makes: the page behind it is the API's. @param publicUrl where recipients reach that. */
export const unsubscribeUrl = (publicUrl: string, token: string): string =>
  `${publicUrl.replace(/\/$/, '')}/u/${token}`

export type UnsubscribeLinks = (recipient: EmailRecipient) => string

/** Links for emails of any team; null while nobody knows where recipients reach us. */
export const unsubscribeLinks = (secrets: Secrets, publicUrl: string | null): UnsubscribeLinks | null =>
  publicUrl === null ? null : (recipient) => unsubscribeUrl(publicUrl, unsubscribeToken(secrets, recipient))

/** Whom a token was made for, or null when it is not one of ours. */
export function readUnsubscribeToken(secrets: Secrets, token: string): EmailRecipient | null {
  const read = openedToken(secrets, 'unsubscribe', token)
  return read && { team_id: read.team_id, email_id: read.id, person: read.person }
}
