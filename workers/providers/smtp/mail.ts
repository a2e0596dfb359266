/**
 * Parses mail that may be a report: its parts, its envelope, and the signed references in it. Hostile input costs
 * bounded time and memory.
 */
import type { Attachment, Email } from 'postal-mime'
import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import { type ReportEnvelope, readEnvelope } from '../../../db/messages/emails/report-envelope.ts'
import { findReference, MAX_REPORT_BYTES } from '../../../db/messages/emails/return-path.ts'
import { readUnsubscribeToken } from '../../../db/messages/emails/unsubscribe-token.ts'
import type { Secrets } from '../../../db/process/secrets.ts'
import type { RawReport } from '../report.ts'
import { parseTime } from './report-fields.ts'

/** postal-mime needs 25 µs per line (measured), so 10 MiB of empty lines would occupy it for minutes. */
const MAX_LINES = 20_000
const MAX_HEADER_BYTES = 256 * 1024
/** The maximum text of a report. The rest is the returned email. */
const MAX_TEXT_CHARACTERS = 16_000

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

export type ReportMail = {
  envelope: ReportEnvelope
  email: Email
  text: string
  /** The parts that make it a report. Null if missing. */
  status: string | null
  feedback: string | null
  /** The emails that it returns, or their headers. */
  returned: readonly string[]
  received_at: Date
  /** The time in its Date header, or when it was received. */
  dated_at: Date
}

/** @throws Error if it is unreadable. */
export async function parseReportMail({ body, received_at }: RawReport): Promise<ReportMail> {
  const email = await parse(body)
  const returned = email.attachments
    .filter(({ mimeType }) => RETURNED_TYPES.includes(mimeType))
    .slice(0, 4)
    .map((part) => toBytes(part).subarray(0, MAX_REPORT_BYTES).toString('latin1'))
  const text = email.text ?? withoutMarkup(email.html ?? '')
  return {
    envelope: readEnvelope(body),
    email,
    text: text.slice(0, MAX_TEXT_CHARACTERS),
    status: findPart(email, STATUS_TYPES),
    feedback: findPart(email, FEEDBACK_TYPES),
    returned,
    received_at,
    dated_at: parseTime([headerOf({ email }, 'date')], received_at),
  }
}

async function parse(body: Buffer): Promise<Email> {
  try {
    // Loaded with the first report (1 MB): most workers never read one.
    const { default: PostalMime } = await import('postal-mime')
    return await PostalMime.parse(withoutAddressLists(readBeginning(body)), PARSER_OPTIONS)
  } catch (error) {
    throw new Error(`the message can't be parsed: ${error instanceof Error ? error.message : ''}`)
  }
}

function readBeginning(body: Buffer): Buffer {
  const bytes = body.subarray(0, MAX_REPORT_BYTES)
  let end = 0
  for (let line = 0; line < MAX_LINES; line++) {
    end = bytes.indexOf(0x0a, end) + 1
    if (end === 0) return bytes
  }
  return bytes.subarray(0, end)
}

/**
 * Renames address fields, which we don't read as addresses, because a malicious list costs postal-mime a second
 * (measured: 235 KB of groups).
 */
function withoutAddressLists(body: Buffer): Buffer {
  const head = body.subarray(0, MAX_HEADER_BYTES).toString('latin1')
  const renamed = head.replace(
    /^(?=(?:from|sender|reply-to|to|cc|bcc|delivered-to|return-path)[ \t]*:)/gim,
    'x-',
  )
  return Buffer.concat([Buffer.from(renamed, 'latin1'), body.subarray(MAX_HEADER_BYTES)])
}

function findPart({ attachments }: Email, types: readonly string[]): string | null {
  const part = attachments.find(({ mimeType }) => types.includes(mimeType))
  return part ? toBytes(part).toString('utf8') : null
}

/** postal-mime's content is a string only on demand, and a byte array only for a calendar. */
const toBytes = ({ content }: Attachment): Buffer => Buffer.from(content as ArrayBuffer)

const withoutMarkup = (html: string): string =>
  html.slice(0, 4 * MAX_TEXT_CHARACTERS).replace(/<[^<>]{0,2000}>/g, ' ')

/** Returns a header of the mail itself. '' without it. @param name in lower case. */
export const headerOf = ({ email }: Pick<ReportMail, 'email'>, name: string): string =>
  email.headers.find(({ key }) => key === name)?.value ?? ''

/** Returns the signed reference in the headers of the report, its feedback or the returned emails. */
export function refOf(secrets: Secrets, mail: ReportMail): ReportedRef | null {
  const own = mail.email.headerLines.map(({ line }) => line).join('\n')
  for (const text of [own, mail.feedback ?? '', ...mail.returned.map(readHeaders)]) {
    const ref = findReference(secrets, text)
    if (ref) return ref
  }
  return null
}

const readHeaders = (message: string): string => {
  const text = message.slice(0, MAX_HEADER_BYTES)
  return text.slice(0, /\r?\n\r?\n/.exec(text)?.index)
}

const TOKEN = /\/u\/([\w-]{40,600})/g
const MAX_TOKENS = 50

/** Like `refOf`, but searches everything in a complaint. The token of an unsubscribe link also counts. */
export function refOfComplaint(secrets: Secrets, mail: ReportMail): ReportedRef | null {
  const own = mail.email.headerLines.map(({ line }) => line).join('\n')
  const attached = mail.email.attachments.slice(0, 8).map((part) => toBytes(part).toString('latin1'))
  const texts = [own, mail.feedback ?? '', ...mail.returned, mail.text, ...attached].map((text) =>
    text
      .slice(0, MAX_REPORT_BYTES)
      .replace(/=\r?\n/g, '')
      .replaceAll('=40', '@'),
  )
  for (const text of texts) {
    const ref = findReference(secrets, text)
    if (ref) return ref
  }
  for (const text of texts)
    for (const [, token = ''] of text.matchAll(TOKEN).take(MAX_TOKENS)) {
      const named = readUnsubscribeToken(secrets, token)
      if (named) return { team_id: named.team_id, id: named.id }
    }
  return null
}
