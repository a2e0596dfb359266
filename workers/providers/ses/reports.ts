/**
 * Reads what SES published through SNS: an envelope with one event of one message → neutral events, one for each
 * recipient that the event is about.
 * Promises: only addresses in bouncedRecipients, complainedRecipients and their like are named, never all of the
 * message's; the same report gives the same keys. Both forms are read: event publishing (`eventType`) and the older
 * feedback notifications (`notificationType`). DECISIONS: Delivery reports.
 */
import { createHash } from 'node:crypto'
import { type AnyObject, array, type InferType, mixed, type ObjectSchema, object, string } from 'yup'
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import type { ReportedEvent } from '../../../db/messages/apply-reports.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { isUuid, jsonOf } from '../../../db/validation/strings.ts'
import { isSurelyValid } from '../../../db/validation/valid.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { isComplaint } from '../mail/feedback.ts'
import type { ReportReader } from '../report.ts'

/** SES says this once when a topic is connected; it is about no message. */
const TOPIC_TEST = /^Successfully validated SNS topic for Amazon SES event publishing/

/** Far beyond SES's own; longer ones could not be looked up. */
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
    timestamp: string(),
    feedbackId: string().nullable(),
  }).default(undefined),
  complaint: object({
    complainedRecipients: recipients.required(),
    complaintFeedbackType: string().nullable(),
    complaintSubType: string().nullable(),
    timestamp: string(),
    feedbackId: string().nullable(),
  }).default(undefined),
  deliveryDelay: object({
    timestamp: string(),
    delayType: string().defined(),
    delayedRecipients: recipients.required(),
  }).default(undefined),
  open: object({
    timestamp: string(),
    ipAddress: string().nullable(),
    userAgent: string().nullable(),
  }).default(undefined),
  click: object({ timestamp: string(), ipAddress: string().nullable(), link: string().nullable() }).default(
    undefined,
  ),
  reject: object({ reason: string().nullable() }).default(undefined),
  failure: object({ errorMessage: string().nullable() }).default(undefined),
})
type SesEvent = InferType<typeof eventSchema>

/** What one report says, before it is tied to its message. `at` is the provider's time, if it gives one. */
type Finding = {
  kind: EmailEventKind
  effect: ContactEffect
  recipient: string | null
  detail: string
  at: string | undefined
  /** The provider's id of this event, if it gives one. */
  id?: string | null | undefined
}

const joined = (...words: (string | null | undefined)[]): string =>
  words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')

/** Bounces that are about this message, not about the address. */
const MESSAGE_FAULTS: ReadonlySet<string> = new Set([
  'MessageTooLarge',
  'ContentRejected',
  'AttachmentRejected',
])

function bounceEffect(type: string, subType: string): ContactEffect {
  if (type === 'Permanent') return 'hard'
  return type === 'Transient' && MESSAGE_FAULTS.has(subType) ? 'none' : 'soft'
}

function bounces({ bounce }: SesEvent): Finding[] {
  if (!bounce) return []
  const { bounceType, bounceSubType, bouncedRecipients, timestamp, feedbackId } = bounce
  return bouncedRecipients.map(({ emailAddress, status, diagnosticCode }) => ({
    kind: 'bounced',
    effect: bounceEffect(bounceType, bounceSubType),
    recipient: emailAddress,
    detail: joined(`${bounceType}/${bounceSubType}`, status, diagnosticCode),
    at: timestamp,
    id: feedbackId,
  }))
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

/** Every event type that SES has, and what it means. */
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
  Open: ({ open }) => ofMessage('opened', open?.timestamp, open?.userAgent ?? ''),
  Click: ({ click }) => ofMessage('clicked', click?.timestamp, click?.link ?? ''),
  Reject: ({ reject }) => ofMessage('bounced', undefined, joined('rejected by SES:', reject?.reason)),
  'Rendering Failure': ({ failure }) =>
    ofMessage('bounced', undefined, joined('could not be rendered by SES:', failure?.errorMessage)),
  // SES's own list management, which we do not use.
  Subscription: () => [],
}

/** Reads one report. @throws Error when it is none of SES's. */
export const readSesReport: ReportReader = async ({ body, received_at }) => {
  const envelope = valid(envelopeSchema, body.toString(), 'the report')
  if (envelope.Type !== 'Notification') throw new Error(`SNS's ${storableWords(envelope.Type)} is no report`)
  if (TOPIC_TEST.test(envelope.Message)) return []
  const event = valid(eventSchema, envelope.Message, 'its message')
  const type = event.eventType ?? event.notificationType ?? ''
  const read = Object.hasOwn(READERS, type) ? READERS[type] : undefined
  if (!read) throw new Error(`SES reports an event that we do not know: ${storableWords(type) || 'nothing'}`)
  const sent_at = timeOf(event.mail.timestamp, received_at)
  return read(event).map((finding): ReportedEvent => {
    const { kind, effect } = finding
    const recipient = finding.recipient === null ? null : bareAddress(finding.recipient)
    return {
      ...{ channel: 'email', ref: refOf(event.mail), kind, effect, recipient },
      occurred_at: timeOf(finding.at, sent_at),
      detail: storableWords(finding.detail),
      event_key: keyOf(type, { event, finding, recipient }),
      provider_message_id: event.mail.messageId,
    }
  })
}

/** What JSON says, in SES's form. @throws Error naming `what`. */
function valid<T extends AnyObject>(schema: ObjectSchema<T>, text: string, what: string): T {
  const value = jsonOf(text)
  if (value === undefined) throw new Error(`${what} is not JSON`)
  if (isSurelyValid(schema, value)) return value as T
  try {
    return schema.validateSync(value, { strict: true }) as T
  } catch (error) {
    throw new Error(
      storableWords(`${what} is not in SES's form: ${error instanceof Error ? error.message : ''}`),
    )
  }
}

/** The tags that our adapter sent along, in event publishing; SES's own id otherwise. */
function refOf({ messageId, tags }: SesEvent['mail']): ReportedRef {
  const [team_id, id] = [tagOf(tags, 'team_id'), tagOf(tags, 'email_id')]
  return team_id !== null && id !== null ? { team_id, id } : { provider_message_id: messageId }
}

function tagOf(tags: Record<string, unknown> | null | undefined, name: string): string | null {
  const values = tags && Object.hasOwn(tags, name) ? tags[name] : undefined
  const value: unknown = Array.isArray(values) ? values[0] : undefined
  return typeof value === 'string' && isUuid(value) ? value.toLowerCase() : null
}

function timeOf(text: string | undefined, otherwise: Date): Date {
  const time = new Date(text ?? '')
  return Number.isNaN(time.getTime()) ? otherwise : time
}

/** SES repeats a display name if the message had one. */
const bareAddress = (address: string): string => parseMailbox(address)?.address ?? address

/** An open or a click has no id: what it says makes it this one and no other, a delay's and a click's alike. */
function keyOf(
  type: string,
  { event, finding, recipient }: { event: SesEvent; finding: Finding; recipient: string | null },
): string {
  const own = finding.id ?? JSON.stringify([finding.at, event.open, event.click, finding.detail])
  const words = [event.mail.messageId, own, recipient?.toLowerCase() ?? '']
  const digest = createHash('sha256').update(JSON.stringify(words)).digest('base64url')
  return `ses:${type.toLowerCase()}:${digest}`
}
