/** Describes the records and the state of a sending domain. Pure. */

import type { DomainRow } from '../../../db/accounts/domains/domains.sql.ts'
import type { RecordCheck } from '../../../db/accounts/domains/verify.ts'
import { type Cell, headed, status } from '../components/cell.ts'
import { cutValue, differenceWords, hostIn } from '../components/dns.ts'
import type { DnsRecord, Section } from '../components/section.ts'
import { compact } from '../server/builders.ts'
import type { PageTeam } from '../server/page.ts'

/** Maximum number of published records shown per name. */
const MAX_PUBLISHED_SHOWN = 10

/** @param next the selector of the next key, or null. */
function describePurpose(
  { name, type, value }: Pick<DnsLine, 'name' | 'type' | 'value'>,
  next: string | null,
): string {
  if (next !== null && name.startsWith(`${next}.`)) return 'New DKIM key: will sign your email'
  if (value.includes('k=ed25519')) return 'DKIM with Ed25519: a second signature'
  if (name.includes('._domainkey.')) return 'DKIM: signs your email'
  if (type === 'CNAME') return 'Return path: receives bounces and aligns SPF'
  return name.startsWith('_dmarc.') ? 'DMARC: policy for forged email' : 'SPF: servers that can send'
}

export type DnsLine = Pick<RecordCheck, 'type' | 'name' | 'value' | 'required'> & Partial<RecordCheck>

const joined = (published: readonly string[]): string => published.slice(0, MAX_PUBLISHED_SHOWN).join(' · ')

/** A longer value to copy is collapsed. */
const LONG_CHARACTERS = 80
const START_CHARACTERS = 40

/** Returns the start of a long value, without the start of a key, because keys only differ later. */
function findStart(value: string): string | undefined {
  if (value.length <= LONG_CHARACTERS) return undefined
  return `${value.slice(0, START_CHARACTERS).replace(/(?<=[\s=;])[^\s=;]+$/, '')}…`
}

/** Builds a record with values to copy, and the published value if it differs. */
function recordShown(
  { type, name, value, state, required, published = [] }: DnsLine,
  zone: string | null,
  next: string | null,
): DnsRecord {
  const host = hostIn(zone, name)
  const isDifferent = state === 'different'
  const { present, missing } =
    isDifferent && published.length === 1 ? cutValue(value, published) : { present: value, missing: '' }
  const [only = value, ...others] = state === 'found' ? published : []
  const shown = others.length > 0 ? value : only
  const instead = published.length > 0 && missing === '' && joined(published) !== shown && joined(published)
  return {
    title: describePurpose({ name, type, value }, next),
    state:
      state === undefined || state === 'found'
        ? { text: state === undefined ? 'not known' : '' }
        : status(state, required ? {} : { tone: 'warn' }),
    detail: compact<string>([
      state === 'found' && '✓\u00a0found',
      type,
      required ? 'needed' : 'recommended',
      isDifferent && differenceWords({ name, value }, published),
    ]).join(' · '),
    lines: compact<DnsRecord['lines'][number]>([
      { label: 'host', value: host, copied: host, tip: name },
      missing === ''
        ? { label: 'value', value: shown, short: findStart(shown), copied: shown }
        : { label: 'value', value: present, missing, copied: value },
      instead && { label: 'in DNS', value: instead },
    ]),
  }
}

/** Labels such as co in co.uk are this short, and few registered domains are. */
const SHORT_LABEL = 3

/** Explains hosts without a known zone. Assumes one label before the registered domain. */
function hostsNote([first]: readonly DnsLine[]): string {
  const [selector, , ...domain] = first?.name.split('.') ?? []
  const isRegistered = domain.length === 2 || (domain.length === 3 && (domain[1]?.length ?? 0) <= SHORT_LABEL)
  const subdomain = isRegistered ? '' : `.${domain[0]}`
  const zone = domain.slice(isRegistered ? 0 : 1).join('.')
  return `Many DNS providers add the registered domain to each host. If yours adds .${zone}, leave it out, and enter only ${selector}._domainkey${subdomain}, for example.`
}

/** True for a required record without a matching value in DNS. */
export const isLacking = ({ required, state }: DnsLine): boolean => required && state !== 'found'

/** Lists the records, lacking ones first. */
export const recordSection = (
  records: readonly DnsLine[],
  zone: string | null,
  { next_dkim_selector: next }: Pick<DomainRow, 'next_dkim_selector'>,
): Section => ({
  kind: 'records',
  id: 'records',
  title: 'DNS records',
  records: records
    .toSorted((one, other) => Number(isLacking(other)) - Number(isLacking(one)))
    .map((record) => recordShown(record, zone, next)),
  note:
    zone === null
      ? hostsNote(records)
      : `Hosts are shown without ${zone}, as most DNS providers expect them. @ means ${zone} itself.`,
})

/** Describes the status of a domain, by the state of its key in DNS if that is known. */
export function domainState(
  { status: word, missing_since }: Pick<DomainRow, 'status' | 'missing_since'>,
  key: DnsLine['state'],
): Cell {
  if (key === 'different') return status('DKIM differs', { tone: 'bad' })
  if (word !== 'verified') return status(word)
  if (key === 'missing') return status('DKIM missing', { tone: 'bad' })
  if (key === undefined && missing_since !== null) return status('DKIM missing or different', { tone: 'bad' })
  return status(word)
}

/** Describes what keeps a domain from sending, or its email from being trusted. */
export function writeLead(
  { status: word, next_dkim_selector: next }: Pick<DomainRow, 'status' | 'next_dkim_selector'>,
  records: readonly DnsLine[],
  { test, role }: Pick<PageTeam, 'test' | 'role'>,
): string {
  const verified = word === 'verified'
  if (verified && test) return 'You can send from this domain. A test team needs no DNS records.'
  const isOwner = role === 'owner'
  const lacking = records.filter(isLacking)
  if (lacking.some(({ state }) => state === undefined))
    return 'DNS isn’t responding. Reload the page later to check the records.'
  const [first] = lacking
  if (first === undefined)
    return verified
      ? 'Ready: you can send from this domain.'
      : `All required records are published. ${isOwner ? 'Verify the domain now' : 'An owner of the team can verify the domain now'}.`
  const isDifferent = first.state === 'different'
  const record =
    first.type === 'TXT' && first.name.includes('._domainkey.') ? 'DKIM record' : `${first.type} record`
  const what = `the ${record} ${isDifferent ? 'has another value' : 'is missing'}`
  const verb = isDifferent ? 'replace' : 'add'
  const remedy = `${isOwner ? headed(verb) : `Ask an owner of the team to ${verb}`} it at your DNS provider.`
  if (!verified) return `Not verified: ${what}. ${remedy} Changes can take up to an hour.`
  return next !== null && first.name.startsWith(`${next}.`)
    ? `You can send from this domain. For the new key, ${what}. ${remedy} Until then, the old key signs.`
    : `You can send from this domain, but ${what}. ${remedy} Until then, email may be rejected or marked as spam.`
}
