/**
 * Reads bounces that are no multipart/report: those of Exim and Gmail (X-Failed-Recipients), of qmail (QSBMF), and
 * others by the first line of their text that says why. Pure; linear.
 */
import { classifyFailure, failureCode } from '../../../db/validation/failures.ts'
import { headerOf, type ReportMail } from './mail.ts'
import { addressOf } from './report-fields.ts'

type PlainBounce = { recipient: string | null; reply: string }

const MAX_LINES = 200
/** How many lines of a reply are read from the first on that says why. */
const REPLY_LINES = 4

/** cr.yp.to/proto/qsbmf.txt: a bounce begins so. */
export const isQsbmf = (text: string): boolean => /^\s*Hi\. (?:This|The) /.test(text)

/** Below such a line is what was returned. */
const COPY =
  /^(?:_{10}|Received: |Return-Path: |Message headers follow|Original message follows|The original message)/i
const COPY_WORDS = /copy|original|returned|forwarded|below|header/i
const isCopy = (line: string): boolean => COPY.test(line) || (line.startsWith('--') && COPY_WORDS.test(line))

/** @returns null if nothing in it says why. */
export function readPlainBounce(mail: ReportMail): PlainBounce | null {
  const lines = mail.text.split(/\r\n|\n|\r/, MAX_LINES + 1).slice(0, MAX_LINES)
  const end = lines.findIndex((line, at) => at > 0 && isCopy(line.trim()))
  const said = end < 0 ? lines : lines.slice(0, end)
  const failed = headerOf(mail, 'x-failed-recipients')
  if (failed !== '')
    return {
      recipient: addressOf(`rfc822;${failed.split(',')[0] ?? ''}`),
      reply: replyIn(said) ?? said.join(' '),
    }
  if (isQsbmf(mail.text)) return qsbmf(said)
  const reply = replyIn(said)
  return reply === null ? null : { recipient: null, reply }
}

/** After an introduction: a paragraph for each recipient, `<ana@example.org>:` and the reason. */
function qsbmf(lines: readonly string[]): PlainBounce {
  const at = lines.findIndex((line) => /^<[^<>]*>:\s*$/.test(line))
  if (at < 0) return { recipient: null, reply: lines.join(' ') }
  const rest = lines.slice(at + 1)
  const end = rest.findIndex((line) => line.trim() === '')
  return {
    recipient: addressOf(`rfc822;${(lines[at] ?? '').replace(/:\s*$/, '')}`),
    reply: (end < 0 ? rest : rest.slice(0, end)).join(' '),
  }
}

/** From the first line on that a code or a phrase of the table is in. */
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
