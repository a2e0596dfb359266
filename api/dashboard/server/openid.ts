/**
 * Signs users in with OpenID Connect: authorization code flow with PKCE, state and nonce. The provider's
 * configuration is loaded when first needed, and again after a failure.
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

/** The values of one attempt, until the callback. */
export type Flow = { state: string; nonce: string; verifier: string; return_to: string }

export type OpenId = {
  /** True if sign-in links by email are disabled. Links from the CLI still work. */
  only: boolean
  /** Returns the provider's URL for the browser, and the values that the callback needs. */
  begin(site: URL, returnTo: string): Promise<{ url: string; flow: Flow }>
  /** Returns the provider's claims about the user. @throws Error if a check fails. */
  finish(came: URL, flow: Flow): Promise<IdentityClaims>
}

const LOOPBACK_ISSUER = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/]/

const FETCH_LIMITS = { bytes: 1024 * 1024, ms: 5_000 }

const callback = (site: URL): string => new URL(`${BASE}/openid/callback`, site).href

/** Creates a client for a provider, without connecting to it yet. */
export function createOpenId({ issuer, clientId, clientSecret, only }: OpenIdSettings): OpenId {
  let known: Promise<Configuration> | null = null
  const configuration = (): Promise<Configuration> => {
    // Plain HTTP is only for a provider on this host.
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
      if (!claims) throw new Error('the provider sent no ID token')
      const { iss, sub, email, email_verified } = claims
      return {
        issuer: iss,
        subject: sub,
        email: typeof email === 'string' ? email : '',
        // Some providers send a string.
        email_verified:
          email_verified === undefined ? null : email_verified === true || email_verified === 'true',
      }
    },
  }
}
