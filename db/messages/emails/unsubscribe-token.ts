/** Tokens and links to unsubscribe from single emails: team, email and address (person-token.ts). */
import type { Secrets } from '../../process/secrets.ts'
import { personToken, readPersonToken } from './person-token.ts'

const PURPOSE = 'unsubscribe'

/** `person`: the identity of its only recipient. */
type EmailRecipient = { team_id: string; id: string; person: string }

export const unsubscribeToken = (secrets: Secrets, email: EmailRecipient): string =>
  personToken(secrets, PURPOSE, email)

/** Returns the link for a token. The API serves its page. @param publicUrl where recipients reach the API. */
export const unsubscribeUrl = (publicUrl: string, token: string): string =>
  `${publicUrl.replace(/\/$/, '')}/u/${token}`

export type UnsubscribeLinks = (email: EmailRecipient) => string

/** Returns a function that creates links for emails of any team. Null if the public URL is unknown. */
export const unsubscribeLinks = (secrets: Secrets, publicUrl: string | null): UnsubscribeLinks | null =>
  publicUrl === null ? null : (email) => unsubscribeUrl(publicUrl, unsubscribeToken(secrets, email))

/** Returns the email and address of a token, or null if it isn't ours. */
export const readUnsubscribeToken = (secrets: Secrets, token: string): EmailRecipient | null =>
  readPersonToken(secrets, PURPOSE, token)
