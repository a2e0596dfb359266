/**
 * Proves that a post comes from Amazon SNS and from a topic of ours, and confirms subscriptions.
 * Promises: nothing is fetched for a topic that is not on the list, nor from anywhere but SNS's own hosts, over TLS,
 * without redirects, within a time and a size; certificates are kept while they are valid, a bounded number of them.
 * A certificate that cannot be fetched is `unavailable`: then SNS repeats the post, as it would not after a refusal.
 */

import { type KeyObject, verify, X509Certificate } from 'node:crypto'
import type { Agent } from 'node:https'
import { RequestError, Unavailable } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { TEXTS } from '../http/texts.ts'
import { certificateUrl, confirmationUrl, type SnsEnvelope, stringToSign } from './sns-envelope.ts'

export type Sns = {
  /** Whether there is any topic whose posts it takes. */
  listens: boolean
  /** @throws RequestError unauthorized, unavailable */
  authenticate(envelope: SnsEnvelope, now: Date): Promise<void>
  /** Confirms the subscription of an envelope that has been authenticated. @throws RequestError unavailable */
  confirm(envelope: SnsEnvelope): Promise<void>
}

const FETCH_TIMEOUT_MS = 5_000
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_CERTIFICATES = 20
/** A forger who knows a topic's name can make us ask SNS for certificates; this many at a time. */
const MAX_FETCHES = 4
const HASHES = { 1: 'RSA-SHA1', 2: 'RSA-SHA256' } as const

/** What is known of a certificate: whose key signs, and when. */
type Signer = { key: KeyObject; from: Date; until: Date }

const refuse = (): RequestError => new RequestError('unauthorized', TEXTS.snsTopicsOnly)
const unavailable = (what: string): RequestError =>
  new Unavailable('sns_certificate', fill(TEXTS.snsFailed, { what }), 20)

/** @param agent how SNS's hosts are reached; Node's own when absent. */
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
      if ((await answerOf(url, agent)) === null) throw unavailable('SNS did not accept the confirmation')
    },
  }
}

/** Signers by their certificate's URL: fetched once, kept while valid, the oldest let go. */
function createSigners(agent: Agent | undefined) {
  const kept = new Map<string, Signer>()
  const fetching = new Map<string, Promise<Signer>>()

  const fetchSigner = async (url: URL): Promise<Signer> => {
    const pem = await answerOf(url, agent)
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

/** @throws RequestError unauthorized when it is no certificate with an RSA key. */
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

/** What is found at a URL; null when it is not found whole, within the time and the size. */
async function answerOf(url: URL, agent: Agent | undefined): Promise<Buffer | null> {
  // Loaded with the first certificate: it brings TLS (3 MB), which many a process does without.
  const { ask } = await import('../../db/process/limited-response.ts')
  const bounds = { bytes: MAX_ANSWER_BYTES, ms: FETCH_TIMEOUT_MS }
  const answer = await ask(url, { agent }, bounds).catch(() => null)
  return answer?.status === 200 ? answer.body : null
}
