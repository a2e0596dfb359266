/**
 * Tokens in the links of broadcasts: team and broadcast, and the person's address under SECRET_KEY, so that a link
 * works after its email is gone, and for a contact that was made again. Promises: it cannot be guessed or read, and is
 * the same at each call; nothing is stored. Must not look anything up.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'

const UUID_BYTES = 16
const IDS_BYTES = 2 * UUID_BYTES
const PURPOSE = 'unsubscribe-broadcast'

/** `person`: the identity of the address; '' for nobody's. */
type BroadcastRecipient = { team_id: string; broadcast_id: string; person: string }

export function broadcastToken(secrets: Secrets, { team_id, broadcast_id, person }: BroadcastRecipient) {
  const ids = Buffer.concat([parse(team_id), parse(broadcast_id)])
  const sealed = secrets.encryptAlike(PURPOSE, Buffer.from(person), ids.toString('hex'))
  return Buffer.concat([ids, sealed]).toString('base64url')
}

/** Whom a token was made for, or null when it is not one of ours. */
export function readBroadcastToken(secrets: Secrets, token: string): BroadcastRecipient | null {
  const bytes = Buffer.from(token, 'base64url')
  const ids = bytes.subarray(0, IDS_BYTES)
  const person = bytes.length > IDS_BYTES ? opened(secrets, ids, bytes.subarray(IDS_BYTES)) : null
  if (person === null) return null
  return { team_id: stringify(ids), broadcast_id: stringify(ids, UUID_BYTES), person }
}

function opened(secrets: Secrets, ids: Buffer, sealed: Buffer): string | null {
  try {
    return secrets.decrypt(PURPOSE, sealed, ids.toString('hex')).toString()
  } catch {
    return null
  }
}
