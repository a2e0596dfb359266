/**
 * Verifies a domain by its DNS records. Only our published DKIM key verifies it. A next key replaces the current one
 * once its record is found. DNS queries use no database connection. A verified domain stays verified, because a name
 * server may be down (recheck.ts notifies the owners). DECISIONS: From domain.
 */
import { setTimeout } from 'node:timers/promises'
import { RequestError, requestError } from '../../errors.ts'
import type { Database } from '../../postgres/pool.ts'
import { type Actor, record } from '../audit/record.ts'
import { TEXTS } from '../texts.ts'
import { requireDomain } from './add.ts'
import {
  type DnsRecord,
  dkimRecord,
  dmarcRecord,
  ed25519Record,
  nextDkimRecord,
  returnPathRecord,
  spfRecord,
} from './dkim.ts'
import { dmarcValue, findDmarc } from './dmarc.ts'
import type { DomainLookups, TxtLookup } from './dns-lookups.ts'
import { type DomainRow, markDomainVerified, promoteNextKey } from './domains.sql.ts'
import { recordTags } from './record-tags.ts'
import { spfRecords } from './spf.ts'

export type RecordCheck = DnsRecord & { state: 'found' | 'missing' | 'different'; published: string[] }

/** True if a published record has this key, for every use, not revoked, not restricted. */
function publishesKey(record: string, publicKey: string, type: 'rsa' | 'ed25519'): boolean {
  const tags = recordTags(record)
  return (
    (tags.get('v') ?? 'DKIM1') === 'DKIM1' && (tags.get('k') ?? 'rsa') === type && tags.get('p') === publicKey
  )
}

const compared = (
  record: DnsRecord,
  published: string[],
  fits: (text: string, at: number, all: readonly string[]) => boolean,
): RecordCheck => {
  const state = published.length === 0 ? 'missing' : published.some(fits) ? 'found' : 'different'
  return { ...record, state, published }
}

/** Checks the record of a domain's current key. @throws RequestError unavailable if DNS doesn't respond. */
async function checkKey(
  record: DnsRecord,
  publicKey: string | null,
  lookupTxt: TxtLookup,
  type: 'rsa' | 'ed25519' = 'rsa',
): Promise<RecordCheck> {
  const published = await lookupTxt(record.name)
  return compared(record, published, (text) => publishesKey(text, publicKey ?? '', type))
}

/** Checks a domain's key in DNS. Null if DNS doesn't respond. */
export async function lookUpKey(
  domain: Pick<DomainRow, 'name' | 'dkim_selector' | 'dkim_public_key'>,
  lookupTxt: TxtLookup,
): Promise<RecordCheck | null> {
  try {
    return await checkKey(dkimRecord(domain), domain.dkim_public_key, lookupTxt)
  } catch (error) {
    if (error instanceof RequestError) return null
    throw error
  }
}

/** Checks the keys of domains, and returns the states that are known after this many milliseconds, by ID. */
export async function lookUpKeys(domains: readonly DomainRow[], lookupTxt: TxtLookup, patience: number) {
  const states = new Map<string, RecordCheck['state']>()
  const lookups = domains.map(async (domain) => {
    const key = await lookUpKey(domain, lookupTxt)
    if (key) states.set(domain.id, key.state)
  })
  const late = new AbortController()
  const { signal } = late
  await Promise.race([Promise.all(lookups), setTimeout(patience, undefined, { signal }).catch(() => {})])
  late.abort()
  return new Map(states)
}

/** @param returnDomain RETURN_PATH_DOMAIN, or null if it isn't set. */
export type Looks = DomainLookups & { returnDomain: string | null }

type Checks = { current: RecordCheck; next: RecordCheck | null; others: RecordCheck[] }

/** Returns the applicable DMARC policy if there is one, otherwise the one to publish. */
async function checkDmarc({ name }: DomainRow, { lookupTxt }: Looks): Promise<RecordCheck> {
  const { policy, published } = await findDmarc(name, lookupTxt)
  const record = dmarcRecord(policy?.domain ?? name, dmarcValue(name, policy))
  if (policy === null) return { ...record, state: 'missing', published }
  return { ...record, state: 'found', published: [policy.text] }
}

/** Checks the domain's own return path, or its SPF record if RETURN_PATH_DOMAIN isn't set. */
async function checkEnvelope(domain: DomainRow, { lookupCname, lookupTxt, returnDomain }: Looks) {
  if (returnDomain === null) {
    const record = spfRecord(domain)
    return compared(record, await spfRecords(domain.name, lookupTxt), (_record, _at, all) => all.length === 1)
  }
  const record = returnPathRecord(domain, returnDomain)
  return compared(record, await lookupCname(record.name), (alias) => alias === returnDomain)
}

/** Compares the published records with the required ones. The owner's own DMARC policy is accepted unchanged. */
async function checkRecords(domain: DomainRow, looks: Looks): Promise<Checks> {
  const { lookupTxt } = looks
  const nextRecord = nextDkimRecord(domain)
  const secondRecord = ed25519Record(domain)
  const [current, next, second, dmarc, envelope] = await Promise.all([
    checkKey(dkimRecord(domain), domain.dkim_public_key, lookupTxt),
    nextRecord && checkKey(nextRecord, domain.next_dkim_public_key, lookupTxt),
    secondRecord && checkKey(secondRecord, domain.ed25519_public_key, lookupTxt, 'ed25519'),
    checkDmarc(domain, looks),
    checkEnvelope(domain, looks),
  ])
  return { current, next, others: [...(second ? [second] : []), dmarc, envelope] }
}

/** Checks a domain's records without changing anything. @throws as `verifyDomain`. */
export async function checkDomain(
  { database, ...looks }: Looks & { database: Database },
  teamId: string,
  name: string,
): Promise<{ records: RecordCheck[] }> {
  const domain = await requireDomain(database, teamId, name)
  const { current, next, others } = await checkRecords(domain, looks)
  return { records: [current, ...(next ? [next] : []), ...others] }
}

/**
 * Looks up the domain's records. Marks it verified if our key is published, and replaces the key if the next one is.
 * @throws RequestError not_found. unavailable if DNS doesn't respond.
 */
export async function verifyDomain(
  { database, now, actor, ...looks }: Looks & { database: Database; now: Date; actor: Actor },
  teamId: string,
  name: string,
) {
  const domain = await requireDomain(database, teamId, name)
  const { current, next, others } = await checkRecords(domain, looks)
  const selector = next?.state === 'found' ? domain.next_dkim_selector : null
  const isProved = current.state === 'found'
  const { promoted, row } = await database.transaction(async (tx) => {
    const promoted = selector && (await promoteNextKey(tx, teamId, { id: domain.id, selector }, now))
    const row = promoted || (isProved ? await markDomainVerified(tx, teamId, domain.id, now) : domain)
    if (promoted || (row && row.status !== domain.status)) {
      const entry = { team_id: teamId, action: 'domain.verify', subject: domain.name }
      await record({ tx, now, actor }, { ...entry, detail: promoted ? `with the key ${selector}` : '' })
    }
    return { promoted, row }
  })
  if (!row) throw requestError('not_found', TEXTS.domainRemoved, { name })
  const { id, status, verified_at } = row
  const keys = promoted && next ? [next] : [current, ...(next ? [next] : [])]
  // The old record can be removed once the email it signed has arrived.
  const replaced_selector = promoted ? domain.dkim_selector : null
  return { id, name: row.name, status, verified_at, replaced_selector, records: [...keys, ...others] }
}
