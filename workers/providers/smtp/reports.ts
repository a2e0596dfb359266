/**
 * Reads what mail servers report: delivery status notifications (RFC 3464) and feedback reports (RFC 5965).
 * Promises: only a report that carries our signed return address gives events. Other mail to such an address, such as
 * an out-of-office answer, gives none. Anything else is an error with a clear reason. Hostile input costs bounded time
 * and memory. Must not look anything up. DECISIONS: DSN classes.
 */
import type { Attachment, Email } from 'postal-mime'
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import type { ReportedEmail } from '../../../db/messages/emails/apply-events.ts'
import { findReturnPath, MAX_REPORT_BYTES } from '../../../db/messages/emails/return-path.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import type { Secrets } from '../../../db/process/secrets.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { effectOfFailure } from '../mail/effects.ts'
import { isComplaint } from '../mail/feedback.ts'
import type { RawReport, ReportReader } from '../report.ts'
import { addressOf, type Fields, field, fieldGroups, recipientOf, timeOf } from './report-fields.ts'

/** Far beyond what a message of ours can have: 50 recipients. */
const MAX_RECIPIENTS = 200
/** postal-mime takes 25 µs a line (measured), so that ten mebibytes of empty lines would take minutes. */
const MAX_LINES = 20_000
const MAX_HEADER_BYTES = 256 * 1024

const PARSER_OPTIONS = {
  maxNestingDepth: 16,
  maxHeadersSize: MAX_HEADER_BYTES,
  maxRfc822NestingDepth: 1,
  // The message that a report is about is evidence, not a part of the report.
  forceRfc822Attachments: true,
}

const STATUS_TYPES = ['message/delivery-status', 'message/global-delivery-status']
const FEEDBACK_TYPES = ['message/feedback-report']
const RETURNED_TYPES = ['message/rfc822', 'text/rfc822-headers', 'message/global', 'message/global-headers']

/** One event of a report before it is tied to its message. */
type ReportedEvent = Omit<ReportedEmail, 'ref' | 'by_mail' | 'provider_message_id'>

export function createSmtpReportReader(secrets: Secrets): ReportReader {
  return async (report) => {
    const email = await parseMail(report.body)
    const status = partOf(email, STATUS_TYPES)
    const feedback = partOf(email, FEEDBACK_TYPES)
    const ref = refOf(secrets, email, feedback)
    const known = status !== null || feedback !== null
    if (!known && (!ref || claimsToReport(email))) {
      throw new Error('neither a delivery status notification nor a feedback report')
    }
    if (!ref) throw new Error('it carries no return address of ours')
    return eventsIn(status, feedback, email, report).map((event) => ({
      channel: 'email',
      ref,
      ...event,
      by_mail: true,
      provider_message_id: null,
    }))
  }
}

/**
 * Whether it is a report (RFC 6522) at all, even of an unknown kind or a broken one. Answers of people and their
 * programs are not.
 */
const claimsToReport = ({ headers }: Email): boolean =>
  headers.some(({ key, value }) => key === 'content-type' && /^multipart\/report\b/i.test(value))

function eventsIn(
  status: string | null,
  feedback: string | null,
  email: Email,
  report: RawReport,
): ReportedEvent[] {
  if (status !== null) return eventsByStatus(status, email, report)
  return feedback === null ? [] : eventsByFeedback(feedback, email, report)
}

function beginningOf(body: Buffer): Buffer {
  const bytes = body.subarray(0, MAX_REPORT_BYTES)
  let end = 0
  for (let line = 0; line < MAX_LINES; line++) {
    end = bytes.indexOf(0x0a, end) + 1
    if (end === 0) return bytes
  }
  return bytes.subarray(0, end)
}

/**
 * The mail with its fields of addresses under other names: we read none of them as addresses, and a list made to hurt
 * costs postal-mime a second (measured: 235 KB of groups).
 */
function withoutAddressLists(body: Buffer): Buffer {
  const head = body.subarray(0, MAX_HEADER_BYTES).toString('latin1')
  const renamed = head.replace(
    /^(?=(?:from|sender|reply-to|to|cc|bcc|delivered-to|return-path)[ \t]*:)/gim,
    'x-',
  )
  return Buffer.concat([Buffer.from(renamed, 'latin1'), body.subarray(MAX_HEADER_BYTES)])
}

async function parseMail(body: Buffer): Promise<Email> {
  try {
    // Loaded with the first report (1 MB): most workers never read one.
    const { default: PostalMime } = await import('postal-mime')
    return await PostalMime.parse(withoutAddressLists(beginningOf(body)), PARSER_OPTIONS)
  } catch (error) {
    throw new Error(`not a message that can be read: ${error instanceof Error ? error.message : ''}`)
  }
}

function partOf({ attachments }: Email, types: readonly string[]): string | null {
  const part = attachments.find(({ mimeType }) => types.includes(mimeType))
  return part ? bytesOf(part).toString('utf8') : null
}

/** Text only where it is asked for, and an array of bytes only of a calendar. */
const bytesOf = ({ content }: Attachment): Buffer => Buffer.from(content as ArrayBuffer)

