/**
 * Events of hosted relays, and their authenticated posts. The samples are from their `source`, shortened to
 * the common and distinguishing parts, with our reference inserted. If the source has no example, `made`
 * names the basis of the sample.
 */
import { createHmac, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RELAY_PROOFS } from '../../api/hooks/relay-signatures.ts'
import { RELAYS, type Relay } from '../../db/validation/relays.ts'
import type { Service } from './service.ts'

export { RELAYS, type Relay }

const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })

export const RELAY_SECRETS: Record<Relay, string> = {
  mailgun: 'a-signing-key-for-tests',
  sendgrid: pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
  postmark: 'a-password-for-tests-1',
  brevo: 'a-password-for-tests-2',
}

type Json = Record<string, unknown>
/** A sample: its source or derivation, its meaning, and the relay's post. */
type Sample = { source: string; made?: string; is: string; event: Json }

const folder = join(import.meta.dirname, '../fixtures/relays')

export const samplesOf = (relay: Relay): Sample[] =>
  JSON.parse(readFileSync(join(folder, `${relay}.json`), 'utf8')) as Sample[]

/** The recipient, time and email of an event. */
export type About = { recipient: string; reference: string; at: Date; id?: string }

const seconds = (at: Date): number => Math.floor(at.getTime() / 1_000)

/** Builds a sample's event about an email. */
export function eventAbout(relay: Relay, event: Json, { recipient, reference, at, id }: About): Json {
  const own = id === undefined ? {} : { id }
  switch (relay) {
    case 'mailgun':
      return {
        ...{ ...event, ...own, recipient, timestamp: at.getTime() / 1_000 },
        'user-variables': { heliograph: reference },
      }
    case 'sendgrid': {
      const key = id === undefined ? {} : { sg_event_id: id }
      return { ...event, ...key, email: recipient, timestamp: seconds(at), heliograph: reference }
    }
    case 'postmark': {
      const who = 'Email' in event ? { Email: recipient } : { Recipient: recipient }
      const times = ['DeliveredAt', 'BouncedAt', 'ReceivedAt', 'ChangedAt'].filter((name) => name in event)
      const when = Object.fromEntries(times.map((name) => [name, at.toISOString()]))
      return { ...event, ...who, ...when, Metadata: { heliograph: reference } }
    }
    case 'brevo':
      return {
        ...{ ...event, email: recipient, ts_epoch: at.getTime(), 'message-id': '<1@smtp-relay.mailin.fr>' },
        'X-Mailin-custom': reference,
      }
  }
}

/** A post as sent over HTTP. */
export type Post = { raw: Buffer; headers: Record<string, string> }

const JSON_TYPE = { 'Content-Type': 'application/json' }

export function mailgunSignature(secret: string, at: Date, token = randomBytes(25).toString('hex')) {
  const timestamp = String(seconds(at))
  const signature = createHmac('sha256', secret).update(`${timestamp}${token}`).digest('hex')
  return { timestamp, token, signature }
}

/** Builds the relay's post of these events. Mailgun and Postmark post one event at a time. */
export function postOf(relay: Relay, events: readonly unknown[], at = new Date()): Post {
  const [first] = events
  const secret = RELAY_SECRETS[relay]
  if (relay === 'mailgun') {
    const body = { signature: mailgunSignature(secret, at), 'event-data': first }
    return { raw: Buffer.from(JSON.stringify(body)), headers: JSON_TYPE }
  }
  if (relay === 'sendgrid') return signedBySendgrid(Buffer.from(JSON.stringify(events)), at)
  const raw = Buffer.from(JSON.stringify(events.length === 1 ? first : events))
  const basic = Buffer.from(`anyone:${secret}`).toString('base64')
  const authorization = relay === 'postmark' ? `Basic ${basic}` : `Bearer ${secret}`
  return { raw, headers: { ...JSON_TYPE, Authorization: authorization } }
}

export function signedBySendgrid(raw: Buffer, at = new Date()): Post {
  const timestamp = String(seconds(at))
  const signature = sign('sha256', Buffer.concat([Buffer.from(timestamp), raw]), pair.privateKey)
  return {
    raw,
    headers: {
      ...JSON_TYPE,
      'X-Twilio-Email-Event-Webhook-Signature': signature.toString('base64'),
      'X-Twilio-Email-Event-Webhook-Timestamp': timestamp,
    },
  }
}

/** Configures a service for a relay's reports, like its settings. */
export function listenTo({ deps }: Service, relay: Relay): void {
  deps.hooks.relay = { relay, proof: RELAY_PROOFS[relay](RELAY_SECRETS[relay]) }
}

export const deliver = async ({ call }: Pick<Service, 'call'>, { raw, headers }: Post): Promise<number> =>
  (await call('POST', '/hooks/relay', { raw: new Uint8Array(raw), headers })).status
