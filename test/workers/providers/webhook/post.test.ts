/** One request to a team's own server, over real TLS: whom it names, and whom it believes. */
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { networksOf } from '../../../../db/process/public-address.ts'
import { postWebhook } from '../../../../workers/providers/webhook/post.ts'
import { makeCertificate } from '../../../support/certificate.ts'

const GIVEN = { headers: { 'webhook-id': 'one' }, body: '{"type":"webhook.test"}' }

/** A server with a certificate for `host` that this process trusts, and what reaches it. */
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    setDefaultCACertificates(before)
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const asked: string[] = []
  const resolve = async (name: string) => {
    asked.push(name)
    return ['127.0.0.1']
  }
  const allowed = networksOf(['127.0.0.0/8'])
  const post = (name: string) =>
    postWebhook(
      { ...GIVEN, url: `https://${name}:${port}/x` },
      { allowed, resolve },
      new AbortController().signal,
    )
  return { came, asked, port, post }
}

t.test('the vetted address is asked by the name of the URL, in TLS and in Host', async (t) => {
  const { came, asked, port, post } = await begin(t, 'hooks.example.test')
  t.match(await post('hooks.example.test'), { status: 200, response: 'thanks' })
  t.strictSame(came, [{ sni: 'hooks.example.test', host: `hooks.example.test:${port}` }])
  t.strictSame(asked, ['hooks.example.test'], 'the name is looked up once')
})

t.test('a server with a certificate for another name is told nothing', async (t) => {
  const { came, post } = await begin(t, 'hooks.example.test')
  const { status, response } = await post('other.example.test')
  t.equal(status, null)
  t.equal(response, 'ERR_TLS_CERT_ALTNAME_INVALID')
  t.strictSame(came, [])
})
