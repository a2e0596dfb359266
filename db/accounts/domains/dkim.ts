/**
 * A domain's DKIM key and the DNS records that its owner publishes (RFC 6376, RFC 7208, RFC 7489).
 * Promises: the private key leaves this module sealed only; each key has a selector of its own.
 */
import { generateKeyPair, randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Secrets } from '../../process/secrets.ts'
import type { DomainRow, NewDomain } from './domains.sql.ts'
import { spfValue } from './spf.ts'

export type DnsRecord = { type: 'TXT'; name: string; value: string }

/**
 * A new one for each key, so that a name in DNS stands for one key: two teams may have one domain, and of one that was
 * removed and comes back resolvers remember the old record. Drawn, since a number would tell of other teams.
 */
function drawSelector(): string {
  const drawn = randomInt(36 ** 6).toString(36)
  return `hg${drawn.padStart(6, '0')}`
}

type StoredKey = Pick<NewDomain, 'dkim_selector' | 'dkim_public_key' | 'dkim_private_key'>

/** Whose a key is: it opens for this team and domain only, wherever its bytes are copied to. */
type KeyOwner = { team_id: string; name: string }

const about = ({ team_id, name }: KeyOwner): string => `${team_id}/${name}`

/** A private key as it is stored. */
export const sealKey = (secrets: Secrets, owner: KeyOwner, pem: Buffer): Buffer =>
  secrets.encrypt('dkim', pem, about(owner))

/** A stored private key in PEM form. @throws Error when it is another's, or sealed with a key that we do not know. */
export const openKey = (secrets: Secrets, owner: KeyOwner, sealed: Buffer): Buffer =>
  secrets.decrypt('dkim', sealed, about(owner))

/** A new RSA-2048 key pair for a domain, in the form that is stored, with its selector. */
export async function makeDkimKey(secrets: Secrets, owner: KeyOwner): Promise<StoredKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return {
    dkim_selector: drawSelector(),
    dkim_public_key: publicKey.toString('base64'),
    dkim_private_key: sealKey(secrets, owner, Buffer.from(privateKey)),
  }
}

/** The record that proves the domain: publishing our key is what verifies it. */
export const dkimRecord = (
  domain: Pick<DomainRow, 'name' | 'dkim_selector' | 'dkim_public_key'>,
): DnsRecord => ({
  type: 'TXT',
  name: `${domain.dkim_selector}._domainkey.${domain.name}`,
  value: `v=DKIM1; k=rsa; p=${domain.dkim_public_key}`,
})

/** The record of the key that will follow; null while none will. */
export const nextDkimRecord = (domain: DomainRow): DnsRecord | null => {
  const { name, next_dkim_selector: dkim_selector, next_dkim_public_key: dkim_public_key } = domain
  if (dkim_selector === null || dkim_public_key === null) return null
  return dkimRecord({ name, dkim_selector, dkim_public_key })
}

/**
 * Where the owner says who may send for the domain. Both are hints: a policy of the owner's own is as good, if it lets
 * the relay send where the operator says which one that is, and DMARC passes on the DKIM signature alone.
 */
export const spfRecord = (
  { name }: Pick<DomainRow, 'name'>,
  includes: readonly string[],
  published: readonly string[] = [],
): DnsRecord => ({ type: 'TXT', name, value: spfValue(includes, published) })

export const dmarcRecord = ({ name }: Pick<DomainRow, 'name'>): DnsRecord => ({
  type: 'TXT',
  name: `_dmarc.${name}`,
  value: 'v=DMARC1; p=none',
})

/** Everything to publish, what is required first. @param includes what the relay wants in SPF. */
export function dnsRecords(domain: DomainRow, includes: readonly string[]): DnsRecord[] {
  const next = nextDkimRecord(domain)
  return [dkimRecord(domain), ...(next ? [next] : []), spfRecord(domain, includes), dmarcRecord(domain)]
}
