/**
 * Resolves names that come from outside: the servers of webhooks, and domains to check. Uses c-ares with separate
 * sockets, because libuv's four threads also resolve the relay and the database and would block while a name server
 * hangs. Names in /etc/hosts, and localhost, resolve as usual. Concurrent queries for the same records share one
 * query. A query that hung isn't repeated for a while, twice as long each time. Hung names share a few slots, so they
 * can't block other names, and new names can't block known ones.
 */

import { lookup, NODATA, NOTFOUND, Resolver } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { RequestError } from '../errors.ts'
import { createKeyedSemaphore } from './keyed-semaphore.ts'

class Unanswered extends Error {
  override name = 'Unanswered'
}

/** The time limit of a query over all name servers, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 5_000
/**
 * Concurrent queries in this process. The first limit is for names that had a response last time, and again for new
 * names. The second is for names that hung.
 */
const MAX_LOOKUPS = 64
const PLACES_HUNG = 4
/** How long a name that hung isn't queried. Doubles each time. In milliseconds. */
const HUNG_REST_MS = 10_000
const LONGEST_REST = 600_000
/** The number of names whose last result is remembered. */
const NAMES_REMEMBERED = 5_000
/** How long the system's name servers and hosts are cached. */
const SETTINGS_CACHED_MS = 10_000
const HOSTS = '/etc/hosts'

/** @param server `host` or `host:port`, instead of the system's name servers. */
export function createNames(server?: string, patience = LOOKUP_TIMEOUT_MS) {
  const system = createSystem(server)
  const ask = guarded(patience)
  const askFor = async <T>(kind: string, name: string, query: (resolver: Resolver) => Promise<T>) => {
    const resolver = await system.resolver()
    return ask(`${kind} ${name}`, () => query(resolver))
  }
  return {
    /** Returns all addresses of a name. @throws Error with the resolver's code, or Unanswered. */
    async addresses(name: string): Promise<readonly string[]> {
      const known = system.hosts().get(name.toLowerCase().replace(/\.$/, ''))
      return known ?? askFor('addresses', name, (resolver) => addressesBy(resolver, name, patience))
    },
    /** Returns the strings of each TXT record. @throws like `addresses`. */
    texts: (name: string) => askFor('texts', name, (resolver) => within(resolver.resolveTxt(name), patience)),
    /** Returns the targets of a name's CNAME records. @throws like `addresses`. */
    aliases: (name: string) =>
      askFor('aliases', name, (resolver) => within(resolver.resolveCname(name), patience)),
    /** Returns the mail servers of a name. @throws like `addresses`. */
    async exchanges(name: string): Promise<string[]> {
      const query = (resolver: Resolver) => within(resolver.resolveMx(name), patience)
      const found = await askFor('exchanges', name, query)
      return found.map(({ exchange }) => exchange)
    },
    /** Returns the zone of a name: the name itself or the nearest parent with an SOA record, or null. */
    zone: (name: string) => askFor('zone', name, (resolver) => within(zoneBy(resolver, name), patience)),
  }
}

/** Never returns a top-level domain. */
async function zoneBy(resolver: Resolver, name: string): Promise<string | null> {
  for (let zone = name; zone.includes('.'); zone = zone.slice(zone.indexOf('.') + 1)) {
    const found = await resolver.resolveSoa(zone).catch((error: NodeJS.ErrnoException) => {
      if (error.code === NODATA || error.code === NOTFOUND) return null
      throw error
    })
    if (found !== null) return zone
  }
  return null
}

/** Queries both address families. If one hangs, the other's result is used. */
async function addressesBy(resolver: Resolver, name: string, patience: number): Promise<readonly string[]> {
  const asked = [resolver.resolve4(name), resolver.resolve6(name)]
  const answers = await Promise.allSettled(asked.map((each) => within(each, patience)))
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (found.length > 0) return found
  const faults = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  throw faults.find((fault) => fault instanceof Unanswered) ?? faults[0] ?? noAddress(name)
}

/** For an alias without an address, or a loop of aliases. c-ares returns an empty list for both. */
const noAddress = (name: string): Error =>
  Object.assign(new Error(`${name} has no address`), { code: NODATA })

