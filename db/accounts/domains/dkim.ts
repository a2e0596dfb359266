/**
 * A domain's DKIM keys, and the DNS records that its owner publishes (RFC 6376, RFC 7208, RFC 7489). Private keys
 * leave this module only encrypted.
 */
import { generateKeyPair, randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Secrets } from '../../process/secrets.ts'
import { dmarcValue } from './dmarc.ts'
import type { DomainRow, NewDomain } from './domains.sql.ts'
import { ownReturnPath } from './return-path.ts'
import { DEFAULT_SPF } from './spf.ts'

/** `required`: the domain can't be verified without it. */
export type DnsRecord = { type: 'TXT' | 'CNAME'; name: string; value: string; required: boolean }

/**
 * Creates a new selector for each key, so that a name in DNS identifies one key: two teams can have the same domain,
 * and resolvers cache the record of a removed one. Random, because a number would reveal other teams.
 */
function drawSelector(): string {
  const drawn = randomInt(36 ** 6).toString(36)
  return `hg${drawn.padStart(6, '0')}`
}

type StoredKey = Pick<NewDomain, 'dkim_selector' | 'dkim_public_key' | 'dkim_private_key'>

/** The owner of a key. It can only be decrypted for this team and domain. */
type KeyOwner = { team_id: string; name: string }

const about = ({ team_id, name }: KeyOwner): string => `${team_id}/${name}`

export const sealKey = (secrets: Secrets, owner: KeyOwner, pem: Buffer): Buffer =>
  secrets.encrypt('dkim', pem, about(owner))

/**
 * Returns a stored private key in PEM form. @throws Error if it is another owner's, or encrypted with an unknown key.
 */
export const openKey = (secrets: Secrets, owner: KeyOwner, sealed: Buffer): Buffer =>
  secrets.decrypt('dkim', sealed, about(owner))

/** Creates an RSA-2048 key pair for a domain, in the stored form. */
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

/** The prefix of an Ed25519 key in DER. DNS publishes the 32 bytes after it (RFC 8463 §4). */
const ED25519_DER_PREFIX_BYTES = 12

type SecondKey = { ed25519_selector: string; ed25519_public_key: string; ed25519_private_key: Buffer }

/** Creates an Ed25519 key pair for a domain, in the stored form. */
export async function makeEd25519Key(secrets: Secrets, owner: KeyOwner): Promise<SecondKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return {
    ed25519_selector: drawSelector(),
    ed25519_public_key: publicKey.subarray(ED25519_DER_PREFIX_BYTES).toString('base64'),
    ed25519_private_key: sealKey(secrets, owner, Buffer.from(privateKey)),
  }
}

export const dkimRecord = (
  domain: Pick<DomainRow, 'name' | 'dkim_selector' | 'dkim_public_key'>,
): DnsRecord => ({
  type: 'TXT',
  name: `${domain.dkim_selector}._domainkey.${domain.name}`,
  value: `v=DKIM1; k=rsa; p=${domain.dkim_public_key}`,
  required: true,
})

export const nextDkimRecord = (domain: DomainRow): DnsRecord | null => {
  const { name, next_dkim_selector: dkim_selector, next_dkim_public_key: dkim_public_key } = domain
  if (dkim_selector === null || dkim_public_key === null) return null
  return dkimRecord({ name, dkim_selector, dkim_public_key })
}

/** Returns the record of the second key, if any. Receivers that don't know Ed25519 use the first. */
export const ed25519Record = ({
  name,
  ed25519_selector: selector,
  ed25519_public_key: key,
}: Pick<DomainRow, 'name' | 'ed25519_selector' | 'ed25519_public_key'>): DnsRecord | null =>
  selector === null
    ? null
    : {
        ...{ type: 'TXT', name: `${selector}._domainkey.${name}` },
        ...{ value: `v=DKIM1; k=ed25519; p=${key}`, required: false },
      }

/** Returns the SPF record of a domain whose own mail servers get the bounces. */
export const spfRecord = ({ name }: Pick<DomainRow, 'name'>): DnsRecord => ({
  ...{ type: 'TXT', name, value: DEFAULT_SPF, required: false },
})

export const dmarcRecord = (name: string, value: string): DnsRecord => ({
  ...{ type: 'TXT', name: `_dmarc.${name}`, value, required: false },
})

export const returnPathRecord = ({ name }: Pick<DomainRow, 'name'>, returnDomain: string): DnsRecord => ({
  ...{ type: 'CNAME', name: ownReturnPath(name), value: returnDomain, required: false },
})

/**
 * Returns all records to publish, the required first. @param returnDomain RETURN_PATH_DOMAIN, or null if it isn't
 * set.
 */
export function dnsRecords(domain: DomainRow, returnDomain: string | null): DnsRecord[] {
  const keys = [dkimRecord(domain), nextDkimRecord(domain), ed25519Record(domain)]
  return [
    ...keys.flatMap((record) => record ?? []),
    dmarcRecord(domain.name, dmarcValue(domain.name, null)),
    returnDomain === null ? spfRecord(domain) : returnPathRecord(domain, returnDomain),
  ]
}
