/**
 * Rules for the name, type and base64 content of an attachment, linear in the input. A valid name or type can't start
 * another header and can't disguise its extension. Base64 is strict, so that we never store bytes that the sender
 * didn't mean.
 */
import { utf8Bytes } from './strings.ts'

/** Bytes per chunk of a stored file. A chunk encodes to complete base64 lines of 76 characters. */
export const CHUNK = 57 * 4_600

/** True if an email with these files is large. Large emails never delay other email. */
export const isLarge = (files: readonly { size: number }[] | null): boolean =>
  files !== null && files.reduce((sum, { size }) => sum + size, 0) > CHUNK

const LONGEST_FILENAME = 255
const LONGEST_TYPE = 255

/** Control characters, line separators and marks of writing direction. */
const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u

export const normalizedName = (name: string): string => name.normalize('NFC')

/** Returns the error of a file name, or null. */
export function filenameFault(name: string): string | null {
  const size = utf8Bytes(normalizedName(name))
  if (size < 1 || size > LONGEST_FILENAME) return `must have 1 to ${LONGEST_FILENAME} bytes in UTF-8`
  if (/[/\\]/.test(name)) return 'must be a file name without a path (no / and no \\)'
  // Some programs decode RFC 2047 encoding, and would show another name.
  if (name.includes('=?')) return 'must not contain "=?", which starts an encoded word'
  if (HIDDEN.test(name)) return 'must not contain control or bidirectional control characters'
  return name === '.' || name === '..' ? 'must be the name of a file' : null
}

/** Invisible characters, which many programs drop. */
const UNSEEN = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu

/** Returns the lower-case extension without its dot, or ''. Ignores spaces and dots after it. */
export function extensionOf(name: string): string {
  let end = name.length
  while (end > 0 && /[\s.]/.test(name[end - 1] ?? '')) end -= 1
  const dot = name.lastIndexOf('.', end - 1)
  return dot < 0 || end === 0 ? '' : name.slice(dot + 1, end).toLowerCase()
}

/**
 * Returns every extension that some program may see in a name: without invisible characters, with compatibility forms
 * of letters replaced, and for each part before or after a colon (NTFS streams).
 */
export function extensionsIn(name: string): string[] {
  const parts = name.normalize('NFKC').replace(UNSEEN, '').split(':')
  return [...new Set(parts.map((part) => extensionOf(part)))]
}

/** Quoted values can contain semicolons. */
const MEDIA_TYPE =
  /^ *[!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+(?: *; *[!#$%&'*+.^_`|~\w-]+=(?:[!#$%&'*+.^_`|~\w-]+|"[ !#-[\]-~]*"))* *$/

/** Returns the error of a media type, or null. */
export function contentTypeFault(given: string): string | null {
  if (given.length > LONGEST_TYPE || !MEDIA_TYPE.test(given))
    return `must be type/subtype, optionally with parameters, and have at most ${LONGEST_TYPE} ASCII characters`
  return isComposite(given.trim()) ? 'must not be multipart or message' : null
}

export const isComposite = (type: string): boolean => /^(multipart|message)\//i.test(type)

const withoutBreaks = (text: string): string => (/[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, '') : text)

/** Returns the error of base64 content, or null. */
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
  return Buffer.from(last, 'base64').toString('base64') === last
    ? null
    : 'must be valid base64. Its last characters are wrong'
}

export const base64Bytes = (text: string): Buffer => Buffer.from(withoutBreaks(text), 'base64')

/** The size of content in a message, in base64 lines. */
export const encodedSize = (size: number): number => 4 * Math.ceil(size / 3) + 2 * Math.ceil(size / 57)
