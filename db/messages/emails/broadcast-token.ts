/** Tokens for links in broadcasts: team, broadcast and address (person-token.ts). */
import type { Secrets } from '../../process/secrets.ts'
import { personToken, readPersonToken } from './person-token.ts'

const PURPOSE = 'unsubscribe-broadcast'

/** `person`: the identity of the address, or '' for a link that unsubscribes no one. */
type BroadcastRecipient = { team_id: string; broadcast_id: string; person: string }

export const broadcastToken = (
  secrets: Secrets,
  { broadcast_id: id, ...named }: BroadcastRecipient,
): string => personToken(secrets, PURPOSE, { ...named, id })

/** Returns the recipient of a token, or null if the token isn't ours. */
export function readBroadcastToken(secrets: Secrets, token: string): BroadcastRecipient | null {
  const named = readPersonToken(secrets, PURPOSE, token)
  return named && { team_id: named.team_id, broadcast_id: named.id, person: named.person }
}
