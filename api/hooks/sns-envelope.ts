/**
 * What Amazon SNS posts: its envelope, the string that it signs, and which URLs in it may be followed.
 * Promises: pure; a URL is SNS's own of the topic's region and partition, or null.
 */
import { type InferType, object, type StringSchema, string } from 'yup'
import { utf8Text } from '../../db/validation/strings.ts'
import { isSurelyValid } from '../../db/validation/valid.ts'
import { readQuery } from '../http/forms.ts'

const TYPES = ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'] as const

const field = () => string().required()

/** How long a URL or a token is at most: SNS's own are some hundred characters. */
const MAX_LINK_CHARACTERS = 3_000

const envelopeSchema = (types: readonly (typeof TYPES)[number][], link: StringSchema<string | undefined>) =>
  object({
    Type: string().oneOf(types).required(),
    MessageId: field().max(100),
    TopicArn: field(),
    Message: string().defined(),
    Timestamp: field(),
    SignatureVersion: string().oneOf(['1', '2']).required(),
    Signature: field().matches(/^[A-Za-z0-9+/]{100,2000}={0,2}$/),
    SigningCertURL: field().max(MAX_LINK_CHARACTERS),
    Subject: string().nullable(),
    SubscribeURL: link,
    Token: link,
  })

const notification = envelopeSchema(['Notification'], string().max(MAX_LINK_CHARACTERS))
/** The others bring a link to follow. */
const confirmation = envelopeSchema(TYPES, field().max(MAX_LINK_CHARACTERS))
export type SnsEnvelope = InferType<typeof notification>

/** The envelope in a body; null when the body is none. */
export function parseEnvelope(body: Buffer): SnsEnvelope | null {
  try {
    const value: unknown = JSON.parse(utf8Text(body) ?? '')
    if (isSurelyValid(notification, value)) return value as SnsEnvelope
    const { Type } = value as { Type?: unknown }
    return (Type === 'Notification' ? notification : confirmation).validateSync(value, { strict: true })
  } catch {
    return null
  }
}

const NOTIFICATION = 'Message MessageId Subject Timestamp TopicArn Type'.split(' ')
/** UnsubscribeConfirmation is signed alike. */
const CONFIRMATION = 'Message MessageId SubscribeURL Timestamp Token TopicArn Type'.split(' ')

/** What the signature covers: each name and value on a line of its own, the last line ended too. */
export function stringToSign(envelope: SnsEnvelope): string {
  const names = envelope.Type === 'Notification' ? NOTIFICATION : CONFIRMATION
  const values: Record<string, unknown> = envelope
  return names
    .filter((name) => values[name] !== undefined && values[name] !== null)
    .map((name) => `${name}\n${String(values[name])}\n`)
    .join('')
}

export const TOPIC_ARN = /^arn:(aws[a-z-]*):sns:([a-z0-9-]{3,}):\d{12}:[\w-]{1,256}(?:\.fifo)?$/

const HOST = /^sns\.([a-zA-Z0-9-]{3,})\.amazonaws\.com(\.cn)?$/

/** A URL of SNS itself, in the topic's own region and partition; null for any other. */
function snsUrl(text: string, topicArn: string): URL | null {
  const [, partition, region] = TOPIC_ARN.exec(topicArn) ?? []
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || partition === undefined) return null
  const bare = url.protocol === 'https:' && url.port === '' && url.username === '' && url.password === ''
  const [, host_region, china] = HOST.exec(url.hostname) ?? []
  const own = host_region === region && (china !== undefined) === (partition === 'aws-cn')
  return bare && own ? url : null
}

/** Where the signing certificate is; null when that is no place of SNS's. */
export function certificateUrl({ SigningCertURL, TopicArn }: SnsEnvelope): URL | null {
  const url = snsUrl(SigningCertURL, TopicArn)
  const path = /^\/[\w-]{1,200}\.pem$/.exec(url?.pathname ?? '')?.[0]
  // Spelled in full and in no other way: nothing that two readers could read differently.
  return url && path !== undefined && SigningCertURL === `https://${url.hostname}${path}` ? url : null
}

/** Where a subscription is confirmed; null when following it would do anything else. */
export function confirmationUrl({ SubscribeURL, Token, TopicArn }: SnsEnvelope): URL | null {
  const url = snsUrl(SubscribeURL ?? '', TopicArn)
  const asked = url && Object.fromEntries(readQuery(url.search.slice(1)))
  const confirms =
    url?.pathname === '/' &&
    url.hash === '' &&
    asked?.Action === 'ConfirmSubscription' &&
    asked.TopicArn === TopicArn &&
    asked.Token === Token
  return confirms ? url : null
}
