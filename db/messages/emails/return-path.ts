/**
 * Return addresses (VERP): team id, email id and a signature in the local part, so that a bounce finds its row by
 * itself. Promises: nobody can make one up; it survives servers that fold case; nothing is stored. Must not look
 * anything up: the row may be gone. DECISIONS: Failure classes.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'
import { parseAddress } from '../../validation/address.ts'

const IDS_BYTES = 32
const SIGNATURE_BYTES = 8
const PREFIX = 'b-'
/** 40 bytes in base 36. With the prefix exactly the 64 octets that a local part may have, and safe to be folded. */
const DIGITS = 62

/** What looks like an address of ours is tried this often: each try costs a signature. */
const MAX_CANDIDATES = 200
/** A report says what it says at its beginning; the message that it returns comes last, and may be large. */
export const MAX_REPORT_BYTES = 512 * 1024

/** As a return address, or bare as X-Heliograph-Ref and CFBL-Feedback-ID have it. */
const TOKEN = new RegExp(`(?<![a-z0-9])${PREFIX}([a-z0-9]{${DIGITS}})(?![a-z0-9])`, 'gi')

type Ids = { team_id: string; id: string }

/** The signed reference to an email, the same at each call: the local part of its return address. */
export function signedReference(secrets: Secrets, { team_id, id }: Ids): string {
  const ids = Buffer.concat([parse(team_id), parse(id)])
  const bytes = Buffer.concat([ids, secrets.sign('verp', ids, SIGNATURE_BYTES)])
  const digits = BigInt(`0x${bytes.toString('hex')}`)
    .toString(36)
    .padStart(DIGITS, '0')
  return `${PREFIX}${digits}`
}

/** The email that a signed reference names; null when it is none of ours. */
export function readReference(secrets: Secrets, text: string): Ids | null {
  return text.length === PREFIX.length + DIGITS ? findReturnPath(secrets, `${text}@`) : null
}

/** The return address of an email at a domain, the same at each call; null when it would pass 254 characters. */
export function returnPath(secrets: Secrets, ids: Ids, domain: string): string | null {
  const address = `${signedReference(secrets, ids)}@${domain}`
  return parseAddress(address) === null ? null : address
}

/** The email whose return address stands first in a text, at whatever domain; null without one of ours. */
export const findReturnPath = (secrets: Secrets, text: string): Ids | null => firstOurs(secrets, text, '@')

/** The email whose signed reference is first in a text, in whatever form; null without one of ours. */
export const findReference = (secrets: Secrets, text: string): Ids | null => firstOurs(secrets, text, '')

/** @param next what has to follow it. */
function firstOurs(secrets: Secrets, text: string, next: '@' | ''): Ids | null {
  for (const { 0: token, 1: digits = '', index } of text.matchAll(TOKEN).take(MAX_CANDIDATES)) {
    const ref = text.startsWith(next, index + token.length) && readDigits(secrets, digits.toLowerCase())
    if (ref) return ref
  }
  return null
}

/**
 * Whether raw mail carries a signed reference in its first half mebibyte: what does not can never move anything.
 * Quoted-printable parts break long lines; a reference is found across such a break.
 */
export function carriesReference(secrets: Secrets, mail: Buffer): boolean {
  const text = mail.subarray(0, MAX_REPORT_BYTES).toString('latin1')
  return findReference(secrets, text.replace(/=\r?\n/g, '').replaceAll('=40', '@')) !== null
}

function readDigits(secrets: Secrets, digits: string): Ids | null {
  let number = 0n
  for (const digit of digits) number = number * 36n + BigInt(Number.parseInt(digit, 36))
  const bytes = Buffer.from(number.toString(16).padStart(2 * (IDS_BYTES + SIGNATURE_BYTES), '0'), 'hex')
  if (bytes.length !== IDS_BYTES + SIGNATURE_BYTES) return null
  const ids = bytes.subarray(0, IDS_BYTES)
  if (!secrets.verify('verp', ids, bytes.subarray(IDS_BYTES))) return null
  return { team_id: stringify(ids), id: stringify(ids, IDS_BYTES / 2) }
}
