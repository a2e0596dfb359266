/**
 * Parses email addresses: one bare address or one mailbox per string, never a list (DECISIONS: Email addresses).
 * Promises: linear time, and nothing that parses can break out of an SMTP command or a header: no CR, LF, NUL,
 * comma, colon, semicolon or angle in an address, no control character in a name.
 * Must not look anything up: a valid domain here may not exist.
 */
import { domainToASCII, domainToUnicode } from 'node:url'
import { codePoints } from './strings.ts'

/**
 * `address` as given, trimmed; `domain` in lower-case ASCII (punycode) form; `identity` is what two spellings of one
 * address share: lower case, domain in ASCII form (DECISIONS: Identity).
 */
export type Address = { address: string; domain: string; identity: string }

/** An address, and a name before it that is never empty. */
export type Mailbox = Readonly<{ name: string | null; address: string; domain: string }>

/** Of a display name that leaves room in a header line, in code points. */
export const LONGEST_NAME = 256
const LONGEST_ADDRESS = 254
const LONGEST_LOCAL_PART = 64
const LONGEST_DOMAIN = 253

/**
 * Lower-case ASCII form of a DNS name of two labels or more, or null. Strict: no trailing dot, underscore,
 * IP address or port, and no spelling that IDNA would silently map to another (fullwidth, soft hyphen, %).
 * DECISIONS: Email addresses, From domain.
 */
export function domainToAscii(name: string): string | null {
  if (codePoints(name) > LONGEST_DOMAIN) return null
  const folded = fold(name)
  const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')
  const ascii = plain ? folded : idnToAscii(folded)
  return ascii !== null && isHostname(ascii) ? ascii : null
}

/**
 * Exactly one bare address, outer spaces and tabs trimmed, or null: an ASCII dot-atom of at most 64
 * characters (RFC 5321), then a domain; at most 254 characters as given and in ASCII form.
 * No quoted local parts, comments or literals. DECISIONS: Email addresses, Sizes.
 */
export function parseAddress(text: string): Address | null {
  const address = trimBlanks(text)
  const at = address.lastIndexOf('@')
  if (at < 1 || at > LONGEST_LOCAL_PART) return null
  const local = address.slice(0, at)
  if (!local.split('.').every(isAtom)) return null
  const domain = domainToAscii(address.slice(at + 1))
  if (domain === null || local.length + 1 + domain.length > LONGEST_ADDRESS) return null
  if (codePoints(address) > LONGEST_ADDRESS) return null
  return { address, domain, identity: `${local}@${domain}`.toLowerCase() }
}

/** What was parsed last: one send asks several times about each of its addresses, and a batch has one sender. */
const lately = new Map<string, Mailbox | null>()
const MAX_PARSED = 500
const LONGEST_PARSED = 400

/**
 * One mailbox: `a@b.c`, `<a@b.c>`, `Name <a@b.c>` or `"Quoted \"Name" <a@b.c>`, or null. Unquoted names may
 * hold dots and anything beyond ASCII; runs of spaces in them are one space, as RFC 5322 reads them.
 * Groups, lists, routes, comments and trailing text are refused.
 */
export function parseMailbox(text: string): Mailbox | null {
  const known = lately.get(text)
  if (known !== undefined) return known
  const mailbox = readMailbox(text)
  if (lately.size >= MAX_PARSED) lately.clear()
  if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)
  return mailbox
}

function readMailbox(text: string): Mailbox | null {
  const trimmed = trimBlanks(text)
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(trimmed) || !trimmed.isWellFormed()) return null
  if (!trimmed.endsWith('>')) return mailboxOf(null, parseAddress(trimmed))
  const open = trimmed.lastIndexOf('<')
  const inner = trimmed.slice(open + 1, -1)
  const bare = open < 0 ? null : parseAddress(inner)
  if (bare === null || bare.address !== inner) return null
  const phrase = trimBlanks(trimmed.slice(0, open))
  const name = phrase.startsWith('"') ? quotedName(phrase) : unquotedName(phrase)
  return name === null ? null : mailboxOf(name === '' ? null : name, bare)
}

