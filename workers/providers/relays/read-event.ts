/**
 * Converts one event of a hosted relay into one neutral event. The relays share the steps here: find the email and
 * the time, and create the key that removes repeats. Only own keys of the JSON are read. An event yields nothing if
 * the relay's module doesn't list it, or if it is about email that we didn't send.
 */

import { createHash } from 'node:crypto'
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import { readReference } from '../../../db/messages/emails/return-path.ts'
import type { EmailEventKind } from '../../../db/messages/emails/status.ts'
import type { Secrets } from '../../../db/process/secrets.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { classifyFailure, type FailureReport } from '../../../db/validation/failures.ts'
import { isObject } from '../../../db/validation/fields.ts'
import { isOneOf } from '../../../db/validation/keys.ts'
import type { Relay } from '../../../db/validation/relays.ts'
import { isUuid, parseJson } from '../../../db/validation/strings.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { isMachine } from '../mail/machines.ts'
import { pausedBy, type ReportReader } from '../report.ts'

/**
 * The meaning of an event. `words` are the relay's. `blames_sender` means that nothing of ours may be sent for now.
 */
export type Finding = { kind: EmailEventKind; effect: ContactEffect; words: string; blames_sender?: true }

/** Makes the reader of events with a fixed meaning. Their message is at the first path with a value. */
export const found =
  (kind: EmailEventKind, effect: ContactEffect, ...words: readonly Path[]) =>
  (event: unknown): Finding => ({ kind, effect, words: textAt(event, ...words) })

/**
 * Returns the finding of a permanent failure, classified as on every other route.
 * @param most `soft` if the relay itself expects the next email to arrive.
 */
export function failed(words: string, said: FailureReport, most: 'hard' | 'soft' = 'hard'): Finding {
  const { about, contact } = classifyFailure(said)
  const effect = contact === 'hard' ? most : contact
  return { kind: 'bounced', effect, words, ...(about === 'sender' && { blames_sender: true }) }
}

/** Reads an unsubscribe through a relay's link or its unsubscribe list. */
export const unsubscribed = found('unsubscribed', 'unsubscribe')

/** Reads an open or a click, which scanners and Apple's proxy also cause. */
export function seen(
  kind: 'opened' | 'clicked',
  userAgent: string,
  words: string,
  isFlagged = false,
): Finding {
  const machine = isFlagged || isMachine(userAgent)
  return { kind: machine ? `machine_${kind}` : kind, effect: 'none', words }
}

export type RelayPage = {
  relay: Relay
  find(event: unknown): Finding | null
  recipient: readonly Path[]
  time: readonly Path[]
  id: readonly Path[]
  reference: readonly Path[]
  message_id: readonly Path[]
}
type Path = readonly string[]

/** An address with its mailbox's name is far shorter. */
const MAX_ADDRESS_CHARACTERS = 1_000
/** Larger numbers of seconds are milliseconds. */
const MAX_UNIX_SECONDS = 1e11

const valueAt = (event: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    event,
  )

/** Returns the text or number at the first path with a value, as text. Returns '' if all are empty. */
export function textAt(event: unknown, ...paths: readonly Path[]): string {
  for (const path of paths) {
    const value = valueAt(event, path)
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number') return String(value)
  }
  return ''
}

/** True if a flag is set. Some relays send it as text. */
export const isSet = (event: unknown, path: Path): boolean =>
  isOneOf([true, 'true', 'True'], valueAt(event, path))

export const createRelayReader =
  (page: RelayPage, secrets: Secrets, sender: string | null = null): ReportReader =>
  async ({ body, received_at }) => {
    const event = parsed(body)
    const found = page.find(event)
    const ref = found && findRef(page, event, secrets)
    if (!found || !ref) return []
    const { kind, effect, words } = found
    const recipient = bareAddress(textAt(event, ...page.recipient))
    const said = {
      occurred_at: readTime(textAt(event, ...page.time), received_at),
      detail: storableWords(`${page.relay}: ${words || kind}`),
      event_key: `${page.relay}:${kind}:${toKey(page, event, { body, recipient })}`,
    }
    return [
      { channel: 'email', ref, kind, effect, recipient, ...said, provider_message_id: null },
      ...(found.blames_sender && sender !== null ? [pausedBy(sender, said)] : []),
    ]
  }

/** @throws Error if it isn't an event. */
function parsed(body: Buffer): unknown {
  const event = parseJson(body.toString())
  if (event === undefined) throw new Error('the event is not JSON')
  if (!isObject(event)) throw new Error('the event is not an object')
  return event
}

/** Returns the email of our signed reference or of a Message-ID of our form. Null for someone else's email. */
function findRef(page: RelayPage, event: unknown, secrets: Secrets): ReportedRef | null {
  const signed = readReference(secrets, textAt(event, ...page.reference).trim())
  if (signed) return signed
  const id = textAt(event, ...page.message_id)
    .trim()
    .replace(/^<(.*)>$/, '$1')
  return isUuid(id.split('@', 1)[0] ?? '') ? { provider_message_id: id } : null
}

/** Returns the bare address of the recipient. @throws Error if the text is empty or too long. */
function bareAddress(text: string): string {
  if (text === '') throw new Error('the event has no recipient')
  if (text.length > MAX_ADDRESS_CHARACTERS) throw new Error("the recipient of the event isn't an address")
  return parseMailbox(text)?.address ?? text
}

/** Whole seconds are read as their end, so that nothing seems to precede its cause. */
function readTime(text: string, received_at: Date): Date {
  const number = Number(text)
  const ms = number < MAX_UNIX_SECONDS ? number * 1_000 + (Number.isInteger(number) ? 999 : 0) : number
  const time = new Date(text === '' || Number.isNaN(number) ? Date.parse(text) : ms)
  return Number.isNaN(time.getTime()) ? received_at : time
}

/** Identifies the event by the relay's ID and its time, or by its full content. */
function toKey(page: RelayPage, event: unknown, { body, recipient }: { body: Buffer; recipient: string }) {
  const id = textAt(event, ...page.id)
  const words = id === '' ? body : JSON.stringify([id, textAt(event, ...page.time), recipient.toLowerCase()])
  return createHash('sha256').update(words).digest('base64url')
}
