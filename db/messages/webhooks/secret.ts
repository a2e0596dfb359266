/**
 * Webhook signing secrets in the format of Standard Webhooks 1.0.0: `whsec_` and base64 of 32 bytes. Stored
 * encrypted, for one endpoint each. The decoded bytes sign "id.timestamp.body".
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { Secrets } from '../../process/secrets.ts'

const PREFIX = 'whsec_'
const BYTES = 32

type Owner = { team_id: string; id: string }

const about = ({ team_id, id }: Owner): string => `${team_id}/${id}`

/** Creates a secret. Returns the text to show to the user, and the encrypted value to store. */
export function makeSecret(secrets: Pick<Secrets, 'encrypt'>, owner: Owner) {
  const key = randomBytes(BYTES)
  return { shown: `${PREFIX}${key.toString('base64')}`, sealed: sealSecret(secrets, owner, key) }
}

export const sealSecret = (secrets: Pick<Secrets, 'encrypt'>, owner: Owner, key: Buffer): Buffer =>
  secrets.encrypt('webhook', key, about(owner))

/** @throws Error if it wasn't encrypted for this endpoint with a key that we know. */
export const openSecret = (secrets: Pick<Secrets, 'decrypt'>, owner: Owner, sealed: Buffer): Buffer =>
  secrets.decrypt('webhook', sealed, about(owner))

/** Prepares a secret for many signatures. @throws Error as `openSecret` does. */
export const signingKey = (secrets: Pick<Secrets, 'decrypt'>, owner: Owner, sealed: Buffer): KeyObject =>
  createSecretKey(openSecret(secrets, owner, sealed))

/** Returns the headers of an attempt. `at` is its time. Every current key signs. */
export function signedHeaders(
  keys: readonly KeyObject[],
  { event_id, body }: { event_id: string; body: string },
  at: Date,
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000))
  const content = `${event_id}.${timestamp}.${body}`
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(content).digest('base64')}`)
  return { 'webhook-id': event_id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}
