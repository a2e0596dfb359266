/**
 * Tokens of links that unsubscribe: team and another id, and the person's address under SECRET_KEY, so that a link
 * works after what it came in is gone, and for a contact that was made again. Promises: it cannot be guessed or read,
 * and is the same at each call; nothing is stored. Must not look anything up.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'

const UUID_BYTES = 16
const IDS_BYTES = 2 * UUID_BYTES

/** What a link comes in: a single email, or one of a broadcast. */
export const LINK_PURPOSES = ['unsubscribe', 'unsubscribe-broadcast'] as const
type LinkPurpose = (typeof LINK_PURPOSES)[number]

/** `id`: of what the link comes in. `person`: the identity of the address; '' for nobody's. */
type Named = { team_id: string; id: string; person: string }

export function personToken(secrets: Secrets, purpose: LinkPurpose, { team_id, id, person }: Named): string {
  const ids = Buffer.concat([parse(team_id), parse(id)])
  const sealed = secrets.encryptAlike(purpose, Buffer.from(person), ids.toString('hex'))
  return Buffer.concat([ids, sealed]).toString('base64url')
}

/** Whether a text begins as a token of this team does: far less to do than to open it. */
export const namesTeam = (token: string, teamId: string): boolean =>
  Buffer.from(token.slice(0, 22), 'base64url').equals(parse(teamId))

/** Whom a token was made for, or null when it is not one of ours for this purpose. */
export function readPersonToken(secrets: Secrets, purpose: LinkPurpose, token: string): Named | null {
  const bytes = Buffer.from(token, 'base64url')
  const ids = bytes.subarray(0, IDS_BYTES)
  if (bytes.length <= IDS_BYTES) return null
  try {
    const person = secrets.decrypt(purpose, bytes.subarray(IDS_BYTES), ids.toString('hex')).toString()
    return { team_id: stringify(ids), id: stringify(ids, UUID_BYTES), person }
  } catch {
    return null
  }
}
