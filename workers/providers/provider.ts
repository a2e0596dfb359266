/**
 * The neutral types between provider adapters and the rest: a message to send, and its result. An adapter turns every
 * response of its provider into one of six outcomes, so provider vocabulary stays in workers/providers.
 */
import type { KeyObject } from 'node:crypto'
import type { ContactEffect } from '../../db/audience/contacts/effect.ts'
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'

/** An adapter's `storableWords`, which knows its secrets. */
export type Describe = (words: string) => string

/** The domain, the selector, and the parsed private key, because a PEM would be parsed for each message. */
export type DkimKey = { domain: string; selector: string; private_key: KeyObject }

/** A file of an email, as lines of base64 without the last line break. */
export type OutgoingFile = {
  filename: string
  content_type: string
  /** The id that the html refers to it by. It is then shown inline. */
  content_id: string | null
  encoded: readonly Buffer[]
}

/**
 * One email ready for the wire, with only the remaining recipients. `T` is true for a test team's email, a different
 * type that only the simulator accepts (DECISIONS: Test teams).
 */
export type OutgoingEmail<T extends boolean = false> = {
  test: T
  team_id: string
  email_id: string
  /** Message-ID without angle brackets. It is derived from the row's id and the same at each attempt. */
  message_id: string
  /** `a@b.c` or `Name <a@b.c>`. */
  from: string
  to: readonly string[]
  /** For the Cc header. bcc recipients are only in the envelope. */
  cc: readonly string[]
  /** The recipients of this attempt: the envelope, from to, cc and bcc. */
  recipients: readonly string[]
  /** The envelope sender (MAIL FROM): the address that bounces return to. */
  return_path: string
  /** The alternative to a return path at the From domain, if the relay rejects it. May be null. */
  shared_return_path: string | null
  /** The row's signed reference, which reports are matched by. */
  reference: string
  subject: string
  html: string
  /** Plain-text alternative. '' without one. */
  text: string
  /** Bare reply address. '' without one. Overrides a Reply-To in `headers`. */
  reply_to: string
  headers: Readonly<Record<string, string>> | null
  /** The link of both List-Unsubscribe headers (RFC 8058). Null if only `headers` may have them. */
  list_unsubscribe: string | null
  deferrals: number
  /** The Date header: when the email was accepted or scheduled, or first claimed if that was much later. */
  date: Date
  dkim: DkimKey | null
  /** The key of a second signature (RFC 8463). */
  ed25519: DkimKey | null
  files: readonly OutgoingFile[]
  is_broadcast: boolean
}

/**
 * The result for one recipient at one attempt. `detail` is the provider's message: at most 500 characters,
 * without control characters or secrets.
 * - accepted: by the provider. `delivered` if no further report about the recipient follows.
 * - refused: permanently. `effect` is the effect on the contact: `hard` if the address is dead, `soft` if it
 *   only counts, `none` if the rejection isn't about the address (DECISIONS: Delivery reports).
 * - policy: rejected by the provider's policy (5.7.x, an unverified identity), because of our configuration
 *   or this message. If the provider accepts our other email, only this message is at fault, and `blames`
 *   decides: `recipient` ends it, `identity` (the From address or domain) retries it later. A temporary
 *   rejection of a recipient also blames the identity, so that it is retried. With `trouble`, our
 *   configuration is at fault at once if the provider has accepted nothing from the sender yet.
 * - deferred: temporarily, only this message. `wait_seconds` if an earlier retry is useless. `key` is the
 *   start of the response, if many such responses in a row are about the sender.
 * - sender: about everything sent through this provider, so it doesn't count as an attempt. `trouble` is
 *   `slow` (too fast, so the rate is halved), `setup` (login, relay access or account, which needs manual
 *   action) or `connection` (unreachable). `wait_seconds` if the provider is known to reject everything for
 *   that long.
 * - unknown: the request was sent but no response came back, so a retry may be a duplicate. `wait_seconds` if
 *   a report may still come for that long and make the retry unnecessary.
 */
export type Outcome =
  | { kind: 'accepted'; detail: string; delivered?: boolean }
  | { kind: 'refused'; detail: string; effect: Extract<ContactEffect, 'hard' | 'soft' | 'none'> }
  | { kind: 'policy'; detail: string; blames: 'recipient' | 'identity'; trouble?: 'setup' }
  | { kind: 'deferred'; detail: string; wait_seconds?: number; key?: string }
  | { kind: 'sender'; detail: string; trouble: SenderTrouble; wait_seconds?: number }
  | { kind: 'unknown'; detail: string; wait_seconds?: number }

export type SenderTrouble = 'slow' | 'setup' | 'connection'

/** The result of one email at one attempt: an outcome for each of its `recipients`. */
export type EmailDelivery = {
  /** The provider's id of the message. Null unless a recipient was accepted. */
  provider_message_id: string | null
  outcomes: ReadonlyMap<string, Outcome>
  /** The relay's response to the From domain's own return path, if the shared one was used instead. */
  rejected_return_path?: string
}

/**
 * Sends email. `send` never throws: every failure is an outcome. `cut` ends the wait for a response because the
 * process must exit. An email that was sent by then is `unknown`.
 */
export type EmailProvider<T extends boolean = false> = {
  /** True if it accepts only emails of test teams, false if it accepts none of them. */
  test: T
  /** True if our DKIM keys sign its emails. Otherwise the provider signs them. */
  signs: boolean
  /** How many copies of a message are in memory while it is sent, files not counted. */
  bufferedCopies: number
  send(email: OutgoingEmail<T>, cut?: AbortSignal): Promise<EmailDelivery>
  /** Returns the sender whose rate limit these sends share. One send costs a token per recipient. */
  sender(): Promise<Sender>
  /** Connects and signs in like a send, but sends nothing. @returns the error, or null. */
  check(): Promise<string | null>
  /** Closes connections after sends in progress have ended. */
  close(): Promise<void>
}
