/**
 * What the tokens of unsubscribe links are made of: team and what the link came with, and the person's address under
 * SECRET_KEY, so that a link works after its email is gone, and for a contact that was made again. Promises: a token
 * cannot be guessed or read, and is the same at each call; nothing is stored. Must not look anything up.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'

const UUID_BYTES = 16
const IDS_BYTES = 2 * UUID_BYTES

/** What a link came with: one kind's tokens are never another's. */
type Kind = 'unsubscribe' | 'unsubscribe-broadcast'

/** `id`: of what the link came with. `person`: the identity of the address; '' for nobody's. */
type Sealed = { team_id: string; id: string; person: string }

export function sealedToken(secrets: Secrets, kind: Kind, { team_id, id, person }: Sealed): string {
  const ids = Buffer.concat([parse(team_id), parse(id)])
  return Buffer.concat([ids, secrets.encryptAlike(kind, Buffer.from(person), ids.toString('hex'))]).toString(
    'base64url',
  )
}

/** What a token was made of, or null when it is not one of ours of this kind. */
export function openedToken(secrets: Secrets, kind: Kind, token: string): Sealed | null {
  const bytes = Buffer.from(token, 'base64url')
  const ids = bytes.subarray(0, IDS_BYTES)
  const person = bytes.length > IDS_BYTES ? opened(secrets, kind, ids, bytes.subarray(IDS_BYTES)) : null
  if (person === null) return null
  return { team_id: stringify(ids), id: stringify(ids, UUID_BYTES), person }
}

function opened(secrets: Secrets, kind: Kind, ids: Buffer, sealed: Buffer): string | null {
  try {
    return secrets.decrypt(kind, sealed, ids.toString('hex')).toString()
  } catch {
    return null
  }
}
