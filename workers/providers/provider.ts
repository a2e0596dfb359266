/**
 * What a provider adapter takes and gives back.
 * Owns the neutral words for a message on its way out and for what became of it.
 * Promises: whatever a provider says is turned into one of four outcomes before it leaves an adapter;
 * nothing outside workers/providers knows a provider's words. Must not import an adapter.
 */
import type { KeyObject } from 'node:crypto'
import type { Sender } from '../../db/senders/pace.ts'

/** An adapter's `storableWords`, which knows its secrets. */
export type Describe = (words: string) => string

/** A DKIM key: the domain, the selector, and the private key, opened: a PEM would be parsed for each message. */
export type DkimKey = { domain: string; selector: string; private_key: KeyObject }

/** One email ready for the wire. Recipients are only those that still have to be tried. */
export type OutgoingEmail = {
  team_id: string
  email_id: string
  /** Message-ID without angle brackets, derived from the row's id, the same at each attempt. */
  message_id: string
  /** `a@b.c` or `Name <a@b.c>`. */
  from: string
  /** All recipients, for the To header. */
  to: readonly string[]
  /** The recipients of this attempt: the SMTP envelope, a subset of `to`. */
  recipients: readonly string[]
  /** The envelope sender (MAIL FROM): the address that bounces return to. */
  return_path: string
  subject: string
  html: string
  /** Plain-text alternative; '' when there is none. */
  text: string
  /** Bare reply address; '' when there is none. Wins over a Reply-To in `headers`. */
  reply_to: string
  /** Custom headers exactly as accepted. */
  headers: Readonly<Record<string, string>> | null
  /** When the email was accepted: its Date header. */
  date: Date
  dkim: DkimKey | null
}

/**
 * What became of one recipient at one attempt. `detail` is the provider's words, at most 500 characters,
 * free of control characters and of secrets.
 * - accepted: the provider has taken it.
 * - refused: for good; `suppress` when the address itself is dead (a permanent bounce, decisions: delivery reports).
 * - deferred: for now; `wait_seconds` when it is known for how long another try is no use; `sender_wide` when this
 *   is about everything sent through this provider, which is then slowed, or paused for the `wait_seconds`.
 * - unknown: the request left but no answer came back; a second try may be a duplicate. `wait_seconds` when the
 *   provider reports what it takes: for so long such a report may still come and spare the second try.
 */
export type Outcome =
  | { kind: 'accepted'; detail: string }
  | { kind: 'refused'; detail: string; suppress: boolean }
  | { kind: 'deferred'; detail: string; wait_seconds?: number; sender_wide?: boolean }
  | { kind: 'unknown'; detail: string; wait_seconds?: number }

/** What became of one email at one attempt: an outcome for each of its `recipients`. */
export type EmailDelivery = {
  /** The provider's id of the message; null unless a recipient was accepted. */
  provider_message_id: string | null
  outcomes: ReadonlyMap<string, Outcome>
}

/** A way to send email. `send` never throws: every failure is an outcome. */
export type EmailProvider = {
  send(email: OutgoingEmail): Promise<EmailDelivery>
  /** What these sends share a pace with, by its present ceiling; one send costs a token for each recipient. */
  sender(): Promise<Sender>
  /** Lets go of pooled connections; in-flight sends finish first. */
  close(): Promise<void>
}
