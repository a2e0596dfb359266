/**
 * Tokens in the links of broadcasts: team, broadcast, contact and a signature in base64url, so that a link works after
 * its email is gone. Promises: it cannot be guessed, and is the same at each call; nothing is stored. Must not look
 * anything up.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'

const UUID_BYTES = 16
const SIGNATURE_BYTES = 16
const PURPOSE = 'unsubscribe-broadcast'

export type BroadcastRecipient = { team_id: string; broadcast_id: string; contact_id: string }

/** The token of a contact in a broadcast. */
export function broadcastToken(
  secrets: Secrets,
  { team_id, broadcast_id, contact_id }: BroadcastRecipient,
): string {
  const ids = Buffer.concat([parse(team_id), parse(broadcast_id), parse(contact_id)])
  return Buffer.concat([ids, secrets.sign(PURPOSE, ids, SIGNATURE_BYTES)]).toString('base64url')
}

/** Whom a token was made for, or null when it is not one of ours. */
export function readBroadcastToken(secrets: Secrets, token: string): BroadcastRecipient | null {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length !== 3 * UUID_BYTES + SIGNATURE_BYTES) return null
  const ids = bytes.subarray(0, 3 * UUID_BYTES)
  if (!secrets.verify(PURPOSE, ids, bytes.subarray(3 * UUID_BYTES))) return null
  const [team_id, broadcast_id, contact_id] = [0, 1, 2].map((at) => stringify(ids, at * UUID_BYTES))
  return { team_id: team_id ?? '', broadcast_id: broadcast_id ?? '', contact_id: contact_id ?? '' }
}
