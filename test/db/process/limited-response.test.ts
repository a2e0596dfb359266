/** Outgoing requests: their limits, their errors, and their clean-up. */
import { EventEmitter, getEventListeners } from 'node:events'
import { type ClientRequest, createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { limitConnecting, NO_CONNECTION } from '../../../db/process/http-client.ts'
import {
  ask,
  type BoundedAnswer,
  boundedFetch,
  faultCodes,
  keepAliveAgent,
  secondsUntil,
} from '../../../db/process/limited-response.ts'
import { portOf } from '../../support/port.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const BOUNDS = { bytes: 1_024, ms: 20_000 }

/** A server with this handler. @returns its URL, and the number of connections. */
async function counterpart(t: Test, answer: RequestListener) {
  let connections = 0
  const server = createServer(answer).on('connection', () => {
    connections += 1
  })
  t.teardown(() => server.closeAllConnections())
  const port = await portOf(t, server)
  return { url: `http://127.0.0.1:${port}/`, connections: () => connections }
}

/** Returns the result or the error of a request. */
const ended = (answer: Promise<BoundedAnswer>) =>
  answer.catch((error: Error) => ({ body: null, fault: error.message }))

t.test('sends a request unchanged and returns status and headers', async (t) => {
  const { url } = await counterpart(t, async (request, response) => {
    const said = `${request.method} ${request.headers['content-type']} ${await request.toArray()}`
    response.writeHead(302, { location: '/elsewhere', said }).end('moved')
  })
  const question = { method: 'PUT', headers: { 'Content-Type': 'text/plain' }, body: 'zwölf' }
  const { status, ok, headers, body, fault } = await ask(url, question, BOUNDS)
  const response = { status, ok, body: String(body), fault }
  t.strictSame(response, { status: 302, ok: false, body: 'moved', fault: '' })
  t.match(headers, { location: '/elsewhere', said: `PUT text/plain ${Buffer.from('zwölf')}` }, 'no redirect')
})

t.test('reuses connections for the next request to a host', async (t) => {
  const { url, connections } = await counterpart(t, (_request, response) => response.end('{}'))
  const agent = keepAliveAgent(url)
  t.teardown(() => agent.destroy())
  for (let request = 0; request < 5; request++) await ask(url, { agent }, BOUNDS)
  t.equal(connections(), 1)
})

t.test('the time limit includes the last byte of the response', async (t) => {
  const { url } = await counterpart(t, ({ url }, response) => {
    if (url !== '/silent') response.writeHead(200).write('the beginning')
  })
  await t.rejects(ask(`${url}silent`, {}, { ...BOUNDS, ms: 300 }), { name: 'TimeoutError' })
  // The head of the response may arrive in time.
  t.match(await ended(ask(url, {}, { ...BOUNDS, ms: 300 })), { body: null, fault: /timeout/ })
})

t.test('aborts before the request, while waiting and while reading', async (t) => {
  const reached: string[] = []
  const { url } = await counterpart(t, ({ url = '' }, response) => {
    reached.push(url)
    if (url === '/begun') response.writeHead(200).write('the beginning')
  })
  const reason = new Error('the worker shut down')
  await t.rejects(ask(url, {}, { ...BOUNDS, signal: AbortSignal.abort(reason) }), reason)
  t.strictSame(reached, [])
  const asked = async (path: string) => {
    const cut = new AbortController()
    const answer = ask(`${url}${path}`, {}, { ...BOUNDS, signal: cut.signal })
    answer.catch(() => {})
    await until('it is asked', async () => reached.includes(`/${path}`))
    cut.abort(reason)
    return answer
  }
  await t.rejects(asked('waiting'), reason)
  t.match(await ended(asked('begun')), { body: null, fault: reason.message })
})

t.test('leaves no listener on the abort signal', async (t) => {
  const { url } = await counterpart(t, (_request, response) => response.end('{}'))
  const { signal } = new AbortController()
  await ask(url, {}, { ...BOUNDS, signal })
  t.equal(getEventListeners(signal, 'abort').length, 0)
})

t.test('an interrupted response has its status and an error', async (t) => {
  const { url } = await counterpart(t, (_request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('the beginning', () => response.destroy())
  })
  t.match(await ask(url, {}, BOUNDS), { status: 200, body: null, fault: /./ })
})

t.test('a connection timeout means that nothing was sent', async (t) => {
  const mute = createTcpServer((socket) => t.teardown(() => socket.destroy()))
  const url = `https://127.0.0.1:${await portOf(t, mute)}/`
  const error: unknown = await ask(url, {}, { ...BOUNDS, connect_ms: 200 }).catch((error: unknown) => error)
  t.match(error, { message: 'no connection within 0.2 s' })
  t.strictSame([...faultCodes(error)], [NO_CONNECTION])
})

t.test('a response has no time limit after the handshake', async (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  for (const [protocol, stands] of [
    ['http:', 'connect'],
    ['https:', 'secureConnect'],
  ] as const) {
    const [asked, socket] = [Object.assign(new EventEmitter(), { protocol }), new EventEmitter()]
    limitConnecting(asked as unknown as ClientRequest, 60_000)
    asked.emit('socket', socket)
    t.equal(timers(), before + 1)
    socket.emit(stands)
    t.equal(timers(), before)
  }
})

t.test('the fetch for libraries returns all headers and limits bytes', async (t) => {
  const { url } = await counterpart(t, ({ url }, response) => {
    response.setHeader('set-cookie', ['a=1', 'b=2']).setHeader('content-type', 'application/json')
    response.end(url === '/long' ? 'x'.repeat(1_025) : '{"is":"read"}')
  })
  const response = await boundedFetch(BOUNDS)(url)
  t.strictSame(response.headers.getSetCookie(), ['a=1', 'b=2'])
  t.strictSame(await response.json(), { is: 'read' })
  await t.rejects(boundedFetch(BOUNDS)(`${url}long`), { message: 'the response is larger than 1 KiB' })
})

t.test('Retry-After is a number of seconds or an HTTP date', async (t) => {
  for (const [value, seconds] of [
    ['0', 0],
    [' 90 ', 90],
    ['90.5', 90.5],
  ] as const)
    t.equal(secondsUntil({ 'retry-after': value }), seconds, value)
  for (const date of [
    'Fri, 01 Jan 2100 00:00:00 GMT',
    'Friday, 01-Jan-2100 00:00:00 GMT',
    'Fri Jan  1 00:00:00 2100',
  ])
    t.ok(secondsUntil({ 'retry-after': date }) > 86_400, date)
  for (const neither of [undefined, '', '-5', '1e9', 'soon 2090', '2100-01-01', '10,', '5 minutes'])
    t.ok(Number.isNaN(secondsUntil(neither === undefined ? {} : { 'retry-after': neither })), `${neither}`)
})

t.test("a Retry-After date is relative to the response's date", async (t) => {
  const headers = { 'retry-after': 'Fri, 01 Jan 2100 00:00:30 GMT', date: 'Fri, 01 Jan 2100 00:00:00 GMT' }
  t.equal(secondsUntil(headers), 30)
  t.ok(secondsUntil({ ...headers, date: 'soon' }) > 86_400, 'without a date that says something from ours')
})
