/**
 * Simulates a mail server's reports on the magic recipients: real delivery status notifications (RFC 3464)
 * and feedback reports (RFC 5965), built byte by byte and posted to the service's hook. Each goes to its
 * message's envelope sender, as from a mail server, and quotes its header. It is independent of the code that
 * reads them.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type EmailReport, emailReports } from '../../workers/providers/test/magic-recipients.ts'
import type { SandboxMessage } from './smtp.ts'

/** The message of a report, and the affected recipient. */
export type About = {
  mail_from: string
  recipient: string
  /** The message as it came. */
  raw: Buffer
  at?: Date
}

export type RecipientFields = {
  action: 'delivered' | 'relayed' | 'expanded' | 'delayed' | 'failed'
  status: string
  diagnostic?: string
}

const HOST = 'sandbox.test'

/** RFC 5322 wants the offset in digits. */
const dateOf = (at: Date): string => at.toUTCString().replace('GMT', '+0000')

const headerOf = (raw: Buffer): string => raw.toString('latin1').split('\r\n\r\n', 1)[0] ?? ''

/**
 * Builds a multipart/report of three parts: text, the machine-readable part, and the message or its header.
 */
function multipartReport(
  kind: 'delivery-status' | 'feedback-report',
  { to, subject, at }: { to: string; subject: string; at: Date },
  { words, report, returned }: { words: string; report: string; returned: [type: string, text: string] },
): Buffer {
  const boundary = `=_${randomUUID()}`
  const part = (type: string, text: string): string =>
    `--${boundary}\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`
  const lines = [
    `Return-Path: <>`,
    `Received: from ${HOST} by ${HOST} with LMTP; ${dateOf(at)}`,
    `Date: ${dateOf(at)}`,
    `From: Mail Delivery System <MAILER-DAEMON@${HOST}>`,
    `To: ${to}`,
    `Subject: ${subject}`,
    `Message-ID: <${randomUUID()}@${HOST}>`,
    `Auto-Submitted: auto-replied`,
    `MIME-Version: 1.0`,
    `Content-Type: multipart/report; report-type=${kind};\r\n\tboundary="${boundary}"`,
  ]
  const parts = [
    part('text/plain; charset=us-ascii', words),
    part(`message/${kind}`, report),
    part(...returned),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${parts.join('')}--${boundary}--\r\n`, 'latin1')
}

/** The fields of one recipient (RFC 3464 §2.3). */
function recipientGroup(
  recipient: string,
  { action, status, diagnostic }: RecipientFields,
  at: Date,
): string {
  return [
    `Final-Recipient: rfc822; ${recipient}`,
    `Original-Recipient: rfc822;${recipient}`,
    `Action: ${action}`,
    `Status: ${status}`,
    `Remote-MTA: dns; mx.${recipient.slice(recipient.indexOf('@') + 1)}`,
    ...(diagnostic === undefined ? [] : [`Diagnostic-Code: smtp; ${diagnostic}`]),
    `Last-Attempt-Date: ${dateOf(at)}`,
    '',
  ].join('\r\n')
}

/** A delivery status notification about recipients of one message. */
export function deliveryStatus(
  { mail_from, raw, at = new Date() }: Omit<About, 'recipient'>,
  recipients: readonly ({ recipient: string } & RecipientFields)[],
): Buffer {
  const perMessage = [
    `Reporting-MTA: dns; ${HOST}`,
    `X-Sandbox-Sender: rfc822; ${mail_from}`,
    `Arrival-Date: ${dateOf(at)}`,
    '',
  ].join('\r\n')
  const groups = recipients.map((fields) => recipientGroup(fields.recipient, fields, at))
  return multipartReport(
    'delivery-status',
    { to: mail_from, subject: 'Delivery Status Notification', at },
    {
      words: `This is the mail system at ${HOST}.\r\n\r\n${recipients.map((fields) => `<${fields.recipient}>: ${fields.diagnostic ?? fields.action}`).join('\r\n')}`,
      report: [perMessage, ...groups].join('\r\n'),
      returned: ['text/rfc822-headers', headerOf(raw)],
    },
  )
}

/** Builds a recipient's complaint: to the sender's agreed address, with the message as received. */
export function feedbackReport(
  { mail_from, recipient, raw, at = new Date() }: About,
  type = 'abuse',
  { redacted = false } = {},
): Buffer {
  const report = [
    `Feedback-Type: ${type}`,
    'User-Agent: HeliographSandbox/1.0',
    'Version: 1',
    ...(redacted ? [] : [`Original-Mail-From: <${mail_from}>`, `Original-Rcpt-To: <${recipient}>`]),
    `Arrival-Date: ${dateOf(at)}`,
    `Reported-Domain: ${recipient.slice(recipient.indexOf('@') + 1)}`,
    'Source-IP: 192.0.2.1',
    '',
  ].join('\r\n')
  return multipartReport(
    'feedback-report',
    { to: `feedback@${mail_from.slice(mail_from.indexOf('@') + 1)}`, subject: 'FW: a message', at },
    {
      words: 'This is an email abuse report for a message that a user has reported.',
      report,
      returned: ['message/rfc822', `Return-Path: <${mail_from}>\r\n${raw.toString('latin1')}`],
    },
  )
}

type ReporterOptions = {
  /** The service's POST /hooks/smtp. */
  url: string
  token: string
  /** Between a message and the reports about it, in milliseconds. Their dates have no fractions of a second. */
  delay_ms?: number
  /** Called when a report could not be posted. */
  warn?: (line: string) => void
}

const DELIVERED: RecipientFields = { action: 'delivered', status: '2.0.0' }
const BOUNCED: RecipientFields = {
  action: 'failed',
  status: '5.1.1',
  diagnostic: '550 5.1.1 The mailbox does not exist',
}
const TRIES = 5

/** Returns the reports for a magic recipient in order, and none for others. Mail servers don't see opens. */
function reportsOf(about: About): (() => Buffer)[] {
  const status = (fields: RecipientFields) => (): Buffer =>
    deliveryStatus(about, [{ recipient: about.recipient, ...fields }])
  const makers: Partial<Record<EmailReport, () => Buffer>> = {
    delivered: status(DELIVERED),
    bounced: status(BOUNCED),
    complained: () => feedbackReport(about),
  }
  return (emailReports(about.recipient) ?? []).flatMap((report) => makers[report] ?? [])
}

/** Makes the callback for each accepted recipient. It reports on magic ones a moment later. */
export function createReporter(
  options: ReporterOptions,
): (message: SandboxMessage, recipient: string) => void {
  const { delay_ms = 1_200, warn = () => {} } = options
  return ({ mail_from, raw }, recipient) => {
    // A message without an envelope sender is itself a report, so nothing is reported.
    if (mail_from === '') return
    const report = async (): Promise<void> => {
      for (const make of reportsOf({ mail_from, recipient, raw })) {
        await sleep(delay_ms)
        await post(options, make())
      }
    }
    report().catch((error: unknown) => warn(`could not send the report about ${recipient}: ${String(error)}`))
  }
}

const post = ({ url, token }: ReporterOptions, body: Buffer): Promise<void> =>
  postUntilTaken(
    url,
    { Authorization: `Bearer ${token}`, 'Content-Type': 'message/rfc822' },
    new Uint8Array(body),
  )

/** Retries while the hook doesn't accept it, as mail servers and relays do. */
export async function postUntilTaken(
  url: string,
  headers: Record<string, string>,
  body: string | Uint8Array<ArrayBuffer>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const status = await fetch(url, { method: 'POST', headers, body }).then(
      (response) => response.status,
      () => 0,
    )
    if (status === 200) return
    if (attempt === TRIES || (status >= 400 && status < 500)) throw new Error(`the hook answers ${status}`)
    await sleep(500 * attempt)
  }
}
