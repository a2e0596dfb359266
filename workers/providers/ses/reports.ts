/**
 * Reads SES reports published through SNS. An envelope has one event of one message, which becomes one neutral event
 * per affected recipient: the addresses in bouncedRecipients, complainedRecipients and similar fields, never all
 * recipients. The same report gives the same keys. It reads event publishing (`eventType`) and the older feedback
 * notifications (`notificationType`). DECISIONS: Delivery reports.
 */
import { createHash } from 'node:crypto'
import { type AnyObject, array, boolean, type InferType, mixed, type ObjectSchema, object, string } from 'yup'
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import type { ReportedEvent } from '../../../db/messages/apply-reports.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { classifyFailure } from '../../../db/validation/failures.ts'
import { isUuid, parseJson } from '../../../db/validation/strings.ts'
import { isSurelyValid } from '../../../db/validation/valid.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { isComplaint } from '../mail/feedback.ts'
import { isMachine } from '../mail/machines.ts'
import { pausedBy, type ReportReader } from '../report.ts'

/** SES sends this once when a topic is connected. It is about no message. */
const TOPIC_TEST = /^Successfully validated SNS topic for Amazon SES event publishing/

/** Far longer than SES's own ids. Longer ones couldn't be looked up. */
const MAX_ID_CHARACTERS = 512

const envelopeSchema = object({
  Type: string().required(),
  MessageId: string().required(),
  Message: string().defined(),
  Timestamp: string().required(),
})

const recipient = object({
  emailAddress: string().required(),
  action: string().nullable(),
  status: string().nullable(),
  diagnosticCode: string().nullable(),
})
const recipients = array(recipient)

const tags = mixed<Record<string, unknown>>()

const preferences = object({
  unsubscribeAll: boolean().nullable(),
  topicSubscriptionStatus: array(
    object({ topicName: string().nullable(), subscriptionStatus: string().nullable() }),
  ).nullable(),
}).default(undefined)
type Preferences = InferType<typeof preferences> | null

const feedback = { timestamp: string(), feedbackId: string().nullable() }
/** The recipient's program that opened an email or a link. */
const client = { timestamp: string(), ipAddress: string().nullable(), userAgent: string().nullable() }

const eventSchema = object({
  eventType: string(),
  notificationType: string(),
  mail: object({
    messageId: string().max(MAX_ID_CHARACTERS).required(),
    timestamp: string(),
    tags: tags.nullable(),
  }).required(),
  delivery: object({
    timestamp: string(),
    recipients: array(string().defined()),
    smtpResponse: string().nullable(),
  }).default(undefined),
  bounce: object({
    bounceType: string().required(),
    bounceSubType: string().defined(),
    bouncedRecipients: recipients.required(),
    ...feedback,
  }).default(undefined),
  complaint: object({
    complainedRecipients: recipients.required(),
    complaintFeedbackType: string().nullable(),
    complaintSubType: string().nullable(),
    ...feedback,
  }).default(undefined),
  deliveryDelay: object({
    timestamp: string(),
    delayType: string().defined(),
    delayedRecipients: recipients.required(),
  }).default(undefined),
  open: object(client).default(undefined),
  click: object({ ...client, link: string().nullable() }).default(undefined),
  subscription: object({
    timestamp: string(),
    newTopicPreferences: preferences.nullable(),
    oldTopicPreferences: preferences.nullable(),
  }).default(undefined),
  reject: object({ reason: string().nullable() }).default(undefined),
  failure: object({ errorMessage: string().nullable() }).default(undefined),
})
type SesEvent = InferType<typeof eventSchema>

/** The content of one report before it is matched to its message. `at` is the provider's time, if there is one. */
type Finding = {
  kind: EmailEventKind
  effect: ContactEffect
  recipient: string | null
  detail: string
  at: string | undefined
  id?: string | null | undefined
  blames_sender?: boolean
}

const joined = (...words: (string | null | undefined)[]): string =>
  words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')

/** Bounces caused by this message, not the address. */
const MESSAGE_FAULTS: ReadonlySet<string> = new Set([
  'MessageTooLarge',
  'ContentRejected',
  'AttachmentRejected',
])