/** @throws Unanswered after `patience` milliseconds, or if the resolver times out. */
const within = <T>(question: Promise<T>, patience: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(unanswered(patience)), patience)
    const end = (error: NodeJS.ErrnoException): void =>
      reject(error.code === 'ETIMEOUT' ? unanswered(patience) : error)
    question.then(resolve, end).finally(() => clearTimeout(late))
  })

const unanswered = (patience: number): Unanswered =>
  new Unanswered(`no name server responded within ${patience / 1_000} s`)

/** The last result of a name. A name that hung isn't queried until `until`. */
type NameState = 'answered' | { rest: number; until: number }

/** Limits queries so that hung ones don't block others. */
function guarded(patience: number) {
  const under_way = new Map<string, Promise<unknown>>()
  const states = new Map<string, NameState>()
  const places = createKeyedSemaphore(MAX_LOOKUPS)
  const few = createKeyedSemaphore(PLACES_HUNG)

  const remember = (key: string, state: NameState): void => {
    states.delete(key)
    states.set(key, state)
    const [oldest] = states.keys()
    if (states.size > NAMES_REMEMBERED && oldest !== undefined) states.delete(oldest)
  }
  const attempt = async <T>(key: string, work: () => Promise<T>): Promise<readonly [T]> => {
    const last = states.get(key)
    try {
      const answer = await work()
      remember(key, 'answered')
      return [answer]
    } catch (error) {
      const rest = typeof last === 'object' ? Math.min(last.rest * 2, LONGEST_REST) : HUNG_REST_MS
      const hung = error instanceof Unanswered
      remember(key, hung ? { rest, until: performance.now() + rest } : 'answered')
      throw error
    }
  }
  const question = async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const last = states.get(key)
    const hung = typeof last === 'object'
    if (hung && performance.now() < last.until)
      throw new Unanswered('no name server responded to the last query. Try again later')
    const begin = () => attempt(key, work)
    const answer = await (hung ? few.run('', begin, 0) : places.run(last ?? 'new', begin, patience))
    if (answer === null) throw new Error('too many names are being looked up')
    return answer[0]
  }
  return <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const asked = under_way.get(key)
    if (asked) return asked as Promise<T>
    const answer = question(key, work).finally(() => under_way.delete(key))
    under_way.set(key, answer)
    return answer
  }
}

/** The system's name servers and hosts, reloaded regularly. */
function createSystem(server: string | undefined) {
  let read = Number.NEGATIVE_INFINITY
  let hosts = new Map<string, string[]>()
  let resolver: Promise<Resolver> | null = null
  const renewed = <T>(part: () => T): T => {
    if (performance.now() - read >= SETTINGS_CACHED_MS) {
      read = performance.now()
      hosts = readHosts()
      resolver = null
    }
    return part()
  }
  return {
    hosts: () => renewed(() => hosts),
    resolver: () => renewed(() => (resolver ??= makeResolver(server))),
  }
}

async function makeResolver(server: string | undefined): Promise<Resolver> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2, maxTimeout: 2_000 })
  if (server !== undefined) resolver.setServers([await serverAddress(server)])
  return resolver
}

/** Resolves the host of the server, because c-ares only accepts addresses. */
async function serverAddress(server: string): Promise<string> {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(server) ?? []
  const host = bracketed ?? plain ?? server
  const fault = () => new RequestError('bad_request', `DNS_SERVER must be host or host:port, not ${server}`)
  const address = isIP(host) ? host : (await lookup(host).catch(() => Promise.reject(fault()))).address
  if (Number(port ?? 53) > 65_535) throw fault()
  return `[${address}]:${port ?? 53}`
}

/** Reads /etc/hosts. It is small, and an asynchronous read could wait for libuv's threads. */
function readHosts(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const line of hostsText().split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) found.set(name, [...new Set([...(found.get(name) ?? []), address])])
  }
  if (!found.has('localhost')) found.set('localhost', ['127.0.0.1', '::1'])
  return found
}

function hostsText(): string {
  try {
    return readFileSync(HOSTS, 'utf8')
  } catch {
    return ''
  }
}
