/** Tokens in the links of broadcasts: team, broadcast and person (sealed-token.ts). */
import type { Secrets } from '../../process/secrets.ts'
import { openedToken, sealedToken } from './sealed-token.ts'

/** `person`: the identity of the address; '' for nobody's. */
type BroadcastRecipient = { team_id: string; broadcast_id: string; person: string }

export const broadcastToken = (
  secrets: Secrets,
  { team_id, broadcast_id: id, person }: BroadcastRecipient,
): string => sealedToken(secrets, 'unsubscribe-broadcast', { team_id, id, person })

/** Whom a token was made for, or null when it is not one of ours. */
export function readBroadcastToken(secrets: Secrets, token: string): BroadcastRecipient | null {
  const read = openedToken(secrets, 'unsubscribe-broadcast', token)
  return read && { team_id: read.team_id, broadcast_id: read.id, person: read.person }
}