type Recipient = InferType<typeof recipient>

/** Reads one recipient's bounce: by its server's reply and status, otherwise by the bounce's type. */
function readBounce(
  type: string,
  subType: string,
  { action, status, diagnosticCode }: Recipient,
): Pick<Finding, 'kind' | 'effect' | 'blames_sender'> {
  if (action === 'delayed') return { kind: 'delayed', effect: 'none' }
  if (status || diagnosticCode) {
    const reply = (diagnosticCode ?? '').replace(/^[a-z0-9-]{1,20} *;/i, '').trim()
    const { about, contact } = classifyFailure({ reply, status: status ?? '' })
    return { kind: 'bounced', effect: contact, blames_sender: about === 'sender' }
  }
  if (MESSAGE_FAULTS.has(subType)) return { kind: 'bounced', effect: 'none' }
  if (type === 'Permanent') return { kind: 'bounced', effect: 'hard' }
  if (type === 'Transient' && subType === 'General') return { kind: 'auto_reply', effect: 'none' }
  return { kind: 'bounced', effect: 'soft' }
}

function bounces({ bounce }: SesEvent): Finding[] {
  if (!bounce) return []
  const { bounceType, bounceSubType, bouncedRecipients, timestamp, feedbackId } = bounce
  return bouncedRecipients.map((recipient) => ({
    ...readBounce(bounceType, bounceSubType, recipient),
    recipient: recipient.emailAddress,
    detail: joined(`${bounceType}/${bounceSubType}`, recipient.status, recipient.diagnosticCode),
    at: timestamp,
    id: feedbackId,
  }))
}

const optOuts = (preferences: Preferences | undefined): string[] =>
  (preferences?.topicSubscriptionStatus ?? []).flatMap(({ topicName, subscriptionStatus }) =>
    subscriptionStatus === 'OptOut' ? [topicName ?? ''] : [],
  )

/** Reads SES's list management: a recipient has left everything, or topics that they had not left before. */
function subscriptions({ subscription }: SesEvent): Finding[] {
  const { newTopicPreferences: now, oldTopicPreferences: before, timestamp } = subscription ?? {}
  const known = optOuts(before)
  const left = optOuts(now).filter((topic) => !known.includes(topic))
  if (!now?.unsubscribeAll && left.length === 0) return []
  const detail = now?.unsubscribeAll ? 'unsubscribed from everything' : `unsubscribed from ${left.join(', ')}`
  return [{ kind: 'unsubscribed', effect: 'unsubscribe', recipient: null, detail, at: timestamp }]
}

function complaints({ complaint }: SesEvent): Finding[] {
  const { complainedRecipients = [], complaintFeedbackType: type, ...rest } = complaint ?? {}
  if (!isComplaint(type)) return []
  return complainedRecipients.map(({ emailAddress }) => ({
    kind: 'complained',
    effect: 'complaint',
    recipient: emailAddress,
    detail: joined('complaint', type, rest.complaintSubType),
    at: rest.timestamp,
    id: rest.feedbackId,
  }))
}

const ofMessage = (kind: EmailEventKind, at: string | undefined, detail = ''): Finding[] => [
  { kind, effect: 'none', recipient: null, detail, at },
]

const READERS: Record<string, (event: SesEvent) => Finding[]> = {
  Send: () => ofMessage('sent', undefined),
  Delivery: ({ delivery }) =>
    (delivery?.recipients ?? []).map((address) => ({
      kind: 'delivered',
      effect: 'delivered',
      recipient: address,
      detail: delivery?.smtpResponse ?? '',
      at: delivery?.timestamp,
    })),
  Bounce: bounces,
  Complaint: complaints,
  DeliveryDelay: ({ deliveryDelay }) =>
    (deliveryDelay?.delayedRecipients ?? []).map(({ emailAddress, status, diagnosticCode }) => ({
      kind: 'delayed',
      effect: 'none',
      recipient: emailAddress,
      detail: joined(deliveryDelay?.delayType, status, diagnosticCode),
      at: deliveryDelay?.timestamp,
    })),
  Open: ({ open }) => {
    const agent = open?.userAgent ?? ''
    return ofMessage(isMachine(agent) ? 'machine_opened' : 'opened', open?.timestamp, agent)
  },
  Click: ({ click }) => {
    const kind = isMachine(click?.userAgent ?? '') ? 'machine_clicked' : 'clicked'
    return ofMessage(kind, click?.timestamp, click?.link ?? '')
  },
  Reject: ({ reject }) => ofMessage('bounced', undefined, joined('rejected by SES:', reject?.reason)),
  'Rendering Failure': ({ failure }) =>
    ofMessage('bounced', undefined, joined('could not be rendered by SES:', failure?.errorMessage)),
  Subscription: subscriptions,
}

