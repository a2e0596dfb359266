/**
 * Reads mail from mail servers and feedback loops: delivery status notifications (RFC 3464), feedback reports (RFC
 * 5965), and bounces and complaints in other forms. Only a valid signed reference gives events. An unreadable report
 * is parked with its reason. Mail about someone else's email isn't kept. DECISIONS: Failure classes.
 */
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import { PARKED_REASONS } from '../../../db/delivery/reports/parked-reasons.ts'
import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import type { ReportedEmail } from '../../../db/messages/emails/apply-events.ts'
import { isFromServer, serviceAddress } from '../../../db/messages/emails/report-envelope.ts'
import { findReturnPath } from '../../../db/messages/emails/return-path.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import type { Secrets } from '../../../db/process/secrets.ts'
import { classifyFailure, type FailureReport, failureCode } from '../../../db/validation/failures.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { isComplaint } from '../mail/feedback.ts'
import { type ReportReader, Uneventful, UnreadableReport } from '../report.ts'
import { isAutomaticReply } from './automatic-replies.ts'
import { headerOf, parseReportMail, type ReportMail, refOf, refOfComplaint } from './mail.ts'
import { isDelayNotice, type PlainBounce, readPlainBounce } from './plain-bounce.ts'
import {
  type Fields,
  field,
  fieldGroups,
  parseFieldAddress,
  parseTime,
  pickRecipient,
} from './report-fields.ts'

/** Far more than the 50 recipients of our messages. */
const MAX_RECIPIENTS = 200

/** One event of a report before it is tied to its message. */
type ReportedEvent = Omit<ReportedEmail, 'ref' | 'by_mail' | 'provider_message_id'> & { blames_sender?: true }
type ReportedEvents = Awaited<ReturnType<ReportReader>>
type Read = { ref: ReportedRef | null; events: ReportedEvent[] }

/** The senders that reports about our configuration blame. `bulk` is the sender of broadcasts. */
type Senders = { single: string; bulk: string }

export function createSmtpReportReader(secrets: Secrets, senders: Senders | null = null): ReportReader {
  return async (report) => {
    const mail = await parseReportMail(report)
    const service = serviceAddress(mail.envelope)
    const { ref, events } = service === null ? read(mail, secrets) : readAtService(mail, secrets)
    if (ref === null && service !== null) throw new Uneventful('ignored', false)
    if (ref === null && (events.length > 0 || mail.feedback !== null))
      throw new Error(PARKED_REASONS.noReference)
    if (ref === null) throw new Error('neither a delivery status notification nor a feedback report')
    return events.flatMap(({ blames_sender, ...event }): ReportedEvents => {
      const own = { ref, ...event, by_mail: true, provider_message_id: null }
      const { recipient, detail, occurred_at } = event
      return [
        { channel: 'email', ...own },
        ...(blames_sender && senders !== null && 'team_id' in ref
          ? [{ channel: 'sender_report', sender: senders, ref, recipient, detail, occurred_at } as const]
          : []),
      ]
    })
  }
}

/** Reads mail to a return address, or to another address with our reference in it. */
function read(mail: ReportMail, secrets: Secrets): Read {
  const ref = refOf(secrets, mail)
  const isReport = claimsToReport(mail) || isFromServer(mail.envelope)
  if (mail.status !== null && isReport) return { ref, events: eventsByStatus(mail.status, mail) }
  if (mail.feedback !== null)
    return { ref: ref ?? refOfComplaint(secrets, mail), events: eventsByFeedback(mail.feedback, mail) }
  if (jmrpRecipient(mail) !== null)
    return { ref: ref ?? refOfComplaint(secrets, mail), events: [complaint(mail)] }
  if (!claimsToReport(mail) && isAutomaticReply(mail)) throw new Uneventful('auto_reply')
  const isReturned = findReturnPath(secrets, mail.envelope.recipient) !== null
  if (!isReturned || !isFromServer(mail.envelope))
    return { ref: claimsToReport(mail) ? null : ref, events: [] }
  if (isDelayNotice(mail)) return { ref, events: [delayed(mail)] }
  const bounce = readPlainBounce(mail)
  if (bounce === null && ref !== null) throw unreadable(ref, mail)
  if (bounce === null) return { ref: null, events: [] }
  return { ref, events: [bounced(bounce, mail)] }
}

/** Reads mail to fbl@, postmaster@ and abuse@, which anyone may write to. The reference is null if it isn't ours. */
function readAtService(mail: ReportMail, secrets: Secrets): Read {
  const nothing = { ref: null, events: [] }
  if (mail.status !== null && claimsToReport(mail)) {
    const ref = refOf(secrets, mail)
    return ref === null ? nothing : { ref, events: eventsByStatus(mail.status, mail) }
  }
  if (serviceAddress(mail.envelope) !== 'fbl') return nothing
  const ref = refOfComplaint(secrets, mail)
  if (ref === null) return nothing
  if (mail.feedback !== null) return { ref, events: eventsByFeedback(mail.feedback, mail) }
  if (isAutomaticReply(mail)) throw new Uneventful('auto_reply')
  return { ref, events: [complaint(mail)] }
}

/** True for a report (RFC 6522), even of an unknown kind or broken. False for replies and automatic responses. */
const claimsToReport = (mail: ReportMail): boolean =>
  /^multipart\/report\b/i.test(headerOf(mail, 'content-type'))

