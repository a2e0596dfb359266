/**
 * What emails need of the domain that they are from, by team and name (DECISIONS: Domain removed before delivery): our
 * DKIM keys, opened, unless the provider signs by itself, and whether it has a return path of its own.
 * Reads them again for each batch, so that nothing goes out in the name of a removed domain, and one that was added
 * again signs what has waited. An email without a verified domain, or whose key doesn't open, gets an Error: it waits.
 */
import { createPrivateKey } from 'node:crypto'
import { openKey } from '../../db/accounts/domains/dkim.ts'
import { sendingDomains } from '../../db/accounts/domains/domains.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { parseMailbox } from '../../db/validation/address.ts'
import type { DkimKey } from '../providers/provider.ts'

/** `dkim` null: the provider signs. `ed25519` null: there is no second key. */
type SendingDomain = { dkim: DkimKey | null; ed25519: DkimKey | null; return_path: boolean }

type StoredDomain = Awaited<ReturnType<typeof sendingDomains>>[number]

function open(secrets: Secrets, domain: StoredDomain): SendingDomain | Error {
  const { name, dkim_selector, dkim_private_key, ed25519_selector, ed25519_private_key, return_path } = domain
  const keyOf = (selector: string, sealed: Buffer): DkimKey => ({
    ...{ domain: name, selector },
    private_key: createPrivateKey(openKey(secrets, domain, sealed)),
  })
  try {
    return {
      dkim: keyOf(dkim_selector, dkim_private_key),
      ed25519: ed25519_selector && ed25519_private_key ? keyOf(ed25519_selector, ed25519_private_key) : null,
      return_path,
    }
  } catch {
    return new Error(
      `Could not decrypt the DKIM key of ${name}. Was it encrypted with a different SECRET_KEY?`,
    )
  }
}

type Signed = { team_id: string; domain_id: string; from_address: string }

const domainName = ({ team_id, name }: { team_id: string; name: string }): string => `${team_id}/${name}`

/**
 * Domains by the domain id of the rows, in one query for all. An Error where the domain is not verified, or its key
 * can't be opened, which harms no other.
 * @param ours true if our keys sign. Otherwise they aren't opened.
 */
export async function sendingDomainsOf(
  tx: Tx,
  { secrets, ours }: { secrets: Secrets; ours: boolean },
  rows: readonly Signed[],
): Promise<ReadonlyMap<string, SendingDomain | Error>> {
  const domains = new Map(
    rows.map(({ team_id, domain_id, from_address }) => {
      const name = parseMailbox(from_address)?.domain ?? ''
      return [domain_id, { team_id, name }]
    }),
  )
  const stored = domains.size === 0 ? [] : await sendingDomains(tx, [...domains.values()])
  const found = new Map(
    stored.map((domain) => {
      const unopened = { dkim: null, ed25519: null, return_path: domain.return_path }
      return [domainName(domain), ours ? open(secrets, domain) : unopened]
    }),
  )
  const missing = (name: string) => new Error(`the team has no verified domain ${name} any more`)
  return new Map(
    [...domains].map(([id, domain]) => [id, found.get(domainName(domain)) ?? missing(domain.name)]),
  )
}
