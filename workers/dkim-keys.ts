/** The DKIM keys that a batch of emails is signed with, opened. Read afresh: a removed domain signs nothing more. */
import { createPrivateKey } from 'node:crypto'
import { openKey } from '../db/domains/dkim.ts'
import { dkimKeysByDomain } from '../db/domains/domains.sql.ts'
import type { Tx } from '../db/postgres/pool.ts'
import type { Secrets } from '../db/process/secrets.ts'
import type { DkimKey } from './providers/provider.ts'

type StoredKey = Awaited<ReturnType<typeof dkimKeysByDomain>>[number]

function open(secrets: Secrets, key: StoredKey): DkimKey | Error {
  const { name, dkim_selector, dkim_private_key } = key
  try {
    const private_key = createPrivateKey(openKey(secrets, key, dkim_private_key))
    return { domain: name, selector: dkim_selector, private_key }
  } catch {
    return new Error(`the DKIM key of ${name} cannot be opened: was it stored with another SECRET_KEY?`)
  }
}

/** Keys by domain id, in one query for all the rows; an Error for one that cannot be opened, which harms no other. */
export async function dkimKeysOf(
  tx: Tx,
  secrets: Secrets,
  rows: readonly { team_id: string; domain_id: string }[],
): Promise<ReadonlyMap<string, DkimKey | Error>> {
  const keys = rows.length === 0 ? [] : await dkimKeysByDomain(tx, rows)
  return new Map(keys.map((key) => [key.id, open(secrets, key)]))
}
