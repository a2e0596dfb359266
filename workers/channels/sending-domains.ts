/**
 * Finds what emails need from their From domain, by team and name (DECISIONS: Domain removed before delivery): our
 * decrypted DKIM keys, unless the provider signs, and the domain's own return path. It is read for each batch, so that
 * no email is sent in the name of a removed domain, and a domain that was added again signs waiting emails. An email
 * without a verified domain, or with a key that can't be decrypted, gets an Error and waits.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { openKey } from '../../db/accounts/domains/dkim.ts'
import { type StoredDomain, sendingDomains } from '../../db/accounts/domains/domains.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { parseMailbox } from '../../db/validation/address.ts'
import type { DkimKey } from '../providers/provider.ts'

/** `dkim` is null if the provider signs, and `ed25519` is null without a second key. */
type SendingDomain = { dkim: DkimKey | null; ed25519: DkimKey | null; return_path: boolean }

const domainName = ({ team_id, name }: { team_id: string; name: string }): string => `${team_id}/${name}`

const MAX_PARSED_KEYS = 1_000

/** A process has one `Secrets`. A key's ID includes its encrypted bytes, because rotation changes only them. */
const parsedKeys = new WeakMap<Secrets, Map<string, KeyObject>>()

/**
 * Returns a domain's private key, parsed once per process: parsing and the first signature need 1.5 × the CPU time of
 * a later signature.
 */
function parsedKey(secrets: Secrets, domain: StoredDomain, sealed: Buffer): KeyObject {
  const keys = parsedKeys.get(secrets) ?? new Map<string, KeyObject>()
  parsedKeys.set(secrets, keys)
  const id = `${domainName(domain)}/${sealed.toString('base64')}`
  const known = keys.get(id)
  if (known) return known
  const key = createPrivateKey(openKey(secrets, domain, sealed))
  keys.set(id, key)
  const [oldest] = keys.keys()
  if (keys.size > MAX_PARSED_KEYS && oldest !== undefined) keys.delete(oldest)
  return key
}

function open(secrets: Secrets, domain: StoredDomain): SendingDomain | Error {
  const { name, dkim_selector, dkim_private_key, ed25519_selector, ed25519_private_key, return_path } = domain
  const toKey = (selector: string, sealed: Buffer): DkimKey => ({
    ...{ domain: name, selector },
    private_key: parsedKey(secrets, domain, sealed),
  })
  try {
    return {
      dkim: toKey(dkim_selector, dkim_private_key),
      ed25519: ed25519_selector && ed25519_private_key ? toKey(ed25519_selector, ed25519_private_key) : null,
      return_path,
    }
  } catch {
    return new Error(
      `Could not decrypt the DKIM key of ${name}. Was it encrypted with a different SECRET_KEY?`,
    )
  }
}

type Signed = { team_id: string; domain_id: string; from_address: string }

/**
 * Returns the domains by the domain id of the rows. The result is an Error if a domain isn't verified or its key can't
 * be decrypted; others are unaffected.
 * @param ours is true if our keys sign. Otherwise they aren't decrypted.
 * @param read the domains that were read with the emails. One query finds the rest.
 */
export async function readSendingDomains(
  tx: Tx,
  { secrets, ours }: { secrets: Secrets; ours: boolean },
  rows: readonly Signed[],
  read: readonly StoredDomain[] = [],
): Promise<ReadonlyMap<string, SendingDomain | Error>> {
  const domains = new Map(
    rows.map(({ team_id, domain_id, from_address }) => {
      const name = parseMailbox(from_address)?.domain ?? ''
      return [domain_id, { team_id, name }]
    }),
  )
  const known = new Set(read.map(domainName))
  const others = [...domains.values()].filter((domain) => !known.has(domainName(domain)))
  const stored = others.length === 0 ? read : [...read, ...(await sendingDomains(tx, others))]
  const found = new Map(
    stored.map((domain) => {
      const unopened = { dkim: null, ed25519: null, return_path: domain.return_path }
      return [domainName(domain), ours ? open(secrets, domain) : unopened]
    }),
  )
  const missing = (name: string) => new Error(`${name} is no longer a verified domain of the team`)
  return new Map(
    [...domains].map(([id, domain]) => [id, found.get(domainName(domain)) ?? missing(domain.name)]),
  )
}
