/** Limits on the responses to our requests, tested with raw bytes over TCP. */
import { Agent } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { beginRequest, isUnsent } from '../../../db/process/http-client.ts'
import { ask, keepAliveAgent } from '../../../db/process/limited-response.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { portOf } from '../../support/port.ts'
import { drip, pour, startTalker } from '../../support/talker.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const BOUNDS = { bytes: 64 * 1024, ms: 60_000 }
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const before = (times: number, head = 'HTTP/1.1 103 E') => `${head}\r\n\r\n`.repeat(times)

/** Returns the body, or the error. */
const said = async (url: string): Promise<string> => {
  const answer = await ask(url, { method: 'POST', body: '{}' }, BOUNDS).catch((error: Error) => error)
  return answer instanceof Error ? answer.message : (answer.body?.toString() ?? answer.fault)
}

const HOSTILE: [string, (socket: Socket) => void, RegExp][] = [
  ['early hints without end', (socket) => pour(socket, before(4_000)), /more than 8 informational responses/],
  [
    '100 without end',
    (socket) => pour(socket, before(4_000, 'HTTP/1.1 100 Continue')),
    /more than 8 informational responses/,
  ],
  [
    'another protocol',
    (socket) => socket.write('HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    /without a response/,
  ],
  [
    'large early hints',
    (socket) => pour(socket, `HTTP/1.1 103 E\r\na: ${'a'.repeat(15_000)}\r\n\r\n`),
    /larger than 160 KiB|more than 8/,
  ],
  ['a head without end', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\n'.padEnd(60_000, 'a: b\r\n')), /./],
  ['a head byte by byte', (socket) => drip(socket, 'H'), /./],
  [
    'a body of single bytes',
    (socket) => pour(socket, CHUNKED + '1\r\nx\r\n'.repeat(10_000)),
    /more than 1280 pieces/,
  ],
  ['an extension without end', (socket) => pour(socket, `${CHUNKED}1;${'a'.repeat(200_000)}`), /./],
  [
    'trailers without end',
    (socket) => pour(socket, `${CHUNKED}1\r\nx\r\n0\r\n${'a: b\r\n'.repeat(50_000)}`),
    /./,
  ],
  [
    'a compressed response',
    (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n'),
    /is compressed/,
  ],
]

for (const [name, answer, words] of HOSTILE) {
  t.test(`ends a request at once after ${name}`, async (t) => {
    const { url, standing } = await startTalker(t, answer)
    const begun = process.cpuUsage()
    const ends = await Promise.all(Array.from({ length: 10 }, () => said(url)))
    const { user, system } = process.cpuUsage(begun)
    for (const end of ends) t.match(end, words)
    // Without limits, each would use seconds of CPU time.
    t.ok((user + system) / 1_000 < 2_000, `${(user + system) / 1_000} ms for ten`)
    await until('it is hung up on', () => standing() === 0)
  })
}

t.test('accepts a few early hints before a response', async (t) => {
  const { url } = await startTalker(t, (socket) => socket.write(before(8) + OK))
  t.equal(await said(url), 'ok')
  const words = `HTTP/1.1 200 OK\r\nContent-Length: 3600\r\n\r\n${'HTTP/1.1 103 '.padEnd(36).repeat(100)}`
  const page = await startTalker(t, (socket) =>
    socket.write(words.slice(0, 60), () => socket.write(words.slice(60))),
  )
  t.match(await said(page.url), /^HTTP\/1.1 103/, 'in a body they do not count')
  const nine = before(9)
  const slow = await startTalker(t, async (socket) => {
    socket.setNoDelay(true)
    for (const part of nine.match(/[\s\S]{1,5}/g) ?? [])
      await new Promise((next) => socket.write(part, () => setTimeout(next, 2)))
  })
  t.match(await said(slow.url), /more than 8 informational responses/, 'split between reads they count')
})

t.test('closes an idle connection that receives unsolicited data', async (t) => {
  const { url, standing } = await startTalker(t, (socket) => {
    socket.write(OK)
    setTimeout(pour, 50, socket, 'x'.repeat(64 * 1024))
  })
  const agent = keepAliveAgent(url)
  t.teardown(() => agent.destroy())
  t.match(await ask(url, { agent }, BOUNDS), { status: 200 })
  t.equal(standing(), 1)
  await until('it is hung up on', () => standing() === 0, 3)
})

t.test('a request that failed in its TLS handshake is unsent', async (t) => {
  const { pem: cert, key_pem: key } = makeCertificate(['localhost'])
  const cut = (socket: Socket) => socket.on('error', () => {}).once('data', () => socket.destroy())
  const agent = new Agent({ rejectUnauthorized: false })
  for (const [server, unsent] of [
    [createServer(cut), true],
    [createTlsServer({ cert, key }, cut), false],
  ] as const) {
    const url = new URL(`https://127.0.0.1:${await portOf(t, server)}`)
    const bounds = { connect_ms: 10_000, bytes: BOUNDS.bytes }
    const { response } = beginRequest(url, { method: 'POST', body: '{}', agent }, bounds)
    const fault = await response.then(
      () => null,
      (error: unknown) => error,
    )
    t.match(fault, Error)
    t.equal(isUnsent(fault), unsent)
  }
})
