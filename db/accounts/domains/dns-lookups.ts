/** Looks up DNS records of domains. Missing records are an empty list. */
import { codeOf, errorWords, RequestError } from '../../errors.ts'
import { createNames } from '../../process/dns.ts'

/** The TXT records of a name, each joined to one string. */
export type TxtLookup = (name: string) => Promise<string[]>

export type DomainLookups = {
  lookupTxt: TxtLookup
  /** The targets of a name's CNAME records. */
  lookupCname: (name: string) => Promise<string[]>
  /** The mail servers of a name. */
  lookupMx: (name: string) => Promise<string[]>
}

/** Finds the zone of a name. Null if it is unknown at the moment. */
export type ZoneLookup = (name: string) => Promise<string | null>

const ABSENT = new Set(['ENOTFOUND', 'ENODATA'])

/** No name has more records. The rest of a response is ignored. */
const MAX_RECORDS = 200
/** The timeout for one name, including all servers that the resolver queries, in milliseconds. */
const DNS_TIMEOUT_MS = 10_000

/**
 * Queries the system's resolver, or the server named `host` or `host:port`.
 * @throws RequestError unavailable (when looking up) if no server responds in time.
 */
export function createDomainLookups(server?: string, patience = DNS_TIMEOUT_MS): DomainLookups {
  const names = createNames(server, patience)
  const found = async <T>(name: string, asked: Promise<readonly T[]>): Promise<T[]> => {
    try {
      return (await asked).slice(0, MAX_RECORDS)
    } catch (error) {
      if (error instanceof RequestError) throw error
      const code = codeOf(error)
      if (code !== undefined && ABSENT.has(code)) return []
      throw new RequestError('unavailable', `Could not look up ${name}: ${errorWords(error)}`)
    }
  }
  return {
    lookupTxt: async (name) => (await found(name, names.texts(name))).map((strings) => strings.join('')),
    lookupCname: async (name) => (await found(name, names.aliases(name))).map(bareName),
    // An empty host means that the name accepts no mail (RFC 7505).
    lookupMx: async (name) =>
      (await found(name, names.exchanges(name))).map(bareName).filter((host) => host !== ''),
  }
}

const bareName = (name: string): string => name.toLowerCase().replace(/\.$/, '')

/** Queries like `createDomainLookups`. Returns null if the name server is unavailable. */
export function createZoneLookup(server?: string): ZoneLookup {
  const names = createNames(server, DNS_TIMEOUT_MS)
  return (name) => names.zone(name).catch(() => null)
}
