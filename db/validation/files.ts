/**
 * What an attachment may be called, what type it may have, and how its content is written in JSON. Pure.
 * Promises: a name or type that passes can start no header of its own and misleads nobody about its ending; strict
 * base64, so that nothing is stored that the sender did not mean. Linear in the input.
 */
import { lookup } from 'mime-types'
import { utf8Bytes } from './strings.ts'

/** Bytes that a chunk of a file holds: it encodes to whole lines of 76 characters. */
export const CHUNK = 57 * 4_600

/** Whether a mail with these files is large: then it goes out beside all other mail, never before it. */
export const isLarge = (files: readonly { size: number }[] | null): boolean =>
  files !== null && files.reduce((sum, { size }) => sum + size, 0) > CHUNK

const LONGEST_FILENAME = 255
const LONGEST_TYPE = 255

/** Controls, line separators, and the marks that change the direction of writing. */
const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

/** A name as it is stored: one form for each. */
export const normalizedName = (name: string): string => name.normalize('NFC')

/** What a name must be and is not; null when it will do. */
export function filenameFault(name: string): string | null {
  const size = utf8Bytes(normalizedName(name))
  if (size < 1 || size > LONGEST_FILENAME) return `must have 1 to ${LONGEST_FILENAME} bytes in UTF-8`
  if (/[/\\]/.test(name)) return 'must be a file name without a path (no / and no \\)'
  // Programs decode it where we do not, and see another name.
  if (name.includes('=?')) return 'must not contain =?, which starts an encoded word'
  if (HIDDEN.test(name)) return 'must not contain control or bidirectional control characters'
  return name === '.' || name === '..' ? 'must be the name of a file' : null
}

/** What no reader sees, and many a program drops. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/** The ending of a name, in lower case and without its dot; '' for none. Blanks and dots after it do not hide it. */
function extensionOf(name: string): string {
  let end = name.length
  while (end > 0 && /[\s.]/.test(name[end - 1] ?? '')) end -= 1
  const dot = name.lastIndexOf('.', end - 1)
  return dot < 0 || end === 0 ? '' : name.slice(dot + 1, end).toLowerCase()
}

/**
 * Each ending that a name may have for some program: what is unseen in it and other forms of its letters hide none, nor
 * does a stream of NTFS behind it.
 */
export function endingsOf(name: string): string[] {
  const parts = name.normalize('NFKC').replace(UNSEEN, '').split(':')
  return [...new Set(parts.map((part) => extensionOf(part)))]
}

/** A quoted value may hold a semicolon. */
const MEDIA_TYPE =
  /^ *[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+(?: *; *[!#$%&'*+.^_`|~\w-]+=(?:[!#$%&'*+.^_`|~\w-]+|"[ !#-[\]-~]*"))* *$/

/** What a type must be and is not; null when it will do. */
export function contentTypeFault(given: string): string | null {
  if (given.length > LONGEST_TYPE || !MEDIA_TYPE.test(given))
    return `must be type/subtype, optionally with parameters, and have at most ${LONGEST_TYPE} ASCII characters`
  return isComposite(given.trim()) ? 'must not be multipart or message' : null
}

const isComposite = (type: string): boolean => /^(multipart|message)\//i.test(type)

const ANY_TYPE = 'application/octet-stream'

/** The type that a name's ending stands for. */
export function typeOfName(name: string): string {
  const known = lookup(extensionOf(name))
  return known === false || isComposite(known) ? ANY_TYPE : known
}

const withoutBreaks = (text: string): string => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, '') : text)

/** What content must be and is not; null when it will do. */
export function base64Fault(text: string): string | null {
  const bare = withoutBreaks(text)
  if (bare === '') return 'must have at least 1 byte'
  if (/^data:/i.test(bare)) return 'must be base64 without a data: prefix'
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(bare)) {
    return /^[\w-]+={0,2}$/.test(bare)
      ? 'must be base64 of the standard alphabet (+ and /), not base64url'
      : 'must be base64'
  }
  if (bare.length % 4 !== 0) return 'must be base64 with its padding'
  const last = bare.slice(-4)
  return Buffer.from(last, 'base64').toString('base64') === last ? null : 'must be base64 of whole bytes'
}

export const base64Bytes = (text: string): Buffer => Buffer.from(withoutBreaks(text), 'base64')

/** How many bytes a content takes in a message, in lines of base64. */
export const encodedSize = (size: number): number => 4 * Math.ceil(size / 3) + 2 * Math.ceil(size / 57)
