/**
 * The format of API keys (`hg_…`) and session tokens (`hgs_…`): 32 random bytes in base62 and a checksum, so that a
 * mistyped one is rejected without a query (DECISIONS: Key format).
 */
import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type CredentialKind = 'key' | 'session'

const PREFIX = { key: 'hg_', session: 'hgs_' } as const
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
// 62^43 > 2^256 and 62^6 > 2^32.
const BODY_LENGTH = 43
const CHECKSUM_LENGTH = 6
const FORM = /^(hgs?_)([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/

function base62(value: bigint, length: number): string {
  let rest = value
  let text = ''
  for (let index = 0; index < length; index++) {
    text = ALPHABET.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

const checksum = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_LENGTH)

/** Creates a credential. It is shown once. Store its `credentialHash` and `displayPrefix`. */
export function makeCredential(kind: CredentialKind): string {
  const body = PREFIX[kind] + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), BODY_LENGTH)
  return body + checksum(body)
}

/** Returns the kind of a well-formed credential, or null. */
export function credentialKind(text: string): CredentialKind | null {
  const [, prefix, body, tail] = FORM.exec(text) ?? []
  if (prefix === undefined || body === undefined || checksum(prefix + body) !== tail) return null
  return prefix === PREFIX.key ? 'key' : 'session'
}

/** Returns the SHA-256 of a credential, the only part that is stored. */
export const credentialHash = (text: string): Buffer => createHash('sha256').update(text).digest()

const DISPLAY_LENGTH = 10

/** The first characters, to tell keys apart in lists. */
export const displayPrefix = (text: string): string => text.slice(0, DISPLAY_LENGTH)

const DISPLAYED = /^(hgs?_)[0-9A-Za-z]+$/

/** Returns the kind of the credential with this display prefix, or null for another text. */
export function prefixKind(text: string): CredentialKind | null {
  const [, prefix] = text.length === DISPLAY_LENGTH ? (DISPLAYED.exec(text) ?? []) : []
  return prefix === undefined ? null : prefix === PREFIX.key ? 'key' : 'session'
}
