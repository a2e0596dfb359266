/**
 * Looks up names that others give us: servers of webhooks, domains that are checked.
 * Promises: asked by c-ares over sockets of its own, never on libuv's four threads, where the names of the relay and
 * the database wait, each for as long as a name server hangs; what /etc/hosts says holds, as localhost does. One
 * question about a name is under way at a time, and ends within seconds. One that hung is not asked again for a while,
 * longer each time; those that did share a few places, and no new name holds one of those that are known.
 * Must not judge what it finds.
 */

import { lookup, NODATA, NOTFOUND, Resolver } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { RequestError } from '../errors.ts'
import { createKeyedSemaphore } from './keyed-semaphore.ts'

class Unanswered extends Error {
  override name = 'Unanswered'
}

/** For one question, however many servers are asked in turn, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 5_000
/** Questions at once in this process: of names that had an answer last time, of new ones, and of those that hung. */
const MAX_LOOKUPS = 64
const PLACES_HUNG = 4
/** For how long one that hung is left alone: twice as long each time. Milliseconds. */
const HUNG_REST_MS = 10_000
const LONGEST_REST = 600_000
/** Of how many names it is remembered how they stood. */
const NAMES_REMEMBERED = 5_000
/** For how long the system's settings hold: its name servers and its own names. */
const SETTINGS_CACHED_MS = 10_000
const HOSTS = '/etc/hosts'

/** @param server `host` or `host:port`, in place of the system's name servers. */
export function createNames(server?: string, patience = LOOKUP_TIMEOUT_MS) {
  const system = createSystem(server)
  const ask = guarded(patience)
  return {
    /** Every address of a name. @throws Error with the resolver's code; Unanswered */
    async addresses(name: string): Promise<readonly string[]> {
      const known = system.hosts().get(name.toLowerCase().replace(/\.$/, ''))
      if (known) return known
      const resolver = await system.resolver()
      return ask(`addresses ${name}`, () => addressesBy(resolver, name, patience))
    },
    /** The strings of each of its TXT records. @throws as `addresses` does. */
    async texts(name: string): Promise<string[][]> {
      const resolver = await system.resolver()
      return ask(`texts ${name}`, () => within(resolver.resolveTxt(name), patience))
    },
    /** The names that a name is an alias of. @throws as `addresses` does. */
    async aliases(name: string): Promise<string[]> {
      const resolver = await system.resolver()
      return ask(`aliases ${name}`, () => within(resolver.resolveCname(name), patience))
    },
    /** The hosts that accept mail for a name. @throws as `addresses` does. */
    async exchanges(name: string): Promise<string[]> {
      const resolver = await system.resolver()
      const found = await ask(`exchanges ${name}`, () => within(resolver.resolveMx(name), patience))
      return found.map(({ exchange }) => exchange)
    },
    /** The zone that a name's records are kept in: the nearest name above it that has an SOA record. Null for none. */
    async zone(name: string): Promise<string | null> {
      const resolver = await system.resolver()
      return ask(`zone ${name}`, () => within(zoneBy(resolver, name), patience))
    },
  }
}

/** A top-level domain is nobody's zone. */
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

/** Both families: what one of them says holds if the other one hangs. */
async function addressesBy(resolver: Resolver, name: string, patience: number): Promise<readonly string[]> {
  const asked = [resolver.resolve4(name), resolver.resolve6(name)]
  const answers = await Promise.allSettled(asked.map((each) => within(each, patience)))
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (found.length > 0) return found
  const faults = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []))
  throw faults.find((fault) => fault instanceof Unanswered) ?? faults[0] ?? noAddress(name)
}

/** Of a name that is another one's, and that has none or goes round in a circle: c-ares answers with an empty list. */
const noAddress = (name: string): Error =>
  Object.assign(new Error(`${name} has no address`), { code: NODATA })

/** @throws Unanswered once patience is over, or the resolver's is. */
const within = <T>(question: Promise<T>, patience: number): Promise<T> =>
  new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(unanswered(patience)), patience)
    const end = (error: NodeJS.ErrnoException): void =>
      reject(error.code === 'ETIMEOUT' ? unanswered(patience) : error)
    question.then(resolve, end).finally(() => clearTimeout(late))
  })

const unanswered = (patience: number): Unanswered =>
  new Unanswered(`no name server answered within ${patience / 1_000} s`)

/** How a name stood when it was asked last: it was answered, or hung and is left alone until then. */
type NameState = 'answered' | { rest: number; until: number }

/** Asks so that a question that hangs takes nothing from the others. */
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
      throw new Unanswered('no name server responded last time. The next query is made later')
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

/** What this machine says of names: whom to ask, and what it knows by itself. Read again now and then. */
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

/** The server with its address in place of its name, as c-ares takes it. */
async function serverAddress(server: string): Promise<string> {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(server) ?? []
  const host = bracketed ?? plain ?? server
  const fault = () => new RequestError('bad_request', `DNS_SERVER must be host or host:port, not ${server}`)
  const address = isIP(host) ? host : (await lookup(host).catch(() => Promise.reject(fault()))).address
  if (Number(port ?? 53) > 65_535) throw fault()
  return `[${address}]:${port ?? 53}`
}

/** The names of /etc/hosts: a few lines, read at once, since libuv's threads may be waiting for names. */
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
