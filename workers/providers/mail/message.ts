/**
 * Composes the bytes of an RFC 5322 message from a neutral email, signed if it has a DKIM key. Names and values of
 * custom headers are sent byte for byte. No line exceeds 998 octets, and every octet is 7-bit. Customer content can't
 * start a header. DECISIONS: Header values, From address.
 */
import { hash } from 'node:crypto'
import MailComposer from 'nodemailer/lib/mail-composer'
import { encodeWord, foldLines } from 'nodemailer/lib/mime-funcs'
import type MimeNode from 'nodemailer/lib/mime-node'
import { formatMailbox, parseMailbox, toWireAddress } from '../../../db/validation/address.ts'
import { wireFault } from '../../../db/validation/headers.ts'
import type { OutgoingEmail, OutgoingFile } from '../provider.ts'
import { createSignatures } from './dkim.ts'
import type { Pieces } from './pieces.ts'
import { encodedText, headOf, type NamedAddress, type PlainOptions, plainMessage } from './plain-message.ts'

type MessageParts = Omit<OutgoingEmail, 'team_id' | 'email_id' | 'recipients'>

/** The row's signed reference. Complaints without our return address are matched by it. */
const REFERENCE_HEADER = 'X-Heliograph-Ref'

/** RFC 5322 §2.1.1, without the CRLF. */
const MAX_LINE_OCTETS = 998
/** A longer display name is encoded (RFC 2047), because only then can it be folded. */
const MAX_PLAIN_NAME_CHARACTERS = 200
/** 64 bits, like nodemailer's random boundaries. */
const BOUNDARY_CHARACTERS = 16
/** RFC 2047 allows 75 characters for an encoded word. */
const ENCODED_WORD_CHARACTERS = 52

/**
 * Returns the message on the wire, before dot-stuffing, in pieces so that its files aren't copied.
 * @throws Error if it can't be composed or signed, which is never the recipient's fault.
 */
export async function composeMessage(email: MessageParts): Promise<Pieces> {
  const own = [
    fromLine(email.from),
    `${REFERENCE_HEADER}: ${email.reference}`,
    ...customLines(email),
    ...unsubscribeLines(email),
    ...complaintLines(email),
  ].join('\r\n')
  const pieces = joined([`${own}\r\n`, ...content(email)])
  const last = pieces.at(-1)
  if (typeof last !== 'string' || !last.endsWith('\n')) pieces.push('\r\n')
  const message = joined(pieces) as [string, ...Pieces]
  const keys = [email.dkim, email.ed25519].filter((key) => key !== null)
  return keys.length > 0 ? joined([await createSignatures(message, keys), ...message]) : message
}

