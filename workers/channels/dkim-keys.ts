/**
 * What emails are signed with, by team and name of the From domain (DECISIONS: Domain removed before delivery): our
 * own DKIM keys, opened, or none where the provider signs by itself.
 * Promises: read afresh, so nothing goes out any more in the name of a removed domain, and one that was added again
 * signs what has waited. An email without a verified domain, or whose key does not open, gets an Error: it waits.
 */
import { createPrivateKey } from 'node:crypto'
import { openKey } from '../../db/accounts/domains/dkim.ts'
import { dkimKeysByName } from '../../db/accounts/domains/domains.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { parseMailbox } from '../../db/validation/address.ts'
import type { DkimKey } from '../providers/provider.ts'

type StoredKey = Awaited<ReturnType<typeof dkimKeysByName>>[number]

function open(secrets: Secrets, key: StoredKey): DkimKey | Error {
  const { name, dkim_selector, dkim_private_key } = key
  try {
    const private_key = createPrivateKey(openKey(secrets, key, dkim_private_key))
    return { domain: name, selector: dkim_selector, private_key }
  } catch {
    return new Error(
      `Could not decrypt the DKIM key of ${name}. Was it encrypted with a different SECRET_KEY?`,
    )
  }
}

type Signed = { team_id: string; domain_id: string; from_address: string }

const keyName = ({ team_id, name }: { team_id: string; name: string }): string => `${team_id}/${name}`

/**
 * Keys by the domain id of the rows, in one query for all; an Error where the domain is not verified, or its key
 * cannot be opened, which harms no other.
 * @param ours whether our keys sign; else null says that the domain is there, and its key is not opened.
 */
export async function dkimKeysOf(
  tx: Tx,
  { secrets, ours }: { secrets: Secrets; ours: boolean },
  rows: readonly Signed[],
): Promise<ReadonlyMap<string, DkimKey | Error | null>> {
  const domains = new Map(
    rows.map(({ team_id, domain_id, from_address }) => {
      const name = parseMailbox(from_address)?.domain ?? ''
      return [domain_id, { team_id, name }]
    }),
  )
  const stored = domains.size === 0 ? [] : await dkimKeysByName(tx, [...domains.values()])
  const opened = new Map(stored.map((key) => [keyName(key), ours ? open(secrets, key) : null]))
  const missing = (name: string) => new Error(`The team no longer has the verified domain ${name}`)
  return new Map(
    [...domains].map(([id, domain]) => {
      const key = opened.get(keyName(domain))
      return [id, key === undefined ? missing(domain.name) : key]
    }),
  )
}
