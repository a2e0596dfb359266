/**
 * Return addresses (VERP): the local part contains the team ID, email ID and a signature, so that a bounce identifies
 * its row. They can't be forged, and survive case folding. DECISIONS: Failure classes.
 */
import { parse, stringify } from 'uuid'
import type { Secrets } from '../../process/secrets.ts'
import { parseAddress } from '../../validation/address.ts'

const IDS_BYTES = 32
const SIGNATURE_BYTES = 8
const PREFIX = 'b-'
/** 40 bytes in base 36. With the prefix, exactly the 64 octets that a local part can have. */
const DIGITS = 62

/** How many possible references are checked in a text. Each check computes a signature. */
const MAX_CANDIDATES = 200
/** A report starts with its own text. The returned message comes last and may be large. */
export const MAX_REPORT_BYTES = 512 * 1024

/** As a return address, or bare as X-Heliograph-Ref and CFBL-Feedback-ID have it. */
const TOKEN = new RegExp(`(?<![a-z0-9])${PREFIX}([a-z0-9]{${DIGITS}})(?![a-z0-9])`, 'gi')

type Ids = { team_id: string; id: string }

/** Returns the signed reference to an email, which is the local part of its return address. Never changes. */
export function signedReference(secrets: Secrets, { team_id, id }: Ids): string {
  const ids = Buffer.concat([parse(team_id), parse(id)])
  const bytes = Buffer.concat([ids, secrets.sign('verp', ids, SIGNATURE_BYTES)])
  const digits = BigInt(`0x${bytes.toString('hex')}`)
    .toString(36)
    .padStart(DIGITS, '0')
  return `${PREFIX}${digits}`
}

/** Returns the email of a signed reference, or null if it isn't ours. */
export function readReference(secrets: Secrets, text: string): Ids | null {
  return text.length === PREFIX.length + DIGITS ? findReturnPath(secrets, `${text}@`) : null
}

/** Returns the return address of an email at a domain, or null if it would exceed 254 characters. */
export function returnPath(secrets: Secrets, ids: Ids, domain: string): string | null {
  const address = `${signedReference(secrets, ids)}@${domain}`
  return parseAddress(address) === null ? null : address
}

/** Finds the first return address of ours in a text, at any domain. Null without one. */
export const findReturnPath = (secrets: Secrets, text: string): Ids | null => firstOurs(secrets, text, '@')

/** Finds the first signed reference in a text, in any form. Null without one. */
export const findReference = (secrets: Secrets, text: string): Ids | null => firstOurs(secrets, text, '')

/** @param next the character that must follow, or '' for any. */
function firstOurs(secrets: Secrets, text: string, next: '@' | ''): Ids | null {
  for (const { 0: token, 1: digits = '', index } of text.matchAll(TOKEN).take(MAX_CANDIDATES)) {
    const ref = text.startsWith(next, index + token.length) && readDigits(secrets, digits.toLowerCase())
    if (ref) return ref
  }
  return null
}

/**
 * True if the first 512 KiB of a mail contain a signed reference. Other mail can't change anything. Also finds
 * references across the line breaks of quoted-printable parts.
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
