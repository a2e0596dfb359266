/**
 * Tokens and links to unsubscribe: the team, the email or broadcast, and the recipient's address, encrypted with
 * SECRET_KEY. A token never changes, and works after its email or contact was deleted. Nothing is stored.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'

const UUID_BYTES = 16
const IDS_BYTES = 2 * UUID_BYTES

/** The message with the link: a single email, or one of a broadcast. */
export const LINK_PURPOSES = ['unsubscribe', 'unsubscribe-broadcast'] as const
type LinkPurpose = (typeof LINK_PURPOSES)[number]

/** The ID of the email or broadcast, and the identity of the address, or '' for a link that unsubscribes no one. */
type Named = { team_id: string; id: string; person: string }
type BroadcastRecipient = { team_id: string; broadcast_id: string; person: string }

export function personToken(secrets: Secrets, purpose: LinkPurpose, { team_id, id, person }: Named): string {
  const ids = Buffer.concat([parse(team_id), parse(id)])
  const sealed = secrets.encryptAlike(purpose, Buffer.from(person), ids.toString('hex'))
  return Buffer.concat([ids, sealed]).toString('base64url')
}

/** True if a text starts like a token of this team. Much cheaper than opening it. */
export const namesTeam = (token: string, teamId: string): boolean =>
  Buffer.from(token.slice(0, 22), 'base64url').equals(parse(teamId))

/** Returns the contents of a token, or null if it isn't ours for this purpose. */
export function readPersonToken(secrets: Secrets, purpose: LinkPurpose, token: string): Named | null {
  const bytes = Buffer.from(token, 'base64url')
  const ids = bytes.subarray(0, IDS_BYTES)
  if (bytes.length <= IDS_BYTES) return null
  // The last character has unused bits. Characters appended by a mail client are ignored.
  if (!token.startsWith(bytes.toString('base64url'))) return null
  try {
    const person = secrets.decrypt(purpose, bytes.subarray(IDS_BYTES), ids.toString('hex')).toString()
    return { team_id: stringify(ids), id: stringify(ids, UUID_BYTES), person }
  } catch {
    return null
  }
}

export const unsubscribeToken = (secrets: Secrets, email: Named): string =>
  personToken(secrets, 'unsubscribe', email)

export const broadcastToken = (
  secrets: Secrets,
  { broadcast_id: id, ...named }: BroadcastRecipient,
): string => personToken(secrets, 'unsubscribe-broadcast', { ...named, id })

/** Returns the email and address of a token, or null if it isn't ours. */
export const readUnsubscribeToken = (secrets: Secrets, token: string): Named | null =>
  readPersonToken(secrets, 'unsubscribe', token)

/** Does the same for a token of a broadcast. */
export function readBroadcastToken(secrets: Secrets, token: string): BroadcastRecipient | null {
  const named = readPersonToken(secrets, 'unsubscribe-broadcast', token)
  return named && { team_id: named.team_id, broadcast_id: named.id, person: named.person }
}

/** Returns the link for a token. The API serves its page. @param publicUrl where recipients reach the API. */
export const unsubscribeUrl = (publicUrl: string, token: string): string =>
  `${publicUrl.replace(/\/$/, '')}/u/${token}`

export type UnsubscribeLinks = (email: Named) => string

/** Returns a function that creates links for emails of any team. Null if the public URL is unknown. */
export const unsubscribeLinks = (secrets: Secrets, publicUrl: string | null): UnsubscribeLinks | null =>
  publicUrl === null ? null : (email) => unsubscribeUrl(publicUrl, unsubscribeToken(secrets, email))
