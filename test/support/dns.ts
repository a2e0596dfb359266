/**
 * A DNS server that responds to TXT, MX, CNAME, A, AAAA and SOA queries from tables, over UDP on 127.0.0.1.
 * It implements only a part of RFC 1035: one question, uncompressed names, and NXDOMAIN for unknown ones.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import ipaddr from 'ipaddr.js'
import type { Test } from 'tap'

/**
 * TXT records by name, each as a list of strings. Tests can change it at any time. `failing` returns SERVFAIL
 * for everything.
 */
type DnsServer = {
  address: string
  records: Map<string, string[][]>
  /** Hosts that accept mail, by name. */
  exchanges: Map<string, string[]>
  /** Targets of aliases, by name. Other queries don't follow them. */
  aliases: Map<string, string>
  /** Names that are zones. */
  zones: Set<string>
  /** Addresses by name, which may be invalid. `cname:NAME` is an alias of another name. */
  addresses: Map<string, string[]>
  failing: boolean
  /** True if it never responds, or a pattern of the names without a response. */
  silent: boolean | RegExp
  /** The types of queries without a response. */
  silent_types: number[]
  asked: string[]
}

const HEADER = 12
const SERVFAIL = 2
const NXDOMAIN = 3

/** Returns the question's name and type, and its end. */
function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = HEADER
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

const [A, CNAME, SOA, MX, TXT, AAAA] = [1, 5, 6, 15, 16, 28]

/** Builds a record of `owner`, by default a pointer to the question's name. */
function record(type: number, data: Buffer, owner: Buffer = Buffer.from([0xc0, HEADER])): Buffer {
  const fixed = Buffer.from([0, type, 0, 1, 0, 0, 0, 0, 0, 0])
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([owner, fixed, data])
}

const stringsOf = (strings: readonly string[]): Buffer =>
  Buffer.concat(strings.map((text) => Buffer.from([text.length, ...Buffer.from(text)])))

const nameOf = (name: string): Buffer => Buffer.concat([stringsOf(name.split('.')), Buffer.from([0])])

const bytesOf = (address: string): Buffer => Buffer.from(ipaddr.parse(address).toByteArray())

/** Returns the records for an address query, an alias with its target. */
function addressRecords(
  addresses: DnsServer['addresses'],
  name: string,
  type: number,
  owner?: Buffer,
): Buffer[] {
  return (addresses.get(name) ?? []).flatMap((each) => {
    const [, alias] = /^cname:(.*)$/.exec(each) ?? []
    if (alias !== undefined) {
      const target = nameOf(alias)
      return [record(CNAME, target, owner), ...addressRecords(addresses, alias, type, target)]
    }
    return (each.includes(':') ? AAAA : A) === type ? [record(type, bytesOf(each), owner)] : []
  })
}

/** Returns an SOA record with a contact and five unused numbers. */
const zoneRecord = (name: string): Buffer =>
  record(SOA, Buffer.concat([nameOf(`ns.${name}`), nameOf(`hostmaster.${name}`), Buffer.alloc(20)]))

/** Returns the records for a query. `known` is false if the name doesn't exist. */
function answersTo({ records, zones, addresses, aliases, exchanges }: DnsServer, name: string, type: number) {
  if (type === CNAME) {
    const alias = aliases.get(name)
    return { answers: alias === undefined ? [] : [record(CNAME, nameOf(alias))], known: alias !== undefined }
  }
  if (type === MX) {
    const priority = Buffer.from([0, 10])
    const hosts = (exchanges.get(name) ?? []).map((host) => Buffer.concat([priority, nameOf(host)]))
    return { answers: hosts.map((host) => record(MX, host)), known: exchanges.has(name) }
  }
  if (type === TXT) {
    const answers = (records.get(name) ?? []).map((strings) => record(TXT, stringsOf(strings)))
    return { answers, known: records.has(name) }
  }
  if (type === SOA) return { answers: zones.has(name) ? [zoneRecord(name)] : [], known: zones.has(name) }
  return { answers: addressRecords(addresses, name, type), known: addresses.has(name) }
}

function reply(query: Buffer, code: number, answers: readonly Buffer[]): Buffer {
  const question = query.subarray(0, readQuestion(query).end)
  const message = Buffer.concat([question, ...answers])
  message.writeUInt16BE(0x8180 | code, 2)
  message.writeUInt16BE(answers.length, 6)
  message.writeUInt32BE(0, 8)
  return message
}

/** Starts a server that stops when the test ends. */
export async function startDns(t: Test): Promise<DnsServer> {
  const socket = createSocket('udp4')
  const server: DnsServer = {
    address: '',
    records: new Map(),
    zones: new Set(),
    exchanges: new Map(),
    aliases: new Map(),
    addresses: new Map(),
    failing: false,
    silent: false,
    silent_types: [],
    asked: [],
  }
  socket.on('message', (query, from) => {
    const { name, type } = readQuestion(query)
    server.asked.push(name)
    if (server.silent_types.includes(type)) return
    if (server.silent instanceof RegExp ? server.silent.test(name) : server.silent) return
    const { answers, known } = answersTo(server, name, type)
    const code = server.failing ? SERVFAIL : known ? 0 : NXDOMAIN
    socket.send(reply(query, code, code === 0 ? answers : []), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  server.address = `127.0.0.1:${socket.address().port}`
  t.teardown(() => socket.close())
  return server
}
