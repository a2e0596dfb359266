/**
 * A small OpenID provider on a free port: discovery, keys, authorization and token endpoint. A code is valid
 * once, for its client, with a verifier that matches the challenge.
 */
import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'

export type Somebody = { sub: string; email: string; email_verified?: boolean | string }

type Issuer = {
  url: string
  clientId: string
  clientSecret: string
  /** The next user to sign in, and false claims in their token. */
  next: { somebody: Somebody; lie?: Record<string, unknown> }
}

type Grant = { challenge: string; nonce: string; redirect_uri: string }

const base64url = (value: string | Buffer): string => Buffer.from(value).toString('base64url')

const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify(body))
}

/** Starts one, until the test ends. */
export async function startIssuer(t: Test): Promise<Issuer> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const grants = new Map<string, Grant>()
  const issuer: Issuer = {
    url: '',
    clientId: 'heliograph',
    clientSecret: 'a secret of the client',
    next: { somebody: { sub: '1', email: 'ana@example.com', email_verified: true } },
  }

  const idToken = ({ nonce }: Grant): string => {
    const now = Math.floor(Date.now() / 1_000)
    const about = { iss: issuer.url, aud: issuer.clientId, iat: now, exp: now + 60, nonce }
    const claims = { ...about, ...issuer.next.somebody, ...issuer.next.lie }
    const signed = `${base64url('{"alg":"RS256","kid":"1"}')}.${base64url(JSON.stringify(claims))}`
    return `${signed}.${base64url(createSign('RSA-SHA256').update(signed).sign(privateKey))}`
  }

  const answerToken = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const form = new URLSearchParams(await text(request))
    const code = form.get('code') ?? ''
    const grant = grants.get(code)
    grants.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const known = grant?.challenge === challenge && grant.redirect_uri === form.get('redirect_uri')
    if (!grant || !known || form.get('client_secret') !== issuer.clientSecret)
      return json(response, 400, { error: 'invalid_grant' })
    json(response, 200, { access_token: 'none', token_type: 'Bearer', id_token: idToken(grant) })
  }

  const server = createServer(async (request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '', issuer.url)
    if (pathname === '/.well-known/openid-configuration') {
      return json(response, 200, {
        issuer: issuer.url,
        authorization_endpoint: `${issuer.url}/authorize`,
        token_endpoint: `${issuer.url}/token`,
        jwks_uri: `${issuer.url}/keys`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      })
    }
    if (pathname === '/keys') {
      return json(response, 200, {
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: '1', alg: 'RS256', use: 'sig' }],
      })
    }
    if (pathname === '/token') return answerToken(request, response)
    const redirect_uri = query.get('redirect_uri') ?? ''
    const code = randomBytes(16).toString('hex')
    grants.set(code, {
      challenge: query.get('code_challenge') ?? '',
      nonce: query.get('nonce') ?? '',
      redirect_uri,
    })
    const back = new URL(redirect_uri)
    back.search = new URLSearchParams({ code, state: query.get('state') ?? '' }).toString()
    response.writeHead(302, { Location: back.href })
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return issuer
}