function content(email: MessageParts): Pieces {
  const options = composerOptions(email)
  const { html } = options
  if (email.files.length === 0 && typeof html === 'string') return [plainMessage({ ...options, html })]
  // The composer gets these placeholders instead of files.
  const places = new Map(email.files.map((file) => [Buffer.of(0), file]))
  const invitations = new Map(email.files.filter(isInvitation).map((file) => [Buffer.of(0), file]))
  const composer = new MailComposer({
    ...options,
    attachments: [...places].map(attachmentOptions),
    alternatives: [...invitations].map(alternativeOptions),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return written(composer.compile(), new Map([...places, ...invitations]))
}

type Places = ReadonlyMap<unknown, OutgoingFile>

function joined(pieces: Pieces): (string | Buffer)[] {
  const all: (string | Buffer)[] = []
  for (const piece of pieces) {
    const last = all.at(-1)
    if (typeof piece === 'string' && typeof last === 'string') all[all.length - 1] = last + piece
    else all.push(piece)
  }
  return all
}

/** Writes a part of the message as text. The tree's own `build` needs four streams and 3.4 × the CPU time. */
function written(node: MimeNode, places: Places): Pieces {
  const head = headOf(node.buildHeaders())
  const file = places.get(node.content)
  if (file) return [head, ...(attachedMessage(file) ?? file.encoded)]
  if (!node.multipart) return [head + encodedText(String(node.content ?? ''), node.getTransferEncoding())]
  const parts = node.childNodes.flatMap((child) => [
    `--${node.boundary}\r\n`,
    ...written(child, places),
    '\r\n',
  ])
  return [head, ...parts, `--${node.boundary}--\r\n`]
}

type Bodies = { html: string | { content: string; contentTransferEncoding: 'base64' }; text?: string }

const composerOptions = (email: MessageParts): Omit<PlainOptions, 'html' | 'text'> & Bodies => ({
  to: email.to.flatMap(wireMailbox),
  cc: email.cc.flatMap(wireMailbox),
  ...(email.reply_to === '' ? {} : { replyTo: { name: '', address: toWireAddress(email.reply_to) } }),
  ...subjectOptions(email.subject),
  messageId: `<${email.message_id}>`,
  date: email.date,
  ...bodyOptions(email),
  // A retry sends the same bytes. No one can write the boundary into a body, because the reference is signed.
  baseBoundary: hash('sha256', email.reference).slice(0, BOUNDARY_CHARACTERS),
})

/** A larger message is sent in base64, in bytes of base64. */
const LARGEST_ATTACHED_MESSAGE = 512 * 1024

/**
 * Returns an attached message unencoded, because RFC 2046 §5.2.1 allows no base64 for it. Null if it isn't in short
 * lines of ASCII.
 */
function attachedMessage({ content_type, encoded: lines }: OutgoingFile): [string] | null {
  if (!/^message\/rfc822\b/i.test(content_type)) return null
  const bytes = lines.reduce((sum, { length }) => sum + length, 0)
  if (bytes > LARGEST_ATTACHED_MESSAGE) return null
  const text = crlf(Buffer.from(Buffer.concat(lines).toString('latin1'), 'base64').toString('latin1'))
  const isShort = text.split(/[\r\n]/).every(({ length }) => length <= MAX_LINE_OCTETS)
  return isShort && /^[\t\r\n -~]*$/.test(text) ? [text] : null
}

const attachmentOptions = ([place, file]: [unknown, OutgoingFile]) => ({
  ...describedFile(file),
  contentTransferEncoding: attachedMessage(file) === null ? ('base64' as const) : ('7bit' as const),
  content: place as Buffer,
})

const describedFile = ({ filename, content_type, content_id }: OutgoingFile) => ({
  filename,
  contentType: content_type,
  contentDisposition: content_id === null ? ('attachment' as const) : ('inline' as const),
  ...(content_id === null ? {} : { cid: content_id }),
})

/** True for a calendar part with a method. Outlook and Gmail show buttons if it is an alternative to the text. */
function isInvitation({ content_type }: OutgoingFile): boolean {
  const [type, ...parameters] = content_type.split(';').map((part) => part.trim().toLowerCase())
  return type === 'text/calendar' && parameters.some((parameter) => parameter.startsWith('method='))
}

const alternativeOptions = ([place, { content_type }]: [unknown, OutgoingFile]) => ({
  contentType: content_type,
  contentTransferEncoding: 'base64' as const,
  content: place as Buffer,
})

/** Returns a recipient for the To and Cc headers; empty unless the string is exactly one mailbox. */
function wireMailbox(recipient: string): NamedAddress[] {
  const mailbox = parseMailbox(recipient)
  return mailbox === null ? [] : [{ name: mailbox.name ?? '', address: toWireAddress(mailbox.address) }]
}

/**
 * DKIM verifiers disagree about a body of only spaces (RFC 6376 §3.4.3 and §3.4.4), so it is sent in base64. An empty
 * body becomes a line break.
 */
function bodyOptions({ html, text }: MessageParts): Bodies {
  if (text !== '' || /[^ \t\r\n]/.test(html)) return { html: crlf(html), text: crlf(text) }
  return { html: { content: crlf(html) || '\r\n', contentTransferEncoding: 'base64' } }
}

/** Converts line breaks to CRLF. A 7bit part is signed here and sent with CRLF, so both must be identical. */
const crlf = (text: string): string => text.replace(/\r\n?|\n/g, '\r\n')

/**
 * Printable ASCII is sent unencoded, where nodemailer would encode even a quotation mark. Encoded are other
 * characters and text that would be damaged: a word too long to fold, spaces that folding or trimming would change,
 * and text that looks like an encoded word.
 */
function subjectOptions(subject: string): Pick<PlainOptions, 'headers' | 'subject'> {
  const plain = /^[ -~]*$/.test(subject)
  if (!plain && !isDamaged(subject)) return { subject }
  const value = plain && !isDamaged(subject) ? subject : encodeText(subject)
  return { headers: { Subject: { prepared: true, foldLines: true, value } } }
}

/** In characters. Folding can't bring such a word below 998 octets per line (RFC 5322). */
const UNFOLDABLE_WORD_CHARACTERS = 900

const isDamaged = (subject: string): boolean =>
  /=\?|\s{20}|^\s|\s$/.test(subject) ||
  subject.split(/\s/).some(({ length }) => length >= UNFOLDABLE_WORD_CHARACTERS)

const encodeText = (text: string): string =>
  encodeWord(text, /^[ -~]*$/.test(text) ? 'Q' : 'B', ENCODED_WORD_CHARACTERS)

function fromLine(from: string): string {
  const mailbox = parseMailbox(from)
  if (mailbox === null) throw new Error("the sender isn't a single mailbox")
  const address = toWireAddress(mailbox.address)
  const name = mailbox.name ?? ''
  const plain = /^[ -~]*$/.test(name) && name.length <= MAX_PLAIN_NAME_CHARACTERS && !name.includes('=?')
  if (plain) return `From: ${formatMailbox({ ...mailbox, address })}`
  return foldLines(`From: ${encodeText(name)} <${address}>`)
}

/** Nodemailer would change the case of names, encode, fold at 76 and rewrite References, so these lines bypass it. */
function customLines({ headers, reply_to }: MessageParts): string[] {
  if (headers === null) return []
  const fault = wireFault(headers)
  if (fault !== null) throw new Error(`${fault.field} ${fault.problem}`)
  return Object.entries(headers)
    .filter(([name]) => reply_to === '' || name.toLowerCase() !== 'reply-to')
    .map(([name, value]) => headerLine(name, value))
}

/** DECISIONS: Unsubscribe link; RFC 8058 wants both. */
const unsubscribeLines = ({ list_unsubscribe }: MessageParts): string[] =>
  list_unsubscribe === null
    ? []
    : [
        headerLine('List-Unsubscribe', `<${list_unsubscribe}>`),
        headerLine('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click'),
      ]

/** The address for complaints (RFC 9477). It must be below the From domain, so it is at its own return path. */
const complaintLines = ({
  is_broadcast,
  shared_return_path,
  return_path,
  reference,
}: MessageParts): string[] =>
  is_broadcast && shared_return_path !== null
    ? [
        headerLine('CFBL-Address', `fbl@${return_path.slice(return_path.lastIndexOf('@') + 1)}`),
        headerLine('CFBL-Feedback-ID', reference),
      ]
    : []

/** DECISIONS: Header values. A value of only spaces is cut, because such a folded line can end a header section. */
function headerLine(name: string, value: string): string {
  const line = `${name}: ${value}`
  if (line.length <= MAX_LINE_OCTETS) return line
  return value.trim() === '' ? line.slice(0, MAX_LINE_OCTETS) : `${name}:\r\n ${value}`
}
