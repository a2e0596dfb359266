/**
 * The posts of Amazon SNS: their envelope, the string that SNS signs, and the URLs in them that may be
 * requested. Pure. A URL must be one of SNS in the topic's region and partition.
 */
import { type InferType, object, type StringSchema, string } from 'yup'
import { utf8Text } from '../../db/validation/strings.ts'
import { isSurelyValid } from '../../db/validation/valid.ts'
import { readQuery } from '../http/forms.ts'

const TYPES = ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'] as const

const field = () => string().required()

/** The longest URL or token. Those of SNS have a few hundred characters. */
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
/** Confirmations must contain a URL to request. */
const confirmation = envelopeSchema(TYPES, field().max(MAX_LINK_CHARACTERS))
export type SnsEnvelope = InferType<typeof notification>

/** Parses an envelope. Null if the body isn't one. */
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
/** Also for UnsubscribeConfirmation. */
const CONFIRMATION = 'Message MessageId SubscribeURL Timestamp Token TopicArn Type'.split(' ')

/** Returns the string that is signed. Each name and each value is followed by a line break. */
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

/** Parses a URL of SNS in the topic's region and partition. Null for any other URL. */
function snsUrl(text: string, topicArn: string): URL | null {
  const [, partition, region] = TOPIC_ARN.exec(topicArn) ?? []
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || partition === undefined) return null
  const bare = url.protocol === 'https:' && url.port === '' && url.username === '' && url.password === ''
  const [, host_region, china] = HOST.exec(url.hostname) ?? []
  const own = host_region === region && (china !== undefined) === (partition === 'aws-cn')
  return bare && own ? url : null
}

/** Returns the URL of the signing certificate. Null if it isn't one of SNS. */
export function certificateUrl({ SigningCertURL, TopicArn }: SnsEnvelope): URL | null {
  const url = snsUrl(SigningCertURL, TopicArn)
  const path = /^\/[\w-]{1,200}\.pem$/.exec(url?.pathname ?? '')?.[0]
  // Spelled out in full, so that no two parsers can read it differently.
  return url && path !== undefined && SigningCertURL === `https://${url.hostname}${path}` ? url : null
}

/** Returns the URL that confirms a subscription. Null if a request to it would do anything else. */
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
