/** A call to send emails, as accepting expects it: the sender and the emails. Types only. */
import type { Mailbox } from '../../validation/address.ts'
import type { When } from '../../validation/moments.ts'

/** The team, the domain that its key is limited to (or null), and the ID of the HTTP request, if any. */
export type EmailSender = {
  team_id: string
  domain: string | null
  http_request_id?: string
  /** Set if a broadcast sends. Its emails have their own queue and don't use the rate limit. */
  broadcast_id?: string
  /** The version of the template to send, if not the current one. */
  version?: { version_id: string; slots: readonly string[] }
  /** True for a batch. Its emails have their own lane, so that the team's single sends pass them. */
  batch?: true
  /** False: exempt from the rate limit. */
  rated?: false
  /** True for our own email. It appears in no list, stats, export or webhook of the team. */
  internal?: true
}

export type EmailFile = {
  filename: string
  content_type: string
  size: number
  content_id: string | null
  /** In lower-case hex. */
  sha256: string
}

/** An attachment of a new email: a stored content, or the ID of an upload that doesn't exist. */
export type ItemFile =
  | (EmailFile & {
      /** The ID of its content, if this call adds it. */
      loaded: string | null
    })
  | { missing: string }

/** An email whose fields are valid by themselves. `html` counts only without a template. */
export type EmailItem = {
  /** The item's path in the call, such as `emails[3].`, for errors about its fields. '' for a single send. */
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
  contact_id?: string
  /** The identity of the recipient, for broadcasts and their tests, so that no one receives one twice. */
  person?: string
  attachments?: readonly ItemFile[]
  /** Without it, it is sent at once and does not expire. */
  when?: When
}

/** A single send has one item, a batch up to 100. */
export type EmailCall = { sender: EmailSender; items: readonly EmailItem[] }
