/** One request to a team's server over real TLS: the names it uses, and the certificates it trusts. */
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { networksIn } from '../../../../db/process/public-address.ts'
import { createConnections } from '../../../../workers/providers/webhook/connections.ts'
import { postWebhook } from '../../../../workers/providers/webhook/post.ts'
import { makeCertificate } from '../../../support/certificate.ts'
import { portOf } from '../../../support/port.ts'
import t, { type Test } from '../../../support/tap.ts'

const GIVEN = { headers: { 'webhook-id': 'one' }, body: '{"type":"webhook.test"}' }

/** Starts a server with a certificate for `host` that this process trusts, and records requests. */
async function begin(t: Test, host: string) {
  const { pem: cert, key_pem: key } = makeCertificate([host])
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, cert])
  const came: { sni: unknown; host: string | undefined }[] = []
  const server = createServer({ cert, key }, (request, response) => {
    came.push({
      sni: (request.socket as TLSSocket & { servername?: string }).servername,
      host: request.headers.host,
    })
    response.end('thanks')
  })
  t.teardown(() => setDefaultCACertificates(before))
  const port = await portOf(t, server)
  const asked: string[] = []
  const resolve = async (name: string) => {
    asked.push(name)
    return ['127.0.0.1']
  }
  const allowed = networksIn(['127.0.0.0/8'])
  const connections = createConnections()
  const post = (name: string) =>
    postWebhook(
      { ...GIVEN, url: `https://${name}:${port}/x` },
      { allowed, resolve, connections },
      new AbortController().signal,
    )
  return { came, asked, port, post }
}

t.test('requests the vetted address under the URL’s name', async (t) => {
  const { came, asked, port, post } = await begin(t, 'hooks.example.test')
  t.match(await post('hooks.example.test'), { status: 200, response: 'thanks' })
  t.strictSame(came, [{ sni: 'hooks.example.test', host: `hooks.example.test:${port}` }])
  t.strictSame(asked, ['hooks.example.test'], 'the name is looked up once')
})

t.test('a server with a certificate for another name gets nothing', async (t) => {
  const { came, post } = await begin(t, 'hooks.example.test')
  const { status, response } = await post('other.example.test')
  t.equal(status, null)
  t.equal(response, 'ERR_TLS_CERT_ALTNAME_INVALID')
  t.strictSame(came, [])
})

/** Starts a server on every address of this machine, with a name whose addresses the test sets. */
async function beginPlain(t: Test, answer: RequestListener) {
  let opened = 0
  const server = createHttpServer(answer)
  server.on('connection', () => {
    opened += 1
  })
  const name = { addresses: ['127.0.0.1'] }
  const url = `http://hooks.example.test:${await portOf(t, server, '0.0.0.0')}/`
  const deps = {
    allowed: networksIn(['127.0.0.0/8']),
    resolve: async () => name.addresses,
    connections: createConnections(),
  }
  const post = (cut = new AbortController().signal) => postWebhook({ ...GIVEN, url }, deps, cut)
  return { name, post, opened: () => opened }
}

t.test('reuses a connection unless its name’s addresses change', async (t) => {
  const { name, post, opened } = await beginPlain(t, (_request, response) => void response.end('thanks'))
  for (let each = 0; each < 3; each++) t.match(await post(), { status: 200, response: 'thanks' })
  t.equal(opened(), 1)
  name.addresses = ['127.0.0.2']
  t.match(await post(), { status: 200 })
  t.equal(opened(), 2, 'it goes where the name leads now')
  name.addresses = ['10.0.0.1']
  t.match(await post(), { status: null, response: 'not a public address' })
  name.addresses = ['127.0.0.1', '10.0.0.1']
  t.match(await post(), { status: null, response: 'not a public address' })
  t.equal(opened(), 2)
})

t.test('retries if a reused connection is closed', async (t) => {
  const served = new WeakSet<object>()
  const { post, opened } = await beginPlain(t, ({ socket }, response) => {
    if (served.has(socket)) socket.resetAndDestroy()
    else response.end('thanks')
    served.add(socket)
  })
  t.match(await post(), { status: 200 })
  t.match(await post(), { status: 200 })
  t.equal(opened(), 2)
})

t.test('a server that closes each new connection fails', async (t) => {
  const { post, opened } = await beginPlain(t, ({ socket }) => void socket.resetAndDestroy())
  t.match(await post(), { status: null, response: 'ECONNRESET' })
  t.equal(opened(), 1)
})

t.test('only the first KiB of a long response is kept', async (t) => {
  const { post } = await beginPlain(t, (_request, response) => void response.write('a'.repeat(100_000)))
  t.match(await post(), { status: 200, response: 'a'.repeat(1_024) })
})

t.test('a response that breaks off counts as none', async (t) => {
  const { post } = await beginPlain(t, ({ socket }, response) => {
    response.writeHead(200, { 'content-length': 1_000 })
    response.write('the beginning', () => socket.destroy())
  })
  t.match(await post(), { status: null, response: 'ECONNRESET' })
})

t.test('a request can be cut off when the worker exits', async (t) => {
  const cutting = new AbortController()
  const { name, post, opened } = await beginPlain(t, () => cutting.abort())
  const said = { status: null, response: 'aborted: the worker shut down' }
  t.match(await post(cutting.signal), said)
  t.equal(opened(), 1)
  t.match(await post(cutting.signal), said, 'it never begins once that is known')
  name.addresses = ['10.0.0.1']
  t.match(await post(cutting.signal), { status: null })
  t.equal(opened(), 1)
})
