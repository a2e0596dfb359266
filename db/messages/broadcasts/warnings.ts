/**
 * Warnings about a broadcast's domain: mailbox providers require a DMARC policy and an aligned return path from bulk
 * senders. A warning never keeps a broadcast from starting.
 */
import { findDmarc } from '../../accounts/domains/dmarc.ts'
import { domainByName } from '../../accounts/domains/domains.sql.ts'
import type { Looks } from '../../accounts/domains/verify.ts'
import { teamById } from '../../accounts/teams/teams.sql.ts'
import { RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { compact } from '../../validation/keys.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import { domainOf } from './draft.ts'

const REQUIREMENTS =
  'Gmail, Yahoo and Microsoft require SPF, DKIM and DMARC from anyone who sends more than 5,000 emails a day'

/** Returns sentences about unmet requirements. None if DNS doesn't respond, and none for test teams. */
export async function startWarnings(
  tx: Tx,
  { team_id, from_address }: BroadcastRow,
  { lookupTxt, returnDomain }: Pick<Looks, 'lookupTxt' | 'returnDomain'>,
): Promise<string[]> {
  const name = domainOf(from_address)
  const team = await teamById(tx, team_id)
  if (team?.test) return []
  const domain = await domainByName(tx, team_id, name)
  const hasOwnPath = domain?.return_path === true && domain.return_path_rejected_at === null
  const remedy = domain?.return_path
    ? 'The relay rejects the domain’s own return path. An operator can allow it there.'
    : 'An owner can turn on the domain’s own return path.'
  try {
    const { policy, organization } = await findDmarc(name, lookupTxt)
    // Without RETURN_PATH_DOMAIN the envelope is at the From domain itself.
    const envelope = hasOwnPath || returnDomain === null ? name : returnDomain
    const isAligned =
      envelope === name || (await findDmarc(envelope, lookupTxt)).organization === organization
    return compact([
      policy === null &&
        `${name} has no DMARC policy. ${REQUIREMENTS}. The domain’s page shows the record to publish.`,
      !isAligned &&
        `The return path ${envelope} is not aligned with ${name}, so SPF doesn’t align. ${REQUIREMENTS}. ${remedy}`,
    ])
  } catch (error) {
    if (error instanceof RequestError) return []
    throw error
  }
}
