/**
 * The connections of the server: interrupted, stalled and invalid requests are ended, whatever the client
 * does.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApp } from '../../../api/app.ts'
import { serve } from '../../../api/http/server.ts'
import { world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { service, team } = await world(t)

/** Long enough that a client on a busy machine doesn't count as stalled. */
const PACE = { bytes: 1_000, window: 2_000 }

/** Starts the API with short timeouts. `ended` counts the requests whose handler has ended. */
async function start(t: Test) {
  const handle = createApp(service.deps).callback()
  const counts = { begun: 0, ended: 0 }
  const server = await serve(
    (request, response) => {
      counts.begun += 1
      return handle(request, response).finally(() => {
        counts.ended += 1
      })
    },
    { PORT: 0 },
    { headersTimeout: 200, connectionsCheckingInterval: 50, pace: PACE },
  )
  t.teardown(server.drain)
  return { port: server.port, counts }
}

/** A client that sends a text and never closes its half of the connection. */
function openClient(t: Test, port: number, text: string) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  let heard = ''
  socket.on('data', (chunk) => {
    heard += chunk.toString()
  })
  socket.write(text)
  return { socket, heard: () => heard }
}

const UPLOAD = [
  'POST /v1/emails HTTP/1.1',
  'Host: x',
  `Authorization: Bearer ${team.key}`,
  'Content-Type: application/json',
]
const upload = (...headers: string[]): string => [...UPLOAD, ...headers, '', ''].join('\r\n')

/** Resolves when the server has closed the connection. Only then does it reject bytes. */
async function letGo(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  const gone = new Promise((resolve) => socket.once('close', resolve))
  const poke = setInterval(() => socket.write('x'), 20)
  await gone
  clearInterval(poke)
}

t.test('an interrupted upload ends its request', async (t) => {
  const { port, counts } = await start(t)
  const clients = Array.from({ length: 20 }, () =>
    openClient(t, port, `${upload('Content-Length: 5000000')}${'x'.repeat(100_000)}`),
  )
  await until('all have begun', () => counts.begun === 20)
  for (const { socket } of clients) socket.destroy()
  await until('all have ended', () => counts.ended === 20)
  t.equal(counts.ended, 20)
})

t.test('a stalled upload gets 400, and its connection is closed', async (t) => {
  const { port, counts } = await start(t)
  const { socket, heard } = openClient(t, port, `${upload('Content-Length: 1000')}{"fro`)
  await once(socket, 'end')
  t.match(heard(), /^HTTP\/1\.1 400 [\s\S]*"bad_request"[\s\S]*too slowly/)
  await letGo(socket)
  await until('its request has ended', () => counts.ended === 1)
})

t.test('a trickling upload is closed like a stalled one', async (t) => {
  const { port, counts } = await start(t)
  const { socket, heard } = openClient(t, port, upload('Content-Length: 100000'))
  socket.on('error', () => {})
  const drip = setInterval(() => socket.write('x'), 20)
  t.teardown(() => clearInterval(drip))
  await once(socket, 'end')
  t.match(heard(), /too slowly/)
  await until('its request has ended', () => counts.ended === 1)
})

t.test('an upload at the minimum rate has no time limit', async (t) => {
  const { port } = await start(t)
  const body = Buffer.alloc(95_000, 'slow ')
  const file = [
    'POST /v1/attachments?filename=slow.bin HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${team.key}`,
    `Content-Length: ${body.length}`,
    '',
    '',
  ]
  const { socket, heard } = openClient(t, port, file.join('\r\n'))
  const began = performance.now()
  for (let at = 0; at < body.length; at += 1_000) {
    socket.write(body.subarray(at, at + 1_000))
    await sleep(70)
  }
  t.ok(performance.now() - began > 3 * PACE.window)
  await until('it is answered', () => heard().endsWith('}'))
  t.match(heard(), /^HTTP\/1\.1 201 [\s\S]*"size":95000/)
})

t.test('a malformed body gets 400, and its connection is closed', async (t) => {
  const { port } = await start(t)
  const chunked = upload('Transfer-Encoding: chunked')
  for (const text of [
    `${chunked}FFFFFFFFFFFFFFFFF\r\n{}`,
    `${chunked}zz\r\n{}\r\n0\r\n\r\n`,
    `${chunked}2\n{}\n0\n\n`,
    `${upload('Transfer-Encoding: xchunked')}{}`,
  ]) {
    const { socket, heard } = openClient(t, port, text)
    await once(socket, 'end')
    t.match(heard(), /^HTTP\/1\.1 400 [\s\S]*"bad_request"/, JSON.stringify(text.slice(-30)))
    await letGo(socket)
  }
})

t.test('an incomplete request gets 400, and its connection is closed', async (t) => {
  const { port } = await start(t)
  for (const text of ['', 'GET /health HT', 'GET /health HTTP/1.1\r\nHost: x\r\n']) {
    const { socket, heard } = openClient(t, port, text)
    await once(socket, 'end')
    t.match(heard(), /^HTTP\/1\.1 400 /, text)
    await letGo(socket)
  }
})

t.test('oversized headers get an error in the envelope', async (t) => {
  const { port } = await start(t)
  const { socket, heard } = openClient(
    t,
    port,
    `GET /v1/plans HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`,
  )
  await once(socket, 'end')
  const [head = '', body = ''] = heard().split('\r\n\r\n')
  t.match(head, /^HTTP\/1\.1 400 [\s\S]*\r\nX-Request-Id: [0-9a-f-]{36}/)
  t.match(JSON.parse(body), { error: { code: 'bad_request', message: /headers .* 16 KiB/ } })
})

t.test('two Host headers are 400, a missing one is allowed', async (t) => {
  const { port } = await start(t)
  const answerTo = async (lines: readonly string[], path: string) => {
    const text = [`GET ${path} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n')
    const { socket, heard } = openClient(t, port, text)
    await once(socket, 'end')
    return heard()
  }
  const twice = [
    ['Host: x', 'Host: evil.test'],
    ['Host: x', 'Accept: */*', 'hOST: x'],
    ['Host:', 'Host: x'],
  ]
  for (const path of ['/health', '/v1/plans', '/dashboard/login', '/nowhere']) {
    for (const lines of twice)
      t.match(await answerTo(lines, path), /^HTTP\/1\.1 400 [\s\S]*"bad_request"/, `${path} ${lines}`)
  }
  for (const lines of [[], ['Host: x'], ['X-Host: x', 'Host: x']])
    t.match(await answerTo(lines, '/health'), /^HTTP\/1\.1 200 /, String(lines))
})
