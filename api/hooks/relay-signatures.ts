/**
 * Verifies that a post comes from the hosted relay, and returns its events. Forged, outdated and invalid
 * signatures get the same error. Secrets are compared in constant time. A body is only read if the headers
 * can be genuine.
 */

import { createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { OneTimeToken } from '../../db/delivery/reports/relay-tokens.sql.ts'
import { contentKey } from '../../db/delivery/reports/store.ts'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { isObject } from '../../db/validation/fields.ts'
import type { Relay } from '../../db/validation/relays.ts'
import { parseJson, utf8Text } from '../../db/validation/strings.ts'
import { sameSecret } from '../http/auth.ts'
import { TEXTS } from '../http/texts.ts'

/** A post whose body has not been read yet. */
type RelayPost = { headers: IncomingHttpHeaders; bytes(limit: number): Promise<Buffer>; now: Date }

/** A verified post: its events, each as JSON, and its token if the signature covers no body. */
type VerifiedPost = { events: readonly string[]; token: OneTimeToken | null }

/** Verifies a post. @throws RequestError unauthorized, or bad_request for an unreadable body */
export type RelayProof = (post: RelayPost) => Promise<VerifiedPost>

/** Mailgun posts one event at a time, with the signature in the body. So this much is parsed before it is verified. */
const MAX_UNPROVED_BYTES = 1024 * 1024
/** Other relays post at most a few hundred kilobytes of events at once. */
const MAX_POST_BYTES = 3 * 1024 * 1024
/** The largest difference between a post's signed time and now, in both directions. */
const MAX_SKEW_MS = 86_400_000

export const notGenuine = () => new RequestError('unauthorized', TEXTS.relayOnly)

/** Parses JSON. Undefined for invalid JSON, which contains no events. */
const parsed = (body: Buffer): unknown => parseJson(utf8Text(body) ?? '')

/** No relay nests as deeply. The limit is explicit, because the limit of Node's parser changes with its version. */
const MAX_NESTING = 32

/** True if a value has nested objects or arrays on more than this many levels. */
const isDeeperThan = (levels: number, value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isDeeperThan(levels - 1, inner)))

/** The error for an unreadable body after a header has verified the caller. */
const unreadable = () => new RequestError('bad_request', fill(TEXTS.relayBody, { most: MAX_NESTING }))

/** Returns the events of a post as JSON. @throws `fault` unless it is an event or a list, not nested too deeply */
function eventsIn(value: unknown, fault = unreadable): string[] {
  if (!Array.isArray(value) && !isObject(value)) throw fault()
  const events = Array.isArray(value) ? value : [value]
  if (isDeeperThan(1 + MAX_NESTING, events)) throw fault()
  return events.map((event) => JSON.stringify(event))
}

/**
 * Parses a signed time in seconds. It must have exactly ten digits. Signatures cover it and the next value
 * without a separator, so with another length digits could move between the two. @throws RequestError
 * unauthorized
 */
function recentTime(seconds: string, now: Date): Date {
  const at = /^\d{10}$/.test(seconds) ? Number(seconds) * 1_000 : Number.NaN
  if (!(Math.abs(now.getTime() - at) <= MAX_SKEW_MS)) throw notGenuine()
  return new Date(at)
}

const byMailgun =
  (secret: string): RelayProof =>
  async ({ bytes, now }) => {
    const raw = await bytes(MAX_UNPROVED_BYTES)
    const body = parsed(raw)
    const signed = isObject(body) ? body.signature : undefined
    if (!isObject(body) || !isObject(signed) || !isObject(body['event-data'])) throw notGenuine()
    const { timestamp, token, signature } = signed
    if (typeof timestamp !== 'string' && typeof timestamp !== 'number') throw notGenuine()
    if (typeof token !== 'string' || typeof signature !== 'string') throw notGenuine()
    if (!/^[0-9a-f]{64}$/i.test(signature)) throw notGenuine()
    const expected = createHmac('sha256', secret).update(`${timestamp}${token}`).digest()
    if (!timingSafeEqual(expected, Buffer.from(signature, 'hex'))) throw notGenuine()
    const at = recentTime(String(timestamp), now)
    return {
      events: eventsIn(body['event-data'], notGenuine),
      token: {
        digest: contentKey(token),
        body_digest: contentKey(raw),
        accepted_until: new Date(at.getTime() + MAX_SKEW_MS),
      },
    }
  }

const HEADER = 'x-twilio-email-event-webhook'

const bySendgrid = (secret: string): RelayProof => {
  const key = parsePublicKey(secret)
  return async ({ headers, bytes, now }) => {
    const [signature, timestamp] = [headers[`${HEADER}-signature`], headers[`${HEADER}-timestamp`]]
    if (key === null || typeof signature !== 'string' || typeof timestamp !== 'string') throw notGenuine()
    recentTime(timestamp, now)
    const body = await bytes(MAX_POST_BYTES)
    const signed = Buffer.concat([Buffer.from(timestamp), body])
    if (!verify('sha256', signed, key, Buffer.from(signature, 'base64'))) throw notGenuine()
    return { events: eventsIn(parsed(body)), token: null }
  }
}

/** Parses a P-256 key in base64 of its DER. Null for anything else. */
export function parsePublicKey(base64: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null
  } catch {
    return null
  }
}

/** Returns the bearer token, or the password of basic authentication. */
function credentialIn(authorization = ''): string | null {
  const [, scheme = '', value = ''] = /^(Bearer|Basic) +(\S+) *$/i.exec(authorization) ?? []
  if (scheme.toLowerCase() !== 'basic') return value === '' ? null : value
  const pair = Buffer.from(value, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  return colon < 0 ? null : pair.slice(colon + 1)
}

const bySecret =
  (secret: string): RelayProof =>
  async ({ headers, bytes }) => {
    const given = credentialIn(headers.authorization)
    if (given === null || !sameSecret(given, secret)) throw notGenuine()
    return { events: eventsIn(parsed(await bytes(MAX_POST_BYTES))), token: null }
  }

export const RELAY_PROOFS: Record<Relay, (secret: string) => RelayProof> = {
  mailgun: byMailgun,
  sendgrid: bySendgrid,
  postmark: bySecret,
  brevo: bySecret,
}

export const unverified: RelayProof = async () => {
  throw notGenuine()
}