const mailboxOf = (name: string | null, parsed: Address | null): Mailbox | null =>
  parsed && { name, address: parsed.address, domain: parsed.domain }

/**
 * The normalised From: `a@b.c`, or `Name <a@b.c>` with the name quoted only where RFC 5322 asks for it
 * (specials, and spaces that would be lost). parseMailbox reads it back. DECISIONS: From address.
 */
export function formatMailbox({ name, address }: Mailbox): string {
  if (name === null) return address
  const needsQuotes = /[()<>[\]:;@\\,."]|^ | $| {2}/.test(name)
  return `${needsQuotes ? `"${name.replace(/["\\]/g, '\\$&')}"` : name} <${address}>`
}

/** The identity of an address. Throws a RangeError on what parseAddress refuses. */
export const addressIdentity = (address: string): string => parsedAddress(address).identity

/**
 * The address as it goes into an SMTP envelope: local part as given, domain in ASCII form. Throws a RangeError on what
 * parseAddress refuses, so that nothing unchecked reaches a server.
 */
export function toWireAddress(address: string): string {
  const parsed = parsedAddress(address)
  return parsed.address.slice(0, parsed.address.lastIndexOf('@') + 1) + parsed.domain
}

/** As `parseAddress`, for text that was validated before: throws a RangeError instead of returning null. */
export function parsedAddress(address: string): Address {
  const parsed = parseAddress(address)
  if (parsed === null) throw new RangeError('not an email address')
  return parsed
}

const isAtom = (text: string): boolean => /^[\w!#$%&'*+\-/=?^`{|}~]+$/.test(text)

/** NFC and lower case, letter by letter: a word's last capital sigma must not become a final one. */
const fold = (name: string): string =>
  /^[\w.-]*$/.test(name)
    ? name.toLowerCase()
    : Array.from(name.normalize('NFC'), (letter) => letter.toLowerCase()).join('')

/**
 * Node maps far more than it should here (127.1, %65, fullwidth, cuts at a slash) and lets undecodable xn--
 * labels pass, so each label must come out as it went in, either in ASCII or in Unicode form.
 */
function idnToAscii(folded: string): string | null {
  const ascii = domainToASCII(folded)
  const asciiLabels = ascii.split('.')
  const unicodeLabels = domainToUnicode(ascii).split('.')
  const labels = folded.split('.')
  const faithful = labels.every((label, at) => {
    const coded = asciiLabels[at]
    const decoded = unicodeLabels[at]
    if (coded?.startsWith('xn--') && coded === decoded) return false
    return label === coded || label === decoded
  })
  return faithful ? ascii : null
}

/** A last label of digits or hex would be read as an IP address (WHATWG "ends in a number"). */
function isHostname(ascii: string): boolean {
  const labels = ascii.split('.')
  if (ascii.length > LONGEST_DOMAIN || labels.length < 2) return false
  if (/^(?:\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '')) return false
  return labels.every(
    (label) => /^[a-z\d-]{1,63}$/.test(label) && !label.startsWith('-') && !label.endsWith('-'),
  )
}

/** Whatever the phrase says, but for what marks an address or a quoted name (DECISIONS: From address). */
const unquotedName = (phrase: string): string | null =>
  /[<>"@]/.test(phrase) ? null : phrase.replace(/ +/g, ' ')

function quotedName(phrase: string): string | null {
  let name = ''
  for (let at = 1; at < phrase.length; at += 1) {
    const letter = phrase[at]
    if (letter === '"') return at === phrase.length - 1 ? trimBlanks(name) : null
    if (letter === '\\') at += 1
    name += phrase[at] ?? ''
  }
  return null
}

/** Spaces and tabs only: trim() would take line breaks too. A regex would be quadratic on inner runs. */
function trimBlanks(text: string): string {
  const isBlank = (at: number): boolean => text[at] === ' ' || text[at] === '\t'
  let start = 0
  let end = text.length
  while (start < end && isBlank(start)) start += 1
  while (end > start && isBlank(end - 1)) end -= 1
  return text.slice(start, end)
}
