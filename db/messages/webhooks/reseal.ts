/** Encrypts the secrets of webhooks again after SECRET_KEY was replaced. */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { TEXTS } from '../texts.ts'
import { lockSealedSecrets, type SealedSecrets, updateSealedSecrets } from './endpoints.sql.ts'
import { openSecret, sealSecret } from './secret.ts'

/** @returns the number of endpoints. @throws RequestError bad_request naming one that can't be decrypted. */
export async function resealSecrets({ tx, secrets }: { tx: Tx; secrets: Secrets }): Promise<number> {
  const rows = await lockSealedSecrets(tx)
  const fresh = rows.map((row): SealedSecrets => {
    const sealed = (secret: Buffer): Buffer => sealSecret(secrets, row, openSecret(secrets, row, secret))
    try {
      return {
        ...row,
        secret: sealed(row.secret),
        previous_secret: row.previous_secret && sealed(row.previous_secret),
      }
    } catch {
      throw new RequestError(
        'bad_request',
        fill(TEXTS.secretUndecryptable, { id: row.id, team: row.team_id }),
      )
    }
  })
  if (fresh.length > 0) await updateSealedSecrets(tx, fresh)
  return fresh.length
}
