/**
 * The guard before every address that a customer gives us to call: only public ones, or those of networks that the
 * operator has allowed.
 * Promises: each address that a name has is looked at, and one that is not public refuses all; what is said of a
 * refusal reveals nothing of our network. Callers must connect to an address from here, never to the name again.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** A network that may be reached although it is private: an address and how many bits of it count. */
export type Network = ReturnType<typeof ipaddr.parseCIDR>

/** An address as proxies write it: in brackets, or with a port. */
const WITH_PORT = /^(?:\[(?<v6>[^\]]+)\](?::\d+)?|(?<v4>[\d.]+):\d+)$/

/** The network that limits count for an address: an IPv4 address itself, the /64 of an IPv6 one; else the text. */
export function networkOf(address: string): string {
  const { v4, v6 } = WITH_PORT.exec(address)?.groups ?? {}
  const bare = v4 ?? v6 ?? address
  if (isIP(bare) === 0) return bare
  const one = parsed(bare)
  return one.kind() === 'ipv4' ? one.toString() : `${ipaddr.IPv6.networkAddressFromCIDR(`${one}/64`)}/64`
}

/** All that is ever said of an address that is refused. */
const NOT_PUBLIC = 'not a public address'

/** This machine, as WEBHOOK_ALLOW has it. */
export const LOOPBACK = '127.0.0.0/8,::1/128'

const LONGEST_URL = 2_048
/** Where IPv6 addresses of the internet are; all else is local, translated or reserved. */
const GLOBAL = ipaddr.parseCIDR('2000::/3')

/** Networks as a setting lists them. @throws Error for one that is no CIDR. */
export const networksOf = (cidrs: readonly string[]): Network[] => cidrs.map((cidr) => ipaddr.parseCIDR(cidr))

/** An address; an IPv4 one that is written as IPv6 becomes what it is. */
const parsed = (address: string) => ipaddr.process(address)

function isWithin(address: string, networks: readonly Network[]): boolean {
  const one = parsed(address)
  return networks.some((network) => network[0].kind() === one.kind() && one.match(network as never))
}

/** Addresses in public ranges that only machines inside of a platform reach: services of Azure and of IBM's cloud. */
const OF_PLATFORMS = networksOf(['168.63.129.16/32', '161.26.0.0/16', '166.8.0.0/14'])

/** Whether anybody on the internet can reach this address. */
function isPublicAddress(address: string): boolean {
  const one = parsed(address)
  if (one.range() !== 'unicast' || isWithin(address, OF_PLATFORMS)) return false
  return one.kind() === 'ipv4' || one.match(GLOBAL as never)
}

/** A host of a URL as an address; null when it is a name. */
function literalOf(hostname: string): string | null {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(bare) === 0 ? null : bare
}

/**
 * What is wrong with a URL that somebody gives us to call, after "url"; null when it may be tried. What its name stands
 * for is looked at with each call.
 */
export function urlFault(text: string, allowed: readonly Network[]): string | null {
  if (text.length > LONGEST_URL) return `must be at most ${LONGEST_URL} characters long`
  if (!URL.canParse(text)) return 'must be a URL such as https://example.com/webhooks'
  const { protocol, username, password, hostname } = new URL(text)
  if (protocol !== 'https:' && protocol !== 'http:') return 'must start with https://'
  if (username !== '' || password !== '') return 'must not contain a user name or a password'
  const literal = literalOf(hostname)
  const isAllowed = literal === null ? mayBeAllowed(hostname, allowed) : isWithin(literal, allowed)
  const isPublic = literal === null ? !isLocalName(hostname) : isPublicAddress(literal)
  if (!isPublic && !isAllowed) return 'must lead to a public address'
  return protocol === 'http:' && !isAllowed ? 'must start with https://' : null
}

/** Names that never lead to the internet. */
const isLocalName = (hostname: string): boolean => /(^|\.)localhost\.?$/i.test(hostname)

const THIS_MACHINE = networksOf(['127.0.0.0/8', '::1/128'])

/** Whether a name may stand for an address of an allowed network; of this machine's only names of its own do. */
const mayBeAllowed = (hostname: string, allowed: readonly Network[]): boolean =>
  allowed.some((network) => isLocalName(hostname) === isWithin(network[0].toString(), THIS_MACHINE))

/** Finds every address of a name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** Thrown for a name or an address that we do not call. */
export class NotPublic extends Error {
  override name = 'NotPublic'
}

/**
 * The addresses to connect to for a URL. @throws NotPublic when one of them is not public, nor allowed, or when plain
 * http leads elsewhere than into an allowed network; the resolver's errors.
 */
export async function vettedAddresses(
  { hostname, protocol }: URL,
  { resolve, allowed }: { resolve: Resolve; allowed: readonly Network[] },
): Promise<readonly string[]> {
  const literal = literalOf(hostname)
  const addresses = literal === null ? await resolve(hostname) : [literal]
  const passes = (address: string) =>
    isIP(address) !== 0 && (isWithin(address, allowed) || (protocol === 'https:' && isPublicAddress(address)))
  if (addresses.length === 0 || !addresses.every(passes)) throw new NotPublic(NOT_PUBLIC)
  return addresses
}
