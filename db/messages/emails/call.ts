/** A call to send emails, as accepting takes it: who sends, and what. Types alone. */
import type { Mailbox } from '../../validation/address.ts'
import type { When } from '../../validation/moments.ts'

/**
 * Who sends: the team, the domain its key is bound to (null when it is not), and the id of the HTTP request, if
 * any.
 */
export type EmailSender = {
  team_id: string
  domain: string | null
  http_request_id?: string
  /** Set when a broadcast sends: then the emails are its own, wait in its queue, and take nothing from the rate. */
  broadcast_id?: string
  /** The version of the template that is sent, when it is not the one that the template has now. */
  version?: { version_id: string; slots: readonly string[] }
  /** true: they came as a batch, and wait in a line of their own, so that the team's single sends pass them. */
  batch?: true
  /** false: they take nothing from the rate either. */
  rated?: false
  /** true: they are mail of ours, in no list, figure, export or webhook of the team. */
  internal?: true
}

/** What an email carries, as its row shows it. */
export type EmailFile = {
  filename: string
  content_type: string
  size: number
  content_id: string | null
  /** In lower-case hex. */
  sha256: string
}

/** What a new email is to carry: a stored content, or the id of an upload that does not exist. */
export type ItemFile =
  | (EmailFile & {
      /** The id of its bytes, where this call brings them. */
      loaded: string | null
    })
  | { missing: string }

/** An email whose fields are valid by themselves. `html` counts only without a template. */
export type EmailItem = {
  /** Where it lies in the call, such as `emails[3].`, for messages that name its fields; '' for a single send. */
  path: string
  from: Mailbox
  to: readonly string[]
  cc?: readonly string[]
  bcc?: readonly string[]
  subject: string
  html: string | null
  template_id: string | null
  variables: Readonly<Record<string, string>> | null
  text: string | null
  headers: Record<string, string> | null
  reply_to: string
  tags: readonly string[]
  idempotency_key: string | null
  /** Of a broadcast: the stored contact that it is for, known beforehand. */
  contact_id?: string
  /** Whose it is, by identity: of a broadcast and of its tests alone, so that nobody gets one twice. */
  person?: string
  attachments?: readonly ItemFile[]
  /** Without it, it goes at once and does not expire. */
  when?: When
}

/** One call: a single send has one item, a batch up to a hundred. */
export type EmailCall = { sender: EmailSender; items: readonly EmailItem[] }
