/**
 * Unsubscribe tokens: team id, email id and a signature in base64url, so that a link finds its row by itself.
 * Promises: it cannot be guessed, and is the same at each call; nothing is stored. Must not look anything up: the
 * row may be gone.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'

const UUID_BYTES = 16
const SIGNATURE_BYTES = 16

/** The token of an email, the same at each call. */
export function unsubscribeToken(secrets: Secrets, teamId: string, emailId: string): string {
  const ids = Buffer.concat([parse(teamId), parse(emailId)])
  return Buffer.concat([ids, secrets.sign('unsubscribe', ids, SIGNATURE_BYTES)]).toString('base64url')
}

/** The link that a token makes: the page behind it is the API's. @param publicUrl where recipients reach that. */
export const unsubscribeUrl = (publicUrl: string, token: string): string =>
  `${publicUrl.replace(/\/$/, '')}/u/${token}`

export type UnsubscribeLinks = (email: { team_id: string; id: string }) => string

/** Links for emails of any team; null while nobody knows where recipients reach us. */
export const unsubscribeLinks = (secrets: Secrets, publicUrl: string | null): UnsubscribeLinks | null =>
  publicUrl === null
    ? null
    : ({ team_id, id }) => unsubscribeUrl(publicUrl, unsubscribeToken(secrets, team_id, id))

/** The email that a token was made for, or null when it is not one of ours. */
export function readUnsubscribeToken(secrets: Secrets, token: string) {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length !== 2 * UUID_BYTES + SIGNATURE_BYTES) return null
  const ids = bytes.subarray(0, 2 * UUID_BYTES)
  if (!secrets.verify('unsubscribe', ids, bytes.subarray(2 * UUID_BYTES))) return null
  return { team_id: stringify(ids), email_id: stringify(ids, UUID_BYTES) }
}
