/** Tokens and links that unsubscribe, of single emails: team, email and person (person-token.ts). */
import type { Secrets } from '../../process/secrets.ts'
import { personToken, readPersonToken } from './person-token.ts'

const PURPOSE = 'unsubscribe'

/** `person`: the identity of its only recipient. */
type EmailRecipient = { team_id: string; id: string; person: string }

/** The token of an email, the same at each call. */
export const unsubscribeToken = (secrets: Secrets, email: EmailRecipient): string =>
  personToken(secrets, PURPOSE, email)

/** The link that a token makes: the page behind it is the API's. @param publicUrl where recipients reach that. */
export const unsubscribeUrl = (publicUrl: string, token: string): string =>
  `${publicUrl.replace(/\/$/, '')}/u/${token}`

export type UnsubscribeLinks = (email: EmailRecipient) => string

/** Links for emails of any team; null while nobody knows where recipients reach us. */
export const unsubscribeLinks = (secrets: Secrets, publicUrl: string | null): UnsubscribeLinks | null =>
  publicUrl === null ? null : (email) => unsubscribeUrl(publicUrl, unsubscribeToken(secrets, email))

/** The email and the person that a token was made for, or null when it is not one of ours. */
export const readUnsubscribeToken = (secrets: Secrets, token: string): EmailRecipient | null =>
  readPersonToken(secrets, PURPOSE, token)
