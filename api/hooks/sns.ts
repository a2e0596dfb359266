/**
 * Verifies that a post comes from Amazon SNS and one of our topics, and confirms subscriptions. Requests go
 * only to SNS's hosts, over TLS, without redirects, with limits for time and size, and only for configured
 * topics. A limited number of certificates is cached while they are valid. If a certificate can't be fetched,
 * the error is `unavailable`, because SNS doesn't repeat a post after a 401.
 */

import { type KeyObject, verify, X509Certificate } from 'node:crypto'
import type { Agent } from 'node:https'
import { RequestError, Unavailable } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { TEXTS } from '../http/texts.ts'
import { certificateUrl, confirmationUrl, type SnsEnvelope, stringToSign } from './sns-envelope.ts'

export type Sns = {
  /** True if any topic is configured. */
  listens: boolean
  /** @throws RequestError unauthorized, unavailable */
  authenticate(envelope: SnsEnvelope, now: Date): Promise<void>
  /** Confirms the subscription of an authenticated envelope. @throws RequestError unavailable */
  confirm(envelope: SnsEnvelope): Promise<void>
}

const FETCH_TIMEOUT_MS = 5_000
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_CERTIFICATES = 20
/** Concurrent requests for certificates. Anyone who knows a topic's name can cause them. */
const MAX_FETCHES = 4
const HASHES = { 1: 'RSA-SHA1', 2: 'RSA-SHA256' } as const

/** The key of a certificate, and when it is valid. */
type Signer = { key: KeyObject; from: Date; until: Date }

const refuse = (): RequestError => new RequestError('unauthorized', TEXTS.snsTopicsOnly)
const unavailable = (what: string): RequestError =>
  new Unavailable('sns_certificate', fill(TEXTS.snsFailed, { what }), 20)

/** @param agent for requests to SNS. The default is Node's own */
export function createSns({ topics, agent }: { topics: readonly string[]; agent?: Agent | undefined }): Sns {
  const signerAt = createSigners(agent)
  return {
    listens: topics.length > 0,
    async authenticate(envelope, now) {
      const { TopicArn, Type, SignatureVersion, Signature } = envelope
      const url = topics.includes(TopicArn) ? certificateUrl(envelope) : null
      if (url === null) throw refuse()
      if (Type === 'SubscriptionConfirmation' && confirmationUrl(envelope) === null) throw refuse()
      const { key, from, until } = await signerAt(url, now)
      const valid = from <= now && now <= until
      const signed = Buffer.from(stringToSign(envelope))
      const signature = Buffer.from(Signature, 'base64')
      if (!valid || !verify(HASHES[SignatureVersion], signed, key, signature)) throw refuse()
    },
    async confirm(envelope) {
      const url = confirmationUrl(envelope)
      if (url === null) throw refuse()
      if ((await fetchBody(url, agent)) === null) throw unavailable('SNS did not accept the confirmation')
    },
  }
}

/** Caches signers by the URL of their certificate while they are valid. Evicts the one that was stored first. */
function createSigners(agent: Agent | undefined) {
  const kept = new Map<string, Signer>()
  const fetching = new Map<string, Promise<Signer>>()

  const fetchSigner = async (url: URL): Promise<Signer> => {
    const pem = await fetchBody(url, agent)
    if (pem === null) throw unavailable('Could not fetch the certificate of SNS')
    const signer = readCertificate(pem)
    kept.set(url.href, signer)
    const [oldest] = kept.keys()
    if (kept.size > MAX_CERTIFICATES && oldest !== undefined) kept.delete(oldest)
    return signer
  }
  return async (url: URL, now: Date): Promise<Signer> => {
    const known = kept.get(url.href)
    if (known && now <= known.until) return known
    const under_way = fetching.get(url.href)
    if (under_way) return under_way
    if (fetching.size >= MAX_FETCHES) throw unavailable('Too many certificates are being fetched')
    const fetched = fetchSigner(url).finally(() => fetching.delete(url.href))
    fetching.set(url.href, fetched)
    return fetched
  }
}

/** Reads a certificate. @throws RequestError unauthorized if it isn't one with an RSA key */
function readCertificate(pem: Buffer): Signer {
  try {
    const certificate = new X509Certificate(pem)
    const key = certificate.publicKey
    if (key.asymmetricKeyType !== 'rsa') throw refuse()
    return { key, from: new Date(certificate.validFrom), until: new Date(certificate.validTo) }
  } catch {
    throw refuse()
  }
}

/** Requests a URL. Null unless the response is a complete 200 within the limits of time and size. */
async function fetchBody(url: URL, agent: Agent | undefined): Promise<Buffer | null> {
  // Loaded with the first certificate, because it brings TLS (3 MB), which many processes don't need.
  const { ask } = await import('../../db/process/limited-response.ts')
  const bounds = { bytes: MAX_ANSWER_BYTES, ms: FETCH_TIMEOUT_MS }
  const answer = await ask(url, { agent }, bounds).catch(() => null)
  return answer?.status === 200 ? answer.body : null
}
