/**
 * Parses email addresses: one bare address or one mailbox per string, never a list (DECISIONS: Email addresses). Runs
 * in linear time and looks nothing up. No parsed address contains CR, LF, NUL, a comma, colon, semicolon or angle
 * bracket, and no parsed name contains a control character. A result can therefore not inject anything into an SMTP
 * command or a header.
 */
import { domainToASCII, domainToUnicode } from 'node:url'
import { codePoints } from './strings.ts'

/**
 * `address` is trimmed but otherwise as given. `domain` is in lower-case ASCII (punycode). `identity` is the same for
 * all spellings of an address: lower case, with the domain in ASCII (DECISIONS: Identity).
 */
export type Address = { address: string; domain: string; identity: string }

/** An address and an optional display name. The name is never empty. */
export type Mailbox = Readonly<{ name: string | null; address: string; domain: string }>

/** In code points. Leaves space for the address in a header line. */
export const LONGEST_NAME = 256
const LONGEST_ADDRESS = 254
const LONGEST_LOCAL_PART = 64
const LONGEST_DOMAIN = 253

/**
 * Converts a DNS name of at least two labels to lower-case ASCII, or returns null. Rejects trailing dots,
 * underscores, IP addresses, ports, and spellings that IDNA would silently map to another name (fullwidth, soft
 * hyphen, %). DECISIONS: Email addresses, From domain.
 */
export function domainToAscii(name: string): string | null {
  if (codePoints(name) > LONGEST_DOMAIN) return null
  const folded = fold(name)
  const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')
  const ascii = plain ? folded : idnToAscii(folded)
  return ascii !== null && isHostname(ascii) ? ascii : null
}

/**
 * Parses a bare address with optional spaces and tabs around it, or returns null. The local part is an ASCII dot-atom
 * of at most 64 characters (RFC 5321). The address has at most 254 characters, both as given and in ASCII. DECISIONS:
 * Email addresses, Sizes.
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

/** A small cache, because one send parses each of its addresses several times. */
const lately = new Map<string, Mailbox | null>()
const MAX_PARSED = 500
const LONGEST_PARSED = 400

/**
 * Parses one mailbox, `a@b.c`, `<a@b.c>`, `Name <a@b.c>` or `"Quoted \"Name" <a@b.c>`, or returns null.
 * Unquoted names can contain dots and non-ASCII characters. Runs of spaces in them become one space, as in
 * RFC 5322. Rejects groups, lists, routes, comments and trailing text.
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
 * Formats a mailbox as `a@b.c` or `Name <a@b.c>`. Quotes the name only if RFC 5322 requires it or spaces would be
 * lost. `parseMailbox` parses the result. DECISIONS: From address.
 */
export function formatMailbox({ name, address }: Mailbox): string {
  if (name === null) return address
  const needsQuotes = /[()<>[\]:;@\\,."]|^ | $| {2}/.test(name)
  return `${needsQuotes ? `"${name.replace(/["\\]/g, '\\$&')}"` : name} <${address}>`
}

/** Returns the identity of an address. @throws RangeError if `parseAddress` would return null. */
export const addressIdentity = (address: string): string => parsedAddress(address).identity

/**
 * Formats an address for the SMTP envelope: the local part as given, the domain in ASCII.
 * @throws RangeError if `parseAddress` would return null, so no unchecked text reaches a server.
 */
export function toWireAddress(address: string): string {
  const parsed = parsedAddress(address)
  return parsed.address.slice(0, parsed.address.lastIndexOf('@') + 1) + parsed.domain
}

/** Parses text that was already validated. @throws RangeError if `parseAddress` would return null. */
export function parsedAddress(address: string): Address {
  const parsed = parseAddress(address)
  if (parsed === null) throw new RangeError('not an email address')
  return parsed
}

const isAtom = (text: string): boolean => /^[\w!#$%&'*+\-/=?^`{|}~]+$/.test(text)

/** Applies NFC and lower-cases each letter separately, because `toLowerCase` turns a last sigma into a final one. */
const fold = (name: string): string =>
  /^[\w.-]*$/.test(name)
    ? name.toLowerCase()
    : Array.from(name.normalize('NFC'), (letter) => letter.toLowerCase()).join('')

/**
 * Converts a domain to ASCII, or returns null. Node maps too much (127.1, %65, fullwidth, cuts at a slash) and
 * accepts `xn--` labels that it can't decode. So each label must come out unchanged, in its ASCII or Unicode form.
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

/** Rejects a last label of digits or hex, which would be parsed as an IP address (WHATWG "ends in a number"). */
function isHostname(ascii: string): boolean {
  const labels = ascii.split('.')
  if (ascii.length > LONGEST_DOMAIN || labels.length < 2) return false
  if (/^(?:\d+|0x[\da-f]*)$/.test(labels.at(-1) ?? '')) return false
  return labels.every(
    (label) => /^[a-z\d-]{1,63}$/.test(label) && !label.startsWith('-') && !label.endsWith('-'),
  )
}

/** Accepts any phrase without the characters that delimit an address or a quoted name (DECISIONS: From address). */
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

/**
 * Trims only spaces and tabs, because `trim()` also removes line breaks. A regex would be quadratic on inner runs.
 */
function trimBlanks(text: string): string {
  const isBlank = (at: number): boolean => text[at] === ' ' || text[at] === '\t'
  let start = 0
  let end = text.length
  while (start < end && isBlank(start)) start += 1
  while (end > start && isBlank(end - 1)) end -= 1
  return text.slice(start, end)
}
