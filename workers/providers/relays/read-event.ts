/**
 * One event of a hosted relay → one neutral event. What the four have in common: how the email is found, when it
 * happened, and what makes a repeat of it fall away.
 * Promises: pure but for the secrets that the reference was signed with; only own keys of the JSON are looked at; an
 * event that the relay's page does not name, or that is about mail of somebody else's, gives nothing.
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
import type { Relay } from '../../../db/validation/relays.ts'
import { isUuid, jsonOf } from '../../../db/validation/strings.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { isMachine } from '../mail/machines.ts'
import { pausedBy, type ReportReader } from '../report.ts'

/** What an event means; `words` are the relay's. `blames_sender`: nothing of ours may be sent for now. */
export type Finding = { kind: EmailEventKind; effect: ContactEffect; words: string; blames_sender?: true }

/** The finding of events that mean one thing always; their words stand at the first of the paths that has any. */
export const found =
  (kind: EmailEventKind, effect: ContactEffect, ...words: readonly Path[]) =>
  (event: unknown): Finding => ({ kind, effect, words: textAt(event, ...words) })

/**
 * The finding of a failure for good, as every other route classifies it.
 * @param most `soft` where the relay itself expects the next email to arrive.
 */
export function failed(words: string, said: FailureReport, most: 'hard' | 'soft' = 'hard'): Finding {
  const { about, contact } = classifyFailure(said)
  const effect = contact === 'hard' ? most : contact
  return { kind: 'bounced', effect, words, ...(about === 'sender' && { blames_sender: true }) }
}

/** The finding of a relay's unsubscribe link, or of its list of those who used it. */
export const unsubscribed = found('unsubscribed', 'unsubscribe')

/** The finding of an open or a click, which scanners and Apple's proxy make as well. */
export function seen(
  kind: 'opened' | 'clicked',
  userAgent: string,
  words: string,
  isFlagged = false,
): Finding {
  const machine = isFlagged || isMachine(userAgent)
  return { kind: machine ? `machine_${kind}` : kind, effect: 'none', words }
}

/** Where a relay's events say what. */
export type RelayPage = {
  relay: Relay
  /** Null for what moves nothing. */
  find(event: unknown): Finding | null
  recipient: readonly Path[]
  time: readonly Path[]
  /** The relay's id of the event, where it gives one. */
  id: readonly Path[]
  /** Where it repeats the signed reference, and where the Message-ID. */
  reference: readonly Path[]
  message_id: readonly Path[]
}
type Path = readonly string[]

/** An address with its mailbox's name is far shorter. */
const MAX_ADDRESS_CHARACTERS = 1_000
/** Later numbers of seconds than this are milliseconds. */
const MAX_UNIX_SECONDS = 1e11

/** The value at a path of own keys; undefined where there is none. */
const valueAt = (event: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    event,
  )

/** The text or number at the first of the paths that has any, as text; '' without one. */
export function textAt(event: unknown, ...paths: readonly Path[]): string {
  for (const path of paths) {
    const value = valueAt(event, path)
    if (typeof value === 'string' && value !== '') return value
    if (typeof value === 'number') return String(value)
  }
  return ''
}

/** Whether a flag is set, which some send in words. */
export const isSet = (event: unknown, path: Path): boolean =>
  [true, 'true', 'True'].includes(valueAt(event, path) as string | boolean)

export const createRelayReader =
  (page: RelayPage, secrets: Secrets, sender: string | null = null): ReportReader =>
  async ({ body, received_at }) => {
    const event = parsed(body)
    const found = page.find(event)
    const ref = found && refOf(page, event, secrets)
    if (!found || !ref) return []
    const { kind, effect, words } = found
    const recipient = bareAddress(textAt(event, ...page.recipient))
    const said = {
      occurred_at: timeOf(textAt(event, ...page.time), received_at),
      detail: storableWords(`${page.relay}: ${words || kind}`),
      event_key: `${page.relay}:${kind}:${keyOf(page, event, { body, recipient })}`,
    }
    return [
      { channel: 'email', ref, kind, effect, recipient, ...said, provider_message_id: null },
      ...(found.blames_sender && sender !== null ? [pausedBy(sender, said)] : []),
    ]
  }

/** @throws Error when it is no event. */
function parsed(body: Buffer): unknown {
  const event = jsonOf(body.toString())
  if (event === undefined) throw new Error('the event is not JSON')
  if (!isObject(event)) throw new Error('the event is not an object')
  return event
}

/** The email that we signed for, or the one whose Message-ID is of our form; null for mail of somebody else's. */
function refOf(page: RelayPage, event: unknown, secrets: Secrets): ReportedRef | null {
  const signed = readReference(secrets, textAt(event, ...page.reference).trim())
  if (signed) return signed
  const id = textAt(event, ...page.message_id)
    .trim()
    .replace(/^<(.*)>$/, '$1')
  return isUuid(id.split('@', 1)[0] ?? '') ? { provider_message_id: id } : null
}

/** @throws Error when there is none. */
function bareAddress(text: string): string {
  if (text === '') throw new Error('the event names no recipient')
  if (text.length > MAX_ADDRESS_CHARACTERS) throw new Error('the event names a recipient that is no address')
  return parseMailbox(text)?.address ?? text
}

/** Whole seconds stand for their end, so that nothing seems to come before what led to it. */
function timeOf(text: string, received_at: Date): Date {
  const number = Number(text)
  const ms = number < MAX_UNIX_SECONDS ? number * 1_000 + (Number.isInteger(number) ? 999 : 0) : number
  const time = new Date(text === '' || Number.isNaN(number) ? Date.parse(text) : ms)
  return Number.isNaN(time.getTime()) ? received_at : time
}

/** What makes it this event and no other: the relay's id with its time, or all that it says. */
function keyOf(
  page: RelayPage,
  event: unknown,
  { body, recipient }: { body: Buffer; recipient: string },
): string {
  const id = textAt(event, ...page.id)
  const words = id === '' ? body : JSON.stringify([id, textAt(event, ...page.time), recipient.toLowerCase()])
  return createHash('sha256').update(words).digest('base64url')
}
