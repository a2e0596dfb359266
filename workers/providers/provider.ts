/**
 * What a provider adapter takes and gives back.
 * Owns the neutral types for a message on its way out and for what became of it.
 * Promises: an adapter turns whatever its provider says into one of six outcomes;
 * nothing outside workers/providers knows a provider's words. Must not import an adapter.
 */
import type { KeyObject } from 'node:crypto'
import type { ContactEffect } from '../../db/audience/contacts/effect.ts'
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'

/** An adapter's `storableWords`, which knows its secrets. */
export type Describe = (words: string) => string

/** A DKIM key: the domain, the selector, and the private key, opened: a PEM would be parsed for each message. */
export type DkimKey = { domain: string; selector: string; private_key: KeyObject }

/** A file of an email, as lines of base64 without the last line break. */
export type OutgoingFile = {
  filename: string
  content_type: string
  /** What the html refers to it by: then it is shown inline. */
  content_id: string | null
  encoded: readonly Buffer[]
}

/**
 * One email ready for the wire. Recipients are only those that still have to be tried. `T`: whether it is a test
 * team's. One of those is of another type: only the simulator can be handed it (DECISIONS: Test teams).
 */
export type OutgoingEmail<T extends boolean = false> = {
  test: T
  team_id: string
  email_id: string
  /** Message-ID without angle brackets, derived from the row's id, the same at each attempt. */
  message_id: string
  /** `a@b.c` or `Name <a@b.c>`. */
  from: string
  /** For the To header. */
  to: readonly string[]
  /** For the Cc header. There is nothing for bcc: only the envelope may name those. */
  cc: readonly string[]
  /** The recipients of this attempt: the envelope, of to, cc and bcc. */
  recipients: readonly string[]
  /** The envelope sender (MAIL FROM): the address that bounces return to. */
  return_path: string
  /** What to use if the relay rejects that one, at the From domain's own return path. Null: it is not at one. */
  shared_return_path: string | null
  /** The row's signed reference, by which a report finds it. */
  reference: string
  subject: string
  html: string
  /** Plain-text alternative; '' when there is none. */
  text: string
  /** Bare reply address; '' when there is none. Wins over a Reply-To in `headers`. */
  reply_to: string
  /** Custom headers exactly as accepted. */
  headers: Readonly<Record<string, string>> | null
  /** The link of both List-Unsubscribe headers (RFC 8058); null: none but those in `headers`. */
  list_unsubscribe: string | null
  /** How often it was put off before. */
  deferrals: number
  /** When the email was accepted, or was to leave later: its Date header. */
  date: Date
  dkim: DkimKey | null
  /** The key of a second signature (RFC 8463). */
  ed25519: DkimKey | null
  files: readonly OutgoingFile[]
  /** True for an email of a broadcast. */
  is_broadcast: boolean
}

/**
 * What became of one recipient at one attempt. `detail` is the provider's words, at most 500 characters, free of
 * control characters and of secrets.
 * - accepted: the provider has taken it; `delivered` if its word is the last one about the recipient.
 * - refused: for good. `effect` is what that means for the contact: `hard` when the address is dead, `soft` when it
 *   only counts, `none` when the refusal is not about the address (DECISIONS: Delivery reports).
 * - policy: refused by the provider's policy (5.7.x, an identity that is not verified): our set-up, or this message.
 *   The delivery engine decides, by whether the provider takes other mail of ours. If so, `blames` says what becomes of
 *   this message, and of it alone: the `recipient` ends it, the `identity` (the From address or domain) lets it be
 *   tried again later. A recipient that is refused for now blames the identity too, so that it is tried again. With
 *   `trouble` it is our set-up at once where the provider has taken nothing of the sender's yet.
 * - deferred: for now, this message alone; `wait_seconds` when another try is no use before. `key`: what the response
 *   begins with, if many such responses in a row are about the sender.
 * - sender: about everything that is sent through this provider, and no try of this message. `trouble` says what:
 *   `slow` (too fast: the pace is halved), `setup` (login, relay access, account: a person has to act) or `connection`
 *   (it cannot be reached). `wait_seconds` when the provider is known to refuse all for so long.
 * - unknown: the request left but no answer came back; a second try may be a duplicate. `wait_seconds` when a report
 *   may still come for so long and spare the second try.
 */
export type Outcome =
  | { kind: 'accepted'; detail: string; delivered?: boolean }
  | { kind: 'refused'; detail: string; effect: Extract<ContactEffect, 'hard' | 'soft' | 'none'> }
  | { kind: 'policy'; detail: string; blames: 'recipient' | 'identity'; trouble?: 'setup' }
  | { kind: 'deferred'; detail: string; wait_seconds?: number; key?: string }
  | { kind: 'sender'; detail: string; trouble: SenderTrouble; wait_seconds?: number }
  | { kind: 'unknown'; detail: string; wait_seconds?: number }

/** What is wrong with everything that goes through a provider. */
export type SenderTrouble = 'slow' | 'setup' | 'connection'

/** What became of one email at one attempt: an outcome for each of its `recipients`. */
export type EmailDelivery = {
  /** The provider's id of the message; null unless a recipient was accepted. */
  provider_message_id: string | null
  outcomes: ReadonlyMap<string, Outcome>
  /** What the relay said of the From domain's own return path, if it was sent with the shared one instead. */
  rejected_return_path?: string
}

/**
 * A way to send email. `send` never throws: every failure is an outcome. `cut` ends the wait for an answer, since the
 * process has to end; what had been handed over by then is `unknown`.
 */
export type EmailProvider<T extends boolean = false> = {
  /** Whose emails it takes: test teams' alone, or never theirs. */
  test: T
  /** Whether emails are signed with our own DKIM keys; else the provider signs them itself. */
  signs: boolean
  /** How many times a message is in memory while it is sent, beside its files. */
  bufferedCopies: number
  send(email: OutgoingEmail<T>, cut?: AbortSignal): Promise<EmailDelivery>
  /** What these sends share a pace with, by its present ceiling; one send costs a token for each recipient. */
  sender(): Promise<Sender>
  /** Connects and signs in as a send would, and sends nothing. @returns what is in the way; null when nothing is. */
  check(): Promise<string | null>
  /** Lets go of pooled connections; in-flight sends finish first. */
  close(): Promise<void>
}