/** Our return address, wherever the report carries it: it went to it, or it is about a message that bore it. */
function refOf(secrets: Secrets, email: Email, feedback: string | null): ReportedRef | null {
  const own = email.headerLines.map(({ line }) => line).join('\n')
  const returned = email.attachments
    .filter(({ mimeType }) => RETURNED_TYPES.includes(mimeType))
    .slice(0, 4)
    .map((part) => headerOf(bytesOf(part)))
  for (const text of [own, feedback ?? '', ...returned]) {
    const ref = findReturnPath(secrets, text)
    if (ref) return ref
  }
  return null
}

function headerOf(message: Buffer): string {
  const text = message.subarray(0, MAX_HEADER_BYTES).toString('latin1')
  const end = /\r?\n\r?\n/.exec(text)?.index
  return text.slice(0, end)
}

/** RFC 3464: a group of fields about the message, then one for each recipient. */
function eventsByStatus(text: string, email: Email, { received_at }: RawReport): ReportedEvent[] {
  const groups = fieldGroups(text, MAX_RECIPIENTS + 1).filter((group) => group.has('action'))
  if (groups.length === 0) throw new Error('the delivery status names no recipient')
  return groups.map((group) => {
    const action =
      field(group, 'action')
        .toLowerCase()
        .split(/[^a-z]/, 1)[0] ?? ''
    const recipient = recipientOf(field(group, 'original-recipient'), field(group, 'final-recipient'))
    const status = statusOf(group)
    const occurred_at = timeOf([field(group, 'last-attempt-date'), dateOf(email)], received_at)
    // A delay is reported again and again; any other result of a recipient once.
    const when = action === 'delayed' ? `:${occurred_at.toISOString()}` : ''
    return {
      ...meaningOf(action, status),
      recipient,
      occurred_at,
      detail: storableWords(wordsOf(group) || `${action} ${status}`),
      event_key: `dsn:${action}:${status}:${recipient?.toLowerCase() ?? ''}${when}`,
    }
  })
}

/**
 * The recipient's enhanced status code, '' when there is none. One that says nothing (x.0.0) gives way to a better
 * one in the server's own words: a policy's 5.7.1 must not read as a dead address. Cisco's gateways write `550 #5.7.1`,
 * which other servers do not read.
 */
function statusOf(group: Fields): string {
  const given = /(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d.])/.exec(field(group, 'status'))?.[0] ?? ''
  if (given !== '' && !given.endsWith('.0.0')) return given
  const words = wordsOf(group)
  const better = /^(?:\d{3}[ -])?#?([245]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(words)?.[1]
  if (better !== undefined && (given === '' || better[0] === given[0])) return better
  const code = /^([245])\d\d(?!\d)/.exec(words)?.[1]
  return given || (code === undefined ? '' : `${code}.0.0`)
}

/** What the remote server said, without the type before it. */
const wordsOf = (group: Fields): string =>
  field(group, 'diagnostic-code')
    .replace(/^[a-z0-9-]{1,20} *;/i, '')
    .trim()

type Meaning = { kind: EmailEventKind; effect: ContactEffect }

/** @throws Error for an action that RFC 3464 does not know. */
function meaningOf(action: string, status: string): Meaning {
  switch (action) {
    case 'failed':
      return { kind: 'bounced', effect: effectOfFailure(status) }
    case 'delayed':
      return { kind: 'delayed', effect: 'none' }
    case 'delivered':
    case 'expanded':
      return { kind: 'delivered', effect: 'delivered' }
    case 'relayed':
      // The next server sends no reports: the mail left, which is no proof that it arrived.
      return { kind: 'sent', effect: 'none' }
    default:
      throw new Error(`the delivery status has an unknown action: ${action}`)
  }
}

/** RFC 5965: one group of fields; the recipients are often left out. */
function eventsByFeedback(text: string, email: Email, { received_at }: RawReport): ReportedEvent[] {
  const [fields] = fieldGroups(text, MAX_RECIPIENTS)
  const type = fields && field(fields, 'feedback-type').toLowerCase()
  if (!fields || !type) throw new Error('the feedback report names no type')
  if (!isComplaint(type)) return []
  const named = (fields.get('original-rcpt-to') ?? []).map((value) => addressOf(`rfc822;${value}`))
  if (named.length > MAX_RECIPIENTS) throw new Error('the feedback report names too many recipients')
  const by = field(fields, 'reported-domain') || field(fields, 'user-agent')
  return [...new Set(named.length > 0 ? named : [null])].map((recipient) => ({
    kind: 'complained',
    effect: 'complaint',
    recipient,
    occurred_at: timeOf([dateOf(email)], received_at),
    detail: storableWords(by === '' ? type : `${type}: ${by}`),
    event_key: `feedback:${type.slice(0, 40).toWellFormed()}:${recipient?.toLowerCase() ?? ''}`,
  }))
}

const dateOf = ({ headers }: Email): string => headers.find(({ key }) => key === 'date')?.value ?? ''
