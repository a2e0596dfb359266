/**
 * Reads bounces that aren't multipart/report: from Exim and Gmail (X-Failed-Recipients), qmail (QSBMF), and others by
 * the first line that gives a reason. Pure, in linear time.
 */
import { classifyFailure, failureCode } from '../../../db/validation/failures.ts'
import { headerOf, type ReportMail } from './mail.ts'
import { parseFieldAddress } from './report-fields.ts'

export type PlainBounce = { recipient: string | null; reply: string }

/** Phrases of delay notices, in lower case, by program. */
const DELAY_NOTICES: readonly string[] = [
  // Exim
  'has not yet been delivered',
  // Sendmail, Gmail, Zoho
  'this is a warning message only',
  // OpenSMTPD
  'this is only a temporary failure report',
  // Exchange
  'delivery will continue to be attempted',
  "hasn't been delivered yet",
]

/** True for a delay notice. It isn't a bounce, because the server still retries. */
export function isDelayNotice(mail: ReportMail): boolean {
  if (headerOf(mail, 'x-failed-recipients') !== '') return false
  const words = ownLines(mail).join(' ').replaceAll('’', "'").replace(/\s+/g, ' ').toLowerCase()
  return DELAY_NOTICES.some((phrase) => words.includes(phrase))
}

const MAX_LINES = 200
/** The number of lines of a reply, from the first one with a reason. */
const REPLY_LINES = 4

/** The start of a bounce per cr.yp.to/proto/qsbmf.txt. */
export const isQsbmf = (text: string): boolean => /^\s*Hi\. (?:This|The) /.test(text)

/** Everything below such a line is the returned email. */
const COPY =
  /^(?:_{10}|Received: |Return-Path: |Message headers follow|Original message follows|The original message)/i
const COPY_WORDS = /copy|original|returned|forwarded|below|header/i
const isCopy = (line: string): boolean => COPY.test(line) || (line.startsWith('--') && COPY_WORDS.test(line))

/** Returns the lines above the returned email. */
function ownLines(mail: ReportMail): readonly string[] {
  const lines = mail.text.split(/\r\n|\n|\r/, MAX_LINES)
  const end = lines.findIndex((line, at) => at > 0 && isCopy(line.trim()))
  return end < 0 ? lines : lines.slice(0, end)
}

/** @returns null if it contains no reason. */
export function readPlainBounce(mail: ReportMail): PlainBounce | null {
  const said = ownLines(mail)
  const failed = headerOf(mail, 'x-failed-recipients')
  if (failed !== '')
    return {
      recipient: parseFieldAddress(`rfc822;${failed.split(',')[0] ?? ''}`),
      reply: replyIn(said) ?? said.join(' '),
    }
  if (isQsbmf(mail.text)) return qsbmf(said)
  const reply = replyIn(said)
  return reply === null ? null : { recipient: null, reply }
}

/** Reads an introduction, then a paragraph per recipient: `<ana@example.org>:` and the reason. */
function qsbmf(lines: readonly string[]): PlainBounce {
  const at = lines.findIndex((line) => /^<[^<>]*>:\s*$/.test(line))
  if (at < 0) return { recipient: null, reply: lines.join(' ') }
  const rest = lines.slice(at + 1)
  const end = rest.findIndex((line) => line.trim() === '')
  return {
    recipient: parseFieldAddress(`rfc822;${lines[at]}`),
    reply: (end < 0 ? rest : rest.slice(0, end)).join(' '),
  }
}

/** Returns the reply from the first line with a code or a phrase of the table. */
function replyIn(lines: readonly string[]): string | null {
  const at = lines.findIndex(
    (line) => failureCode(line, '') !== '' || classifyFailure({ reply: line }).about !== 'unknown',
  )
  return at < 0
    ? null
    : lines
        .slice(at, at + REPLY_LINES)
        .join(' ')
        .trim()
}
