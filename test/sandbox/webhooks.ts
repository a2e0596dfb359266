/**
 * A webhook receiver, like a customer's server. It accepts every JSON body, verifies it with the reference
 * library and all secrets pasted so far, and stores it with the result. It is independent of the service's
 * code.
 */
import { Webhook } from 'standardwebhooks'

/** One request, as it came. */
type Received = { id: string; received_at: string; timestamp: string; signatures: string[]; raw: string }

export type ReceivedWebhook = {
  id: string
  received_at: string
  type: string
  verified: boolean
  /** Whatever came. */
  body: unknown
}

export type WebhookReceiver = {
  /** @returns the status to answer with. */
  take(headers: Readonly<Record<string, string | string[] | undefined>>, raw: string): number
  /** Returns the received webhooks, oldest first. */
  messages(): ReceivedWebhook[]
  /** Adds a secret to verify by. @returns whether it is one. */
  trust(secret: string): boolean
  clear(): void
}

/** How many are kept. */
const MOST = 1_000

export function createWebhookReceiver(): WebhookReceiver {
  let kept: Received[] = []
  const trusted: Webhook[] = []
  const isVerified = ({ id, timestamp, signatures, raw }: Received): boolean =>
    trusted.some((one) => signatures.includes(one.sign(id, new Date(Number(timestamp) * 1_000), raw)))
  return {
    take(headers, raw) {
      const said = (name: string): string => String(headers[`webhook-${name}`] ?? '')
      if (parsed(raw) === undefined || said('id') === '') return 400
      const received_at = new Date().toISOString()
      const one = { id: said('id'), timestamp: said('timestamp'), signatures: said('signature').split(' ') }
      kept = [...kept, { ...one, received_at, raw }].slice(-MOST)
      return 204
    },
    messages: () =>
      kept.map((one) => {
        const body = parsed(one.raw)
        const { id, received_at } = one
        return { id, received_at, type: typeOf(body), verified: isVerified(one), body }
      }),
    trust(secret) {
      try {
        trusted.push(new Webhook(secret.trim()))
        return true
      } catch {
        return false
      }
    },
    clear() {
      kept = []
    },
  }
}

/** Returns the received JSON. Undefined if it isn't JSON. */
function parsed(raw: string): unknown {
  try {
    return JSON.parse(raw)
  } catch {
    return undefined
  }
}

/** The type that a body names. '' for none. */
const typeOf = (body: unknown): string =>
  typeof body === 'object' && body !== null && 'type' in body ? String(body.type) : ''
