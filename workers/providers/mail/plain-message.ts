/**
 * Writes messages without files as nodemailer's composer does, byte for byte, without its tree of nodes. Measured: a
 * seventh of a worker's CPU time, with the pool in smtp/adapter.ts.
 */
import * as base64 from 'nodemailer/lib/base64'
import { foldLines, hasLongerLines, isPlainText } from 'nodemailer/lib/mime-funcs'
import MimeNode from 'nodemailer/lib/mime-node'
import * as quotedPrintable from 'nodemailer/lib/qp'

export type NamedAddress = { name: string; address: string }
export type PlainOptions = {
  headers?: { Subject: { prepared: true; foldLines: true; value: string } }
  subject?: string
  to: NamedAddress[]
  cc: NamedAddress[]
  replyTo?: NamedAddress
  /** With angle brackets. */
  messageId: string
  date: Date
  html: string
  text?: string
  baseBoundary: string
}

/** RFC 5322 §2.1.1 recommends up to 78 characters per line. */
const LINE_CHARACTERS = 76

/** The result of folding many spaces. Alone on a line it can end a header section, so it stays on the line before. */
const LINE_OF_BLANKS = /\r\n([ \t]+)(?=\r\n)/g

/** Ends a header section. */
export const headOf = (lines: string): string => `${lines}\r\n\r\n`.replaceAll(LINE_OF_BLANKS, '$1')

/** Returns the message: its headers, and one part or two alternatives. */
export function plainMessage(options: PlainOptions): string {
  const { text = '', html, baseBoundary } = options
  const parts = [textPart('plain', text), textPart('html', html)].filter((part) => part !== null)
  const [only, ...others] = parts
  if (only && others.length === 0) {
    const [type, encoding, content] = only
    return headOf(headerLines(options, [encoding, 'MIME-Version: 1.0', type])) + content
  }
  const boundary = `--_NmP-${baseBoundary}-Part_1`
  const type = foldLines(`Content-Type: multipart/alternative; boundary="${boundary}"`, LINE_CHARACTERS)
  const bodies = parts.map(
    ([type, encoding, content]) => `--${boundary}\r\n${type}\r\n${encoding}\r\n\r\n${content}\r\n`,
  )
  return `${headOf(headerLines(options, ['MIME-Version: 1.0', type]))}${bodies.join('')}--${boundary}--\r\n`
}

function headerLines(
  { headers, to, cc, replyTo, subject, messageId, date }: PlainOptions,
  last: readonly string[],
): string {
  const prepared = headers?.Subject.value ?? ''
  return [
    ...(prepared.trim() === '' ? [] : [foldLines(`Subject: ${prepared}`)]),
    ...addressLine('To', to),
    ...addressLine('Cc', cc),
    ...addressLine('Reply-To', replyTo ? [replyTo] : []),
    ...(subject ? [folded('Subject', MimeNode.encodeHeaderValue('Subject', subject))] : []),
    folded('Message-ID', messageId),
    folded('Date', date.toUTCString().replace('GMT', '+0000')),
    ...last,
  ].join('\r\n')
}

const folded = (name: string, value: string): string => foldLines(`${name}: ${value}`, LINE_CHARACTERS)

const SIMPLE_NAME = /^(?:\w+(?: \w+)*)?$/
const SIMPLE_ADDRESS = /^[\w+.-]+@[a-z0-9.-]+$/

function addressLine(field: string, list: readonly NamedAddress[]): string[] {
  if (list.length === 0) return []
  const isSimple = list.every(
    ({ name, address }) =>
      SIMPLE_NAME.test(name) && SIMPLE_ADDRESS.test(address) && !address.includes('xn--'),
  )
  const value = isSimple
    ? list.map(({ name, address }) => (name === '' ? address : `${name} <${address}>`)).join(', ')
    : MimeNode.encodeHeaderValue(field, list as never)
  return value.trim() === '' ? [] : [folded(field, value)]
}

/** Returns the header lines and the encoded content of a part. Null if it is empty. */
function textPart(
  type: 'plain' | 'html',
  content: string,
): [type: string, encoding: string, content: string] | null {
  if (content === '') return null
  const encoding = chooseEncoding(content)
  return [
    `Content-Type: text/${type}; charset=utf-8`,
    `Content-Transfer-Encoding: ${encoding}`,
    encodedText(content, encoding),
  ]
}

function chooseEncoding(content: string): '7bit' | 'quoted-printable' | 'base64' {
  if (!isPlainText(content)) return isMostlyLatin(content) ? 'quoted-printable' : 'base64'
  if (!hasLongerLines(content, LINE_CHARACTERS)) return '7bit'
  return /[A-Za-z]/.test(content) ? 'quoted-printable' : 'base64'
}

/** True if the text has more latin letters than characters that quoted-printable makes longer. */
function isMostlyLatin(text: string): boolean {
  let [latin, others] = [0, 0]
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code >= 0x80 || code <= 0x08 || code === 0x0b || code === 0x0c || (code >= 0x0e && code <= 0x1f))
      others += 1
    else if ((code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a)) latin += 1
  }
  return others < latin
}

export function encodedText(content: string, encoding: string | false): string {
  if (encoding === 'quoted-printable') return quotedPrintable.wrap(quotedPrintable.encode(content))
  return encoding === 'base64' ? base64.wrap(base64.encode(content)) : content
}
