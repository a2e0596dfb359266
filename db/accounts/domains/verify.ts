/**
 * Verifies a domain by the records its owner has published.
 * Promises: only a published DKIM key that is ours verifies; a key that is to follow takes over once its record is
 * found; no connection is held while DNS is asked; a domain that is verified stays so, since a name server may be away
 * for a while (recheck.ts notifies its owners).
 * The audit trail notes when that changes something. DECISIONS: From domain.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Database } from '../../postgres/pool.ts'
import { createNames } from '../../process/dns.ts'
import { type Actor, record } from '../audit/record.ts'
import { TEXTS } from '../texts.ts'
import { requireDomain } from './add.ts'
import { type DnsRecord, dkimRecord, dmarcRecord, nextDkimRecord, spfRecord } from './dkim.ts'
import { type DomainRow, markDomainVerified, promoteNextKey } from './domains.sql.ts'
import { allowsRelay } from './spf.ts'

/** The TXT records of a name, each joined to one string; none when the name has none. */
export type TxtLookup = (name: string) => Promise<string[]>

/** A record and what DNS has in its place. `required`: without it the domain is not verified. */
export type RecordCheck = DnsRecord & {
  required: boolean
  state: 'found' | 'missing' | 'different'
  published: string[]
}

/** The zone that holds a name's records; null where that is not known just now. */
export type ZoneLookup = (name: string) => Promise<string | null>

const ABSENT = new Set(['ENOTFOUND', 'ENODATA'])

/** More records than any name that we ask for has; what a server sends beyond that is not looked at. */
const MAX_RECORDS = 200
/** For one name, however many servers the resolver asks in turn, in milliseconds. */
const DNS_TIMEOUT_MS = 10_000

/**
 * Asks the system's resolver, or the server named `host` or `host:port`. An answer is 64 KiB at most, by DNS itself.
 * @throws RequestError unavailable (when looking up) if no server gives an answer in time.
 */
export function createTxtLookup(server?: string, patience = DNS_TIMEOUT_MS): TxtLookup {
  const names = createNames(server, patience)
  return async (name) => {
    try {
      const records = await names.texts(name)
      return records.slice(0, MAX_RECORDS).map((strings) => strings.join(''))
    } catch (error) {
      if (error instanceof RequestError) throw error
      const { code, message } = error as NodeJS.ErrnoException
      if (code !== undefined && ABSENT.has(code)) return []
      throw new RequestError('unavailable', fill(TEXTS.lookupFailed, { name, reason: message }))
    }
  }
}

/** Asks as `createTxtLookup` does. Nothing hangs on the answer, so a name server that is away is no fault. */
export function createZoneLookup(server?: string): ZoneLookup {
  const names = createNames(server, DNS_TIMEOUT_MS)
  return (name) => names.zone(name).catch(() => null)
}

/** A record's tags by name, without whitespace (RFC 6376 §3.2 allows it around and inside values). */
const tagsOf = (record: string): Map<string, string> =>
  new Map(
    record.split(';').map((tag) => {
      const [name = '', ...value] = tag.replace(/\s+/g, '').split('=')
      return [name, value.join('=')]
    }),
  )

/** Whether a published record holds this key: RSA for every use, not revoked, not restricted. */
function publishesKey(record: string, publicKey: string): boolean {
  const tags = tagsOf(record)
  return (
    (tags.get('v') ?? 'DKIM1') === 'DKIM1' &&
    (tags.get('k') ?? 'rsa') === 'rsa' &&
    tags.get('p') === publicKey
  )
}

const startsWithVersion = (version: string) => (record: string) =>
  new RegExp(`^\\s*v\\s*=\\s*${version}(\\s|;|$)`, 'i').test(record)

const compared = (record: DnsRecord, published: string[], fits: (text: string) => boolean) => {
  const state = published.length === 0 ? 'missing' : published.some(fits) ? 'found' : 'different'
  return { ...record, state, published } as const
}

/**
 * What DNS has in the place of the key that a domain signs with. @throws RequestError unavailable without an answer.
 */
export async function checkKey(
  record: DnsRecord,
  publicKey: string | null,
  lookupTxt: TxtLookup,
): Promise<RecordCheck> {
  const published = await lookupTxt(record.name)
  return { ...compared(record, published, (text) => publishesKey(text, publicKey ?? '')), required: true }
}

/** How records are looked at. @param spfIncludes what the relay wants in SPF. */
type Looks = { lookupTxt: TxtLookup; spfIncludes: readonly string[] }

type Checks = { current: RecordCheck; next: RecordCheck | null; hints: RecordCheck[] }

/** Compares what is published with what should be: a policy of the owner's own is as good, if the relay may send. */
async function checkRecords(domain: DomainRow, { lookupTxt, spfIncludes }: Looks): Promise<Checks> {
  const policies = async (name: string, version: string) =>
    (await lookupTxt(name)).filter(startsWithVersion(version))
  const spf = async (): Promise<RecordCheck> => {
    const published = await policies(domain.name, 'spf1')
    const record = spfRecord(domain, spfIncludes, published)
    return { ...compared(record, published, () => allowsRelay(published, spfIncludes)), required: false }
  }
  const dmarc = async (): Promise<RecordCheck> => {
    const record = dmarcRecord(domain)
    return { ...compared(record, await policies(record.name, 'DMARC1'), () => true), required: false }
  }
  const nextRecord = nextDkimRecord(domain)
  const [current, next, ...hints] = await Promise.all([
    checkKey(dkimRecord(domain), domain.dkim_public_key, lookupTxt),
    nextRecord && checkKey(nextRecord, domain.next_dkim_public_key, lookupTxt),
    spf(),
    dmarc(),
  ])
  return { current, next, hints }
}

/** What DNS has of a domain's records; changes nothing. @throws as `verifyDomain`. */
export async function checkDomain(
  { database, ...looks }: Looks & { database: Database },
  teamId: string,
  name: string,
): Promise<{ records: RecordCheck[] }> {
  const domain = await requireDomain(database, teamId, name)
  const { current, next, hints } = await checkRecords(domain, looks)
  return { records: [current, ...(next ? [next] : []), ...hints] }
}

/**
 * Looks the domain's records up: marks it verified when our key is published, and lets a key that is to follow take
 * over when that one is. @throws RequestError not_found; unavailable when DNS gives no answer.
 */
export async function verifyDomain(
  { database, now, actor, ...looks }: Looks & { database: Database; now: Date; actor: Actor },
  teamId: string,
  name: string,
) {
  const domain = await requireDomain(database, teamId, name)
  const { current, next, hints } = await checkRecords(domain, looks)
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
  if (!row) throw new RequestError('not_found', fill(TEXTS.domainRemoved, { name }))
  const { id, status, verified_at } = row
  const keys = promoted && next ? [next] : [current, ...(next ? [next] : [])]
  // Its record may go once the mail that it signed has arrived.
  const replaced_selector = promoted ? domain.dkim_selector : null
  return { id, name: row.name, status, verified_at, replaced_selector, records: [...keys, ...hints] }
}
