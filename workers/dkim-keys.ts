/** The DKIM keys that a batch of emails is signed with, opened. Read afresh: a removed domain signs nothing more. */
import { dkimKeysByDomain } from '../db/domains/table.ts'
import type { Tx } from '../db/pool.ts'
import type { Secrets } from '../db/secrets.ts'
import type { DkimKey } from './providers/provider.ts'

/** Keys by domain id, in one query for all the rows. */
export async function dkimKeysOf(
  tx: Tx,
  secrets: Secrets,
  rows: readonly { team_id: string; domain_id: string }[],
): Promise<ReadonlyMap<string, DkimKey>> {
  const keys = await dkimKeysByDomain(tx, rows)
  return new Map(
    keys.map(({ id, name, dkim_selector, dkim_private_key }) => [
      id,
      {
        domain: name,
        selector: dkim_selector,
        private_key: secrets.decrypt('dkim', dkim_private_key).toString(),
      },
    ]),
  )
}
