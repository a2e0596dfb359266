/**
 * Sign-in through an OpenID provider: authorization code with PKCE, state and nonce.
 * Promises: what the provider says of itself is read when it is first needed, and again after a failure; what one
 * attempt needs travels sealed in the browser's own cookie, so that nobody else can finish it.
 */

import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  discovery,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client'
import type { IdentityClaims } from '../../../db/accounts/members/sign-in.ts'
import { boundedFetch } from '../../../db/process/limited-response.ts'
import { BASE } from '../components/base.ts'

export type OpenIdSettings = { issuer: string; clientId: string; clientSecret: string; only: boolean }

/** One attempt, from leaving us to coming back. */
export type Flow = { state: string; nonce: string; verifier: string; return_to: string }

export type OpenId = {
  /** Whether links by mail are closed: the provider alone lets people in, and the CLI. */
  only: boolean
  /** Where to send the browser, and what it has to bring back. */
  begin(site: URL, returnTo: string): Promise<{ url: string; flow: Flow }>
  /** What the provider says of the person who comes back. @throws Error when any of it does not fit. */
  finish(came: URL, flow: Flow): Promise<IdentityClaims>
}

const LOOPBACK_ISSUER = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/]/

/** Of each answer of the provider's: its description, its keys, its tokens. */
const FETCH_LIMITS = { bytes: 1024 * 1024, ms: 5_000 }

const callback = (site: URL): string => new URL(`${BASE}/openid/callback`, site).href

/** Makes a provider's client. Asks nothing of it yet. */
export function createOpenId({ issuer, clientId, clientSecret, only }: OpenIdSettings): OpenId {
  let known: Promise<Configuration> | null = null
  const configuration = (): Promise<Configuration> => {
    // Plain http is for a provider on this very machine.
    const execute = LOOPBACK_ISSUER.test(issuer) ? [allowInsecureRequests] : []
    known ??= discovery(new URL(issuer), clientId, clientSecret, undefined, {
      execute,
      timeout: 5,
      [customFetch]: (url, { body, ...init }) =>
        boundedFetch(FETCH_LIMITS)(url, { ...init, ...(body == null ? {} : { body: String(body) }) }),
    })
    known.catch(() => {
      known = null
    })
    return known
  }
  return {
    only,
    async begin(site, returnTo) {
      const flow = {
        state: randomState(),
        nonce: randomNonce(),
        verifier: randomPKCECodeVerifier(),
        return_to: returnTo,
      }
      const url = buildAuthorizationUrl(await configuration(), {
        redirect_uri: callback(site),
        scope: 'openid email',
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await calculatePKCECodeChallenge(flow.verifier),
        code_challenge_method: 'S256',
      })
      return { url: url.href, flow }
    },
    async finish(came, { state, nonce, verifier }) {
      const tokens = await authorizationCodeGrant(await configuration(), came, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (!claims) throw new Error('the provider sent no id token')
      const { iss, sub, email, email_verified } = claims
      return {
        issuer: iss,
        subject: sub,
        email: typeof email === 'string' ? email : '',
        // Some providers write the word.
        email_verified:
          email_verified === undefined ? null : email_verified === true || email_verified === 'true',
      }
    },
  }
}
