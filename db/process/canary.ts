/**
 * Checks that SECRET_KEY is the key that this database was used with, and then creates the secrets. A process with
 * another key stops at the start, instead of failing at each email. The first process that uses a database sets the
 * key.
 */
import type { Tx } from '../postgres/pool.ts'
import { insertCanary, readCanary, replaceCanary } from './canary.sql.ts'
import { SettingsFault } from './config.ts'
import { createSecrets, type Secrets } from './secrets.ts'

/** The key, and the one that it replaces or that will replace it. */
type SecretKeys = { SECRET_KEY: string; SECRET_KEY_PREVIOUS?: string | undefined }

const TEXT = Buffer.from('heliograph')

const ANOTHER_KEY =
  "SECRET_KEY isn't the key that this database was used with. Set the earlier key. To keep the new one, set " +
  'SECRET_KEY_PREVIOUS to the earlier key'

const opens = (secrets: Secrets, sealed: Buffer): boolean => {
  try {
    return secrets.decrypt('canary', sealed).equals(TEXT)
  } catch {
    return false
  }
}

/** @throws SettingsFault if this database was used with other keys. */
export async function openSecrets(tx: Tx, keys: SecretKeys): Promise<Secrets> {
  const secrets = createSecrets(keys.SECRET_KEY, keys.SECRET_KEY_PREVIOUS)
  if ((await readCanary(tx)) === null) await insertCanary(tx, secrets.encrypt('canary', TEXT))
  const sealed = await readCanary(tx)
  if (sealed === null || !opens(secrets, sealed)) throw new SettingsFault([ANOTHER_KEY])
  return secrets
}

/** Encrypts the canary with SECRET_KEY. */
export const resealCanary = (tx: Tx, secrets: Secrets) => replaceCanary(tx, secrets.encrypt('canary', TEXT))
