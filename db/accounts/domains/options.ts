/** Enables and disables a domain's own return path and its second DKIM key. */
import { RequestError, requestError } from '../../errors.ts'
import type { Database } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { type Actor, type By, record } from '../audit/record.ts'
import { TEXTS } from '../texts.ts'
import { requireDomain } from './add.ts'
import { makeEd25519Key, returnPathRecord } from './dkim.ts'
import { type DomainRow, storeReturnPath, storeSecondKey } from './domains.sql.ts'
import { checkReturnPath } from './return-path.ts'
import type { Looks } from './verify.ts'

/**
 * @throws RequestError bad_request, invalid_state, unavailable unless DNS has the records for the domain's own return
 * path.
 */
async function assertReady(domain: DomainRow, looks: Looks): Promise<void> {
  const { returnDomain } = looks
  if (returnDomain === null)
    throw new RequestError(
      'bad_request',
      'RETURN_PATH_DOMAIN is not set. Set it to the same value as in your worker processes.',
    )
  const { name, value } = returnPathRecord(domain, returnDomain)
  if (!(await looks.lookupCname(name)).includes(value))
    throw new RequestError(
      'invalid_state',
      `${name} must be a CNAME record with the value ${value}. Publish it, then try again.`,
    )
  const { fault } = await checkReturnPath(returnDomain, looks)
  if (fault !== null) throw new RequestError('invalid_state', `${fault}.`)
}

/**
 * Enables or disables the domain's own return path. Queries DNS before the transaction.
 * @throws RequestError not_found. bad_request, invalid_state and unavailable when enabling it.
 */
export async function setReturnPath(
  { database, now, actor, ...looks }: Looks & { database: Database; now: Date; actor: Actor },
  teamId: string,
  { name: given, on }: { name: string; on: boolean },
): Promise<DomainRow> {
  const domain = await requireDomain(database, teamId, given)
  const { id, name } = domain
  if (on) await assertReady(domain, looks)
  return database.transaction(async (tx) => {
    const row = await storeReturnPath(tx, teamId, id, on)
    if (!row) throw requestError('not_found', TEXTS.domainRemoved, { name })
    const entry = { team_id: teamId, action: 'domain.return-path', subject: name, detail: on ? 'on' : 'off' }
    await record({ tx, now, actor }, entry)
    return row
  })
}

/** Creates or removes a domain's second key, for Ed25519 signatures (RFC 8463). @throws RequestError not_found. */
export async function setEd25519(
  { secrets, ...by }: By & { secrets: Secrets },
  teamId: string,
  { name: given, on }: { name: string; on: boolean },
): Promise<DomainRow> {
  const domain = await requireDomain(by.tx, teamId, given)
  const { id, name } = domain
  if (on === (domain.ed25519_selector !== null)) return domain
  const key = on ? await makeEd25519Key(secrets, { team_id: teamId, name }) : null
  const row = await storeSecondKey(by.tx, teamId, id, key)
  if (!row) throw requestError('not_found', TEXTS.domainRemoved, { name })
  await record(by, { team_id: teamId, action: 'domain.ed25519', subject: name, detail: on ? 'on' : 'off' })
  return row
}