/** @param sender the key of the SES sender. Nothing is paused if it is null. */
export const createSesReportReader =
  (sender: string | null): ReportReader =>
  async ({ body, received_at }) => {
    const envelope = valid(envelopeSchema, body.toString(), 'the report')
    if (envelope.Type !== 'Notification')
      throw new Error(`not a report but an SNS ${storableWords(envelope.Type)}`)
    if (TOPIC_TEST.test(envelope.Message)) return []
    const event = valid(eventSchema, envelope.Message, 'its message')
    const type = event.eventType ?? event.notificationType ?? ''
    const read = Object.hasOwn(READERS, type) ? READERS[type] : undefined
    if (!read) throw new Error(`unknown SES event: ${storableWords(type) || 'no type'}`)
    const sent_at = readTime(event.mail.timestamp, received_at)
    return read(event).flatMap((finding): ReportedEvent[] => {
      const { kind, effect } = finding
      const recipient = finding.recipient === null ? null : bareAddress(finding.recipient)
      const said = { occurred_at: readTime(finding.at, sent_at), detail: storableWords(finding.detail) }
      const reported: ReportedEvent = {
        ...{ channel: 'email', ref: findRef(event.mail), kind, effect, recipient },
        ...said,
        event_key: toKey(type, { event, finding, recipient }),
        provider_message_id: event.mail.messageId,
      }
      return finding.blames_sender && sender !== null ? [reported, pausedBy(sender, said)] : [reported]
    })
  }

/** Parses JSON in SES's form. @throws Error naming `what`. */
function valid<T extends AnyObject>(schema: ObjectSchema<T>, text: string, what: string): T {
  const value = parseJson(text)
  if (value === undefined) throw new Error(`${what} is not JSON`)
  if (isSurelyValid(schema, value)) return value as T
  try {
    return schema.validateSync(value, { strict: true }) as T
  } catch (error) {
    throw new Error(
      storableWords(`${what} doesn't have SES's format: ${error instanceof Error ? error.message : ''}`),
    )
  }
}

function findRef({ messageId, tags }: SesEvent['mail']): ReportedRef {
  const [team_id, id] = [readTag(tags, 'team_id'), readTag(tags, 'email_id')]
  return team_id !== null && id !== null ? { team_id, id } : { provider_message_id: messageId }
}

function readTag(tags: Record<string, unknown> | null | undefined, name: string): string | null {
  const values = tags && Object.hasOwn(tags, name) ? tags[name] : undefined
  const value: unknown = Array.isArray(values) ? values[0] : undefined
  return typeof value === 'string' && isUuid(value) ? value.toLowerCase() : null
}

function readTime(text: string | undefined, otherwise: Date): Date {
  const time = new Date(text ?? '')
  return Number.isNaN(time.getTime()) ? otherwise : time
}

/** SES repeats the display name of the message. */
const bareAddress = (address: string): string => parseMailbox(address)?.address ?? address

/** Opens, clicks and delays have no id, so their content identifies them. */
function toKey(
  type: string,
  { event, finding, recipient }: { event: SesEvent; finding: Finding; recipient: string | null },
): string {
  const own = finding.id ?? JSON.stringify([finding.at, event.open, event.click, finding.detail])
  const words = [event.mail.messageId, own, recipient?.toLowerCase() ?? '']
  const digest = createHash('sha256').update(JSON.stringify(words)).digest('base64url')
  return `ses:${type.toLowerCase()}:${digest}`
}
