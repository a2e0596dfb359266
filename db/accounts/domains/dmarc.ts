/**
 * Finds the DMARC policy of a domain and its organizational domain, with the DNS tree walk of RFC 9989 §4.10. Sends
 * at most eight queries. Needs no list of public suffixes.
 */
import type { TxtLookup } from './dns-lookups.ts'
import { hasVersion, recordTags } from './record-tags.ts'

/** A valid policy record, and the domain that publishes it. */
type Policy = { domain: string; text: string; psd: string }

type Dmarc = {
  organization: string
  /** The applicable policy: the domain's own, or that of its organizational domain. Null without one. */
  policy: { domain: string; text: string } | null
  /** The records that the domain itself publishes, valid or not. */
  published: string[]
}

/** If a name has at least this many labels, the search skips to the parent with seven. */
const LONG_NAME_LABELS = 8

/** Returns the domain, then its parents up to the top-level domain. */
function listParents(name: string): string[] {
  const labels = name.split('.')
  const first = labels.length < LONG_NAME_LABELS ? 1 : labels.length - (LONG_NAME_LABELS - 1)
  return [name, ...labels.slice(first).map((_, at) => labels.slice(first + at).join('.'))]
}

/** RFC 9989 §4.7: without a valid `p`, a record only counts if it has `rua`. */
const isPolicy = (record: string): boolean => {
  const tags = recordTags(record)
  return /^(none|quarantine|reject)$/i.test(tags.get('p') ?? '') || tags.has('rua')
}

/** Returns a domain's parent with one label more than another of its parents. */
const below = (name: string, parent: string): string =>
  name
    .split('.')
    .slice(-(parent.split('.').length + 1))
    .join('.')

function findOrganization(name: string, found: readonly Policy[]): string {
  // The search stops at the first psd=y or psd=n, so that only the last record can have one.
  const last = found.at(-1)
  if (last === undefined) return name
  return last.psd === 'y' && last.domain !== name ? below(name, last.domain) : last.domain
}

/** @throws RequestError unavailable if DNS doesn't respond. */
export async function findDmarc(name: string, lookupTxt: TxtLookup): Promise<Dmarc> {
  const found: Policy[] = []
  let published: string[] = []
  for (const domain of listParents(name)) {
    const records = (await lookupTxt(`_dmarc.${domain}`)).filter(hasVersion('DMARC1'))
    if (domain === name) published = records
    const [text] = records
    // With several records, none counts (RFC 9989 §4.10).
    if (text === undefined || records.length > 1 || !isPolicy(text)) continue
    const psd = (recordTags(text).get('psd') ?? 'u').toLowerCase()
    found.push({ domain, text, psd })
    if (psd === 'y' || psd === 'n') break
  }
  const organization = findOrganization(name, found)
  const at = (domain: string) => found.find((policy) => policy.domain === domain)
  return { organization, policy: at(name) ?? at(organization) ?? null, published }
}

/** Returns the record to publish: the applicable policy with `rua`, or a first one. Never weakens a policy. */
export function dmarcValue(name: string, policy: Dmarc['policy']): string {
  if (policy === null) return `v=DMARC1; p=none; rua=mailto:dmarc@${name}`
  if (recordTags(policy.text).has('rua')) return policy.text
  return `${policy.text.trim().replace(/;$/, '')}; rua=mailto:dmarc@${policy.domain}`
}
