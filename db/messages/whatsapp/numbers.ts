/**
 * The numbers that WhatsApp messages are sent from. The default one comes from the workers' settings. Each other one
 * is a row with its own credentials, encrypted with SECRET_KEY.
 */
import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { SettingsFault } from '../../process/config.ts'
import type { Secrets } from '../../process/secrets.ts'
import {
  lockSealedNumbers,
  otherNumberOfId,
  type SealedNumber,
  storeDefaultNumber,
  updateSealedNumbers,
} from './numbers.sql.ts'
import { TEXTS } from './texts.ts'

/** The encrypted columns of a number. */
type Credential = 'access_token' | 'app_secret'

/** A credential can only be decrypted for its own number and use. */
const nameCredential = (name: string, credential: Credential): string => `${name}/${credential}`

export const sealCredential = (
  secrets: Secrets,
  name: string,
  credential: Credential,
  plain: Buffer,
): Buffer => secrets.encrypt('whatsapp', plain, nameCredential(name, credential))

/** @throws Error if it wasn't encrypted for this number and use with a key that we know. */
export const openCredential = (
  secrets: Secrets,
  name: string,
  credential: Credential,
  sealed: Buffer,
): Buffer => secrets.decrypt('whatsapp', sealed, nameCredential(name, credential))

/**
 * Encrypts the credentials of all numbers with SECRET_KEY. @returns the number of rows.
 * @throws RequestError bad_request naming one that can't be decrypted.
 */
export async function resealNumbers({ tx, secrets }: { tx: Tx; secrets: Secrets }): Promise<number> {
  const rows = await lockSealedNumbers(tx)
  const fresh = rows.map(({ name, access_token, app_secret }): SealedNumber => {
    const sealed = (credential: Credential, value: Buffer): Buffer =>
      sealCredential(secrets, name, credential, openCredential(secrets, name, credential, value))
    try {
      return {
        name,
        access_token: sealed('access_token', access_token),
        app_secret: app_secret && sealed('app_secret', app_secret),
      }
    } catch {
      throw requestError('bad_request', TEXTS.credentialsUndecryptable, { name })
    }
  })
  if (fresh.length > 0) await updateSealedNumbers(tx, fresh)
  return fresh.length
}

/**
 * Stores the number of a worker's settings, so that web and CLI know its ID and account.
 * @throws SettingsFault if it is already stored as another number.
 */
export async function recordDefaultNumber(
  tx: Tx,
  number: { phone_number_id: string; account_id: string | null },
): Promise<void> {
  const name = await otherNumberOfId(tx, number.phone_number_id)
  if (name !== null)
    throw new SettingsFault([
      `WHATSAPP_PHONE_NUMBER_ID is the ID of the number ${name}. Set another one, or remove that number first.`,
    ])
  await storeDefaultNumber(tx, number)
}

/**
 * Decrypts the access tokens of numbers, by phone number ID, each once.
 * @returns null for a token that can't be decrypted with either key, and nothing for a removed number.
 */
export function openTokens(
  secrets: Secrets,
  numbers: readonly { phone_number_id: string; number_name: string | null; access_token: Buffer | null }[],
): Map<string, string | null> {
  const tokens = new Map<string, string | null>()
  for (const { phone_number_id, number_name: name, access_token: sealed } of numbers) {
    if (name === null || sealed === null || tokens.has(phone_number_id)) continue
    tokens.set(phone_number_id, openedToken(secrets, name, sealed))
  }
  return tokens
}

function openedToken(secrets: Secrets, name: string, sealed: Buffer): string | null {
  try {
    return openCredential(secrets, name, 'access_token', sealed).toString()
  } catch {
    return null
  }
}
