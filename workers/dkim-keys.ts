/**
 * The DKIM keys that emails are signed with, opened, by team and name of the From domain (decisions: domain removed
 * while mail waits). Promises: read afresh, so a removed domain signs nothing any more, and one that was added again
 * signs what has waited. An email without a fitting key gets an Error, and is never sent unsigned.
 */
import { createPrivateKey } from 'node:crypto'
import { openKey } from '../db/domains/dkim.ts'
import { dkimKeysByName } from '../db/domains/domains.sql.ts'
import type { Tx } from '../db/postgres/pool.ts'
import type { Secrets } from '../db/process/secrets.ts'
import { parseMailbox } from '../db/text/address.ts'
import type { DkimKey } from './providers/provider.ts'

type StoredKey = Awaited<ReturnType<typeof dkimKeysByName>>[number]

function open(secrets: Secrets, key: StoredKey): DkimKey | Error {
  const { name, dkim_selector, dkim_private_key } = key
  try {
    const private_key = createPrivateKey(openKey(secrets, key, dkim_private_key))
    return { domain: name, selector: dkim_selector, private_key }
  } catch {
    return new Error(`the DKIM key of ${name} cannot be opened: was it stored with another SECRET_KEY?`)
  }
}

type Signed = { team_id: string; domain_id: string; from_address: string }

const keyName = ({ team_id, name }: { team_id: string; name: string }): string => `${team_id}/${name}`

/**
 * Keys by the domain id of the rows, in one query for all; an Error where there is none, or none that can be opened,
 * which harms no other.
 */
export async function dkimKeysOf(
  tx: Tx,
  secrets: Secrets,
  rows: readonly Signed[],
): Promise<ReadonlyMap<string, DkimKey | Error>> {
  const domains = new Map(
    rows.map(({ team_id, domain_id, from_address }) => {
      const name = parseMailbox(from_address)?.domain ?? ''
      return [domain_id, { team_id, name }]
    }),
  )
  const stored = domains.size === 0 ? [] : await dkimKeysByName(tx, [...domains.values()])
  const opened = new Map(stored.map((key) => [keyName(key), open(secrets, key)]))
  const missing = (name: string) => new Error(`the team has no verified domain ${name} any more`)
  return new Map(
    [...domains].map(([id, domain]) => [id, opened.get(keyName(domain)) ?? missing(domain.name)]),
  )
}
