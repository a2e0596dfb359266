/**
 * Adds, shows and removes a team's sending domains. Names are stored in ASCII form, once per team, each with its own
 * DKIM key. The plan's domains_limit is never exceeded, even by concurrent calls. Emails of a removed domain are
 * kept.
 */

import { invalidField, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Secrets } from '../../process/secrets.ts'
import { domainToAscii } from '../../validation/address.ts'
import { pick } from '../../validation/keys.ts'
import { type By, record } from '../audit/record.ts'
import { lockAccountRow } from '../teams/teams.sql.ts'
import { requireTeam } from '../teams/view.ts'
import { TEXTS } from '../texts.ts'
import { dnsRecords, makeDkimKey } from './dkim.ts'
import { type DomainRow, deleteDomain, domainByName, insertDomain, readDomainQuota } from './domains.sql.ts'

/** A domain with the records to publish. @param returnDomain RETURN_PATH_DOMAIN, or null if it isn't set. Pure. */
export const domainView = (row: DomainRow, returnDomain: string | null) => ({
  ...pick(row, 'id', 'name', 'status', 'created_at', 'verified_at', 'missing_since'),
  ed25519: row.ed25519_selector !== null,
  ...pick(row, 'return_path', 'return_path_rejected_at'),
  dns_records: dnsRecords(row, returnDomain),
})

/** Returns the name in ASCII form. @throws RequestError bad_request. */
function domainName(given: string): string {
  const name = domainToAscii(given)
  if (name === null) throw invalidField('name', TEXTS.notDomain, { given: JSON.stringify(given) })
  return name
}

/** @throws RequestError not_found. */
export async function requireDomain(tx: Tx, teamId: string, given: string): Promise<DomainRow> {
  const name = domainName(given)
  await requireTeam(tx, teamId)
  const row = await domainByName(tx, teamId, name)
  if (!row) throw requestError('not_found', TEXTS.noDomain, { name })
  return row
}

/** @throws RequestError quota_exceeded if the plan allows no more domains. */
async function checkRoom(tx: Tx, teamId: string): Promise<void> {
  const { plan, domains_limit: limit, domains } = await readDomainQuota(tx, teamId)
  if (limit === null || domains < limit) return
  throw requestError('quota_exceeded', TEXTS.domainQuota, { plan, limit, domains })
}

/**
 * Adds a domain as pending, or as verified on the operator's request or in a test team.
 * @throws RequestError bad_request for an invalid name or one that the team has. quota_exceeded if the plan allows no
 * more.
 */
export async function addDomain(
  { secrets, ...by }: By & { secrets: Secrets },
  teamId: string,
  { name: given, verified }: { name: string; verified: boolean },
): Promise<DomainRow> {
  const name = domainName(given)
  const { test } = await requireTeam(by.tx, teamId)
  const key = await makeDkimKey(secrets, { team_id: teamId, name })
  const status = verified || test ? ('verified' as const) : ('pending' as const)
  return by.tx.transaction(async (tx) => {
    // Concurrent additions and plan changes wait here. The count is read afterwards.
    await lockAccountRow(tx, teamId)
    if (await domainByName(tx, teamId, name)) throw invalidField('name', TEXTS.domainExists, { name })
    await checkRoom(tx, teamId)
    const row = await insertDomain(tx, teamId, { id: idNow(), name, status, ...key }, by.now)
    await record({ ...by, tx }, { team_id: teamId, action: 'domain.add', subject: name, detail: status })
    return row
  })
}

/** @throws RequestError not_found. */
export async function removeDomain(by: By, teamId: string, given: string): Promise<DomainRow> {
  const { name } = await requireDomain(by.tx, teamId, given)
  const row = await deleteDomain(by.tx, teamId, name)
  if (!row) throw requestError('not_found', TEXTS.noDomain, { name })
  await record(by, { team_id: teamId, action: 'domain.remove', subject: name })
  return row
}