/** RFC 3464: a group of fields for the message, then one per recipient. */
function eventsByStatus(text: string, mail: ReportMail): ReportedEvent[] {
  const groups = fieldGroups(text, MAX_RECIPIENTS + 1).filter((group) => group.has('action'))
  if (groups.length === 0) throw new Error('the delivery status has no recipient')
  return groups.map((group) => {
    const action =
      field(group, 'action')
        .toLowerCase()
        .split(/[^a-z]/, 1)[0] ?? ''
    const recipient = pickRecipient(field(group, 'original-recipient'), field(group, 'final-recipient'))
    const reply = readResponse(group)
    const status = failureCode(reply, field(group, 'status'))
    const dates = [field(group, 'last-attempt-date'), headerOf(mail, 'date')]
    const occurred_at = parseTime(dates, mail.received_at)
    // A delay is reported repeatedly, any other result of a recipient once.
    const when = action === 'delayed' ? `:${occurred_at.toISOString()}` : ''
    return {
      ...readAction(action, { status: field(group, 'status'), reply, text: mail.text }),
      recipient,
      occurred_at,
      detail: storableWords(reply || `${action} ${status}`),
      event_key: `dsn:${action}:${status}:${recipient?.toLowerCase() ?? ''}${when}`,
    }
  })
}

const readResponse = (group: Fields): string =>
  field(group, 'diagnostic-code')
    .replace(/^[a-z0-9-]{1,20} *;/i, '')
    .trim()

type Meaning = { kind: EmailEventKind; effect: ContactEffect; blames_sender?: true }

function failed(said: FailureReport): Meaning {
  const { about, contact } = classifyFailure(said)
  return { kind: 'bounced', effect: contact, ...(about === 'sender' && { blames_sender: true }) }
}

/** @throws Error for an action that RFC 3464 doesn't define. */
function readAction(action: string, said: FailureReport): Meaning {
  switch (action) {
    case 'failed':
      return failed(said)
    case 'delayed':
      return { kind: 'delayed', effect: 'none' }
    case 'delivered':
    case 'expanded':
      return { kind: 'delivered', effect: 'delivered' }
    case 'relayed':
      // The next server sends no reports. The email was relayed, which doesn't prove that it arrived.
      return { kind: 'sent', effect: 'none' }
    default:
      throw new Error(`the delivery status has an unknown action: ${action}`)
  }
}

/** Makes the error that parks the report. Its email's timeline then shows that something came back. */
function unreadable(ref: ReportedRef, mail: ReportMail): UnreadableReport {
  const reason = 'a bounce without a reason: its text contains no reply from a server'
  return new UnreadableReport(reason, {
    ...{ channel: 'email', ref, kind: 'unreadable', effect: 'none', recipient: null },
    occurred_at: mail.dated_at,
    detail: reason,
    event_key: `unreadable:${headerOf(mail, 'date')}`,
    ...{ by_mail: true, provider_message_id: null },
  })
}

/** Makes the event of a delay notice, which may be repeated. */
function delayed(mail: ReportMail): ReportedEvent {
  const { dated_at: occurred_at } = mail
  const reply = readPlainBounce(mail)?.reply ?? ''
  return {
    ...{ kind: 'delayed', effect: 'none', recipient: null, occurred_at },
    detail: storableWords(reply || 'delayed by a mail server'),
    event_key: `delay:${occurred_at.toISOString()}`,
  }
}

function bounced({ recipient, reply }: PlainBounce, mail: ReportMail): ReportedEvent {
  return {
    ...failed({ reply }),
    recipient,
    occurred_at: mail.dated_at,
    detail: storableWords(reply || 'returned by a mail server'),
    event_key: `bounce:${failureCode(reply, '')}:${recipient?.toLowerCase() ?? ''}`,
  }
}

/** Makes the event of a complaint by a recipient, or by one who isn't named. */
const complained = (
  { dated_at: occurred_at }: ReportMail,
  recipient: string | null,
  { type, detail }: { type: string; detail: string },
): ReportedEvent => ({
  ...{ kind: 'complained', effect: 'complaint', recipient, occurred_at, detail: storableWords(detail) },
  event_key: `feedback:${type}:${recipient?.toLowerCase() ?? ''}`,
})

/** RFC 5965: one group of fields, often without recipients. */
function eventsByFeedback(text: string, mail: ReportMail): ReportedEvent[] {
  const [fields] = fieldGroups(text, MAX_RECIPIENTS)
  const type = fields && field(fields, 'feedback-type').toLowerCase()
  if (!fields || !type) throw new Error('the feedback report has no type')
  if (!isComplaint(type)) return []
  const named = (fields.get('original-rcpt-to') ?? []).map((value) => parseFieldAddress(`rfc822;${value}`))
  if (named.length > MAX_RECIPIENTS) throw new Error('the feedback report has too many recipients')
  const by = field(fields, 'reported-domain') || field(fields, 'user-agent')
  const recipients = new Set(named.length > 0 ? named : [jmrpRecipient(mail)])
  const said = { type: type.slice(0, 40).toWellFormed(), detail: by === '' ? type : `${type}: ${by}` }
  return [...recipients].map((recipient) => complained(mail, recipient, said))
}

function complaint(mail: ReportMail): ReportedEvent {
  const { from } = mail.envelope
  const said = { type: 'abuse', detail: from === '' ? 'complaint' : `complaint: ${from}` }
  return complained(mail, jmrpRecipient(mail), said)
}

/** Returns the recipient in Microsoft's JMRP headers, its own or those of the returned email, or null. */
function jmrpRecipient(mail: ReportMail): string | null {
  const own = headerOf(mail, 'x-hmxmroriginalrecipient')
  if (own !== '') return parseFieldAddress(`rfc822;${own}`)
  for (const message of mail.returned) {
    const found = /^x-hmxmroriginalrecipient[ \t]*:(.{0,320})$/im.exec(message)?.[1]
    if (found) return parseFieldAddress(`rfc822;${found}`)
  }
  return null
}
