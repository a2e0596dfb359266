/**
 * Checks the addresses that customers give us to call: only public ones, or networks that the operator has allowed.
 * Every address of a name is checked. Errors reveal nothing about our network. Callers must connect to a returned
 * address, never to the name again.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** A private network that may be reached: an address and the length of its prefix. */
export type Network = ReturnType<typeof ipaddr.parseCIDR>

/** An address as proxies write it: in brackets, or with a port. */
const WITH_PORT = /^(?:\[(?<v6>[^\]]+)\](?::\d+)?|(?<v4>[\d.]+):\d+)$/

/**
 * Returns the network that limits apply to: an IPv4 address itself, the /64 of an IPv6 address, otherwise the text.
 */
export function toNetwork(address: string): string {
  const { v4, v6 } = WITH_PORT.exec(address)?.groups ?? {}
  const bare = v4 ?? v6 ?? address
  if (isIP(bare) === 0) return bare
  const one = parsed(bare)
  return one.kind() === 'ipv4' ? one.toString() : `${ipaddr.IPv6.networkAddressFromCIDR(`${one}/64`)}/64`
}

/** The complete error for an address that isn't public. */
const NOT_PUBLIC = 'not a public address'

/** This machine, as WEBHOOK_ALLOW has it. */
export const LOOPBACK = '127.0.0.0/8,::1/128'

const LONGEST_URL = 2_048
/** The range of public IPv6 addresses. All others are local, translated or reserved. */
const GLOBAL = ipaddr.parseCIDR('2000::/3')

/** Parses networks of a setting. @throws Error for an invalid CIDR. */
export const networksIn = (cidrs: readonly string[]): Network[] => cidrs.map((cidr) => ipaddr.parseCIDR(cidr))

/** Parses an address. An IPv4-mapped IPv6 address becomes IPv4. */
const parsed = (address: string) => ipaddr.process(address)

function isWithin(address: string, networks: readonly Network[]): boolean {
  const one = parsed(address)
  return networks.some((network) => network[0].kind() === one.kind() && one.match(network as never))
}

/** Addresses in public ranges that only machines inside of a platform reach: services of Azure and of IBM's cloud. */
const OF_PLATFORMS = networksIn(['168.63.129.16/32', '161.26.0.0/16', '166.8.0.0/14'])

/** True if the address is reachable from the internet. */
function isPublicAddress(address: string): boolean {
  const one = parsed(address)
  if (one.range() !== 'unicast' || isWithin(address, OF_PLATFORMS)) return false
  return one.kind() === 'ipv4' || one.match(GLOBAL as never)
}

/** Returns a URL's host as an address, or null if it is a name. */
function parseLiteral(hostname: string): string | null {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(bare) === 0 ? null : bare
}

/**
 * Returns the error of a URL to call, to continue "url", or null. Its name is resolved and checked with each call.
 */
export function urlFault(text: string, allowed: readonly Network[]): string | null {
  if (text.length > LONGEST_URL) return `must be at most ${LONGEST_URL} characters long`
  if (!URL.canParse(text)) return 'must be a URL such as https://example.com/webhooks'
  const { protocol, username, password, hostname } = new URL(text)
  if (protocol !== 'https:' && protocol !== 'http:') return 'must start with https://'
  if (username !== '' || password !== '') return 'must not contain a user name or a password'
  const literal = parseLiteral(hostname)
  const isAllowed = literal === null ? mayBeAllowed(hostname, allowed) : isWithin(literal, allowed)
  const isPublic = literal === null ? !isLocalName(hostname) : isPublicAddress(literal)
  if (!isPublic && !isAllowed) return 'must lead to a public address'
  return protocol === 'http:' && !isAllowed ? 'must start with https://' : null
}

/** Names that never lead to the internet. */
const isLocalName = (hostname: string): boolean => /(^|\.)localhost\.?$/i.test(hostname)

const THIS_MACHINE = networksIn(['127.0.0.0/8', '::1/128'])

/** True if a name may resolve to an address in an allowed network. Only local names may resolve to this machine. */
const mayBeAllowed = (hostname: string, allowed: readonly Network[]): boolean =>
  allowed.some((network) => isLocalName(hostname) === isWithin(network[0].toString(), THIS_MACHINE))

export type Resolve = (hostname: string) => Promise<readonly string[]>

/** Thrown for a name or an address that we do not call. */
export class NotPublic extends Error {
  override name = 'NotPublic'
}

/**
 * Returns the addresses to connect to for a URL.
 * @throws NotPublic if one of them is neither public nor allowed, or if plain http leads outside an allowed network.
 * Also the resolver's errors.
 */
export async function vettedAddresses(
  { hostname, protocol }: URL,
  { resolve, allowed }: { resolve: Resolve; allowed: readonly Network[] },
): Promise<readonly string[]> {
  const literal = parseLiteral(hostname)
  const addresses = literal === null ? await resolve(hostname) : [literal]
  const passes = (address: string) =>
    isIP(address) !== 0 && (isWithin(address, allowed) || (protocol === 'https:' && isPublicAddress(address)))
  if (addresses.length === 0 || !addresses.every(passes)) throw new NotPublic(NOT_PUBLIC)
  return addresses
}
