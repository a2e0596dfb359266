/**
 * Creates a new DKIM key for a domain, and re-encrypts stored keys after SECRET_KEY was replaced. Mail is signed with
 * the old key until the new record is found (verify.ts).
 */

import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { resealCanary } from '../../process/canary.ts'
import type { Secrets } from '../../process/secrets.ts'
import { changedMeanwhile } from '../../validation/mark.ts'
import { type By, record } from '../audit/record.ts'
import { TEXTS } from '../texts.ts'
import { requireDomain } from './add.ts'
import { makeDkimKey, openKey, sealKey } from './dkim.ts'
import {
  type DomainRow,
  domainByName,
  lockSealedKeys,
  type SealedKeysRow,
  storeNextKey,
  updateSealedKeys,
} from './domains.sql.ts'

/**
 * Creates a domain's next key. Its record must be published in addition to the old one.
 * @param seen the newest selector on the page. After two rotations, the published record would match neither key.
 * @throws RequestError. invalid_state if there is a newer key.
 */
export async function rekeyDomain(
  { secrets, ...by }: By & { secrets: Secrets },
  teamId: string,
  given: string,
  { seen = null }: { seen?: string | null } = {},
): Promise<DomainRow> {
  const { id, name } = await requireDomain(by.tx, teamId, given)
  const key = await makeDkimKey(secrets, { team_id: teamId, name })
  return by.tx.transaction(async (tx) => {
    const row = await storeNextKey(tx, teamId, id, { ...key, seen })
    if (!row && (await domainByName(tx, teamId, name))) throw changedMeanwhile(TEXTS.keyRotated)
    if (!row) throw requestError('not_found', TEXTS.domainRemoved, { name })
    const entry = { team_id: teamId, action: 'domain.rekey', subject: name }
    await record({ ...by, tx }, { ...entry, detail: key.dkim_selector })
    return row
  })
}

/** Encrypts a domain's keys with SECRET_KEY. @throws Error if they were encrypted with an unknown key. */
function resealed(secrets: Secrets, row: SealedKeysRow): SealedKeysRow {
  const afresh = (sealed: Buffer): Buffer => sealKey(secrets, row, openKey(secrets, row, sealed))
  const { dkim_private_key: current, next_dkim_private_key: next, ed25519_private_key: second } = row
  return {
    ...row,
    dkim_private_key: afresh(current),
    next_dkim_private_key: next && afresh(next),
    ed25519_private_key: second && afresh(second),
  }
}

/**
 * Encrypts all stored DKIM keys and the check value (canary) with SECRET_KEY.
 * @returns how many domains there were.
 * @throws RequestError bad_request naming a domain that can't be decrypted.
 */
export async function resealAll({ tx, secrets }: { tx: Tx; secrets: Secrets }): Promise<number> {
  const rows = await lockSealedKeys(tx)
  const fresh = rows.map((row) => {
    try {
      return resealed(secrets, row)
    } catch {
      throw requestError('bad_request', TEXTS.keyUndecryptable, { name: row.name, team: row.team_id })
    }
  })
  await updateSealedKeys(tx, fresh)
  await resealCanary(tx, secrets)
  return fresh.length
}
