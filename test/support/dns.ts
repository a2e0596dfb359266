/**
 * A DNS server that answers TXT questions from a table, over UDP on 127.0.0.1.
 * Promises just enough of RFC 1035 for a resolver: one question, uncompressed names in it, NXDOMAIN for what it lacks.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from 'tap'

/** TXT records by name: each record is its strings. Change it at any time. `failing` answers SERVFAIL to everything. */
export type DnsServer = {
  address: string
  records: Map<string, string[][]>
  failing: boolean
  /** Whether it answers at all. */
  silent: boolean
  asked: string[]
}

const HEADER = 12
const SERVFAIL = 2
const NXDOMAIN = 3

/** The question's name and where the question ends. */
function readQuestion(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = HEADER
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5 }
}

/** An answer that points back at the question's name. */
function txtRecord(strings: readonly string[]): Buffer {
  const data = Buffer.concat(strings.map((text) => Buffer.from([text.length, ...Buffer.from(text)])))
  const fixed = Buffer.from([0xc0, HEADER, 0, 16, 0, 1, 0, 0, 0, 0, 0, 0])
  fixed.writeUInt16BE(data.length, 10)
  return Buffer.concat([fixed, data])
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
  const server: DnsServer = { address: '', records: new Map(), failing: false, silent: false, asked: [] }
  socket.on('message', (query, from) => {
    const { name } = readQuestion(query)
    server.asked.push(name)
    if (server.silent) return
    const records = server.records.get(name)
    const code = server.failing ? SERVFAIL : records ? 0 : NXDOMAIN
    socket.send(reply(query, code, code === 0 ? (records ?? []).map(txtRecord) : []), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  server.address = `127.0.0.1:${socket.address().port}`
  t.teardown(() => socket.close())
  return server
}
