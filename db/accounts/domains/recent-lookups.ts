/**
 * Remembers responses of DNS for a short time, so that pages don't look up the same names at each request. Errors
 * aren't remembered.
 */
import type { DnsRecord } from './dkim.ts'
import type { DomainLookups, ZoneLookup } from './dns-lookups.ts'

/** How long a response is used again, in milliseconds. */
const KEPT_MS = 60_000
/** Maximum number of remembered responses. The oldest are dropped. */
const MAX_KEPT = 500

type Response = { at: Date; values: Promise<string[]> }
type Question = Pick<DnsRecord, 'type' | 'name'>

export type RecentLookups = DomainLookups & {
  zoneOf: ZoneLookup
  /** Looks names up again, and remembers the responses. */
  fresh: DomainLookups
  /** Returns when these records were looked up, or null if any of them wasn't. The oldest time counts. */
  lookedUpAt: (records: readonly Question[]) => Date | null
}

export function createRecentLookups(
  { lookupTxt, lookupCname, lookupMx, zoneOf }: DomainLookups & { zoneOf: ZoneLookup },
  clock: () => Date,
): RecentLookups {
  const kept = new Map<string, Response>()
  const toKey = ({ type, name }: Question): string => `${type} ${name}`
  const keep = (key: string, look: () => Promise<string[]>): Promise<string[]> => {
    const response = { at: clock(), values: look() }
    kept.delete(key)
    kept.set(key, response)
    const [oldest] = kept.keys()
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest)
    response.values.catch(() => {
      if (kept.get(key) === response) kept.delete(key)
    })
    return response.values
  }
  const recent = (key: string, look: () => Promise<string[]>): Promise<string[]> => {
    const known = kept.get(key)
    return known && clock().getTime() - known.at.getTime() < KEPT_MS ? known.values : keep(key, look)
  }
  const lookups = (ask: typeof keep): DomainLookups => ({
    lookupTxt: (name) => ask(toKey({ type: 'TXT', name }), () => lookupTxt(name)),
    lookupCname: (name) => ask(toKey({ type: 'CNAME', name }), () => lookupCname(name)),
    lookupMx: (name) => ask(`MX ${name}`, () => lookupMx(name)),
  })
  const lookUpZone = async (name: string): Promise<string[]> => {
    const zone = await zoneOf(name)
    if (zone === null) throw new Error(`the zone of ${name} is unknown`)
    return [zone]
  }
  return {
    ...lookups(recent),
    fresh: lookups(keep),
    zoneOf: (name) =>
      recent(`zone ${name}`, () => lookUpZone(name)).then(
        ([zone]) => zone ?? null,
        () => null,
      ),
    lookedUpAt: (records) => {
      const times = records.map((record) => kept.get(toKey(record))?.at.getTime() ?? Number.NaN)
      const oldest = Math.min(...times)
      return times.length === 0 || Number.isNaN(oldest) ? null : new Date(oldest)
    },
  }
}
