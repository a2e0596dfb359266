/**
 * What a WhatsApp adapter takes and gives back: the neutral words for a template message on its way out, and for
 * what became of it. Promises: nothing outside workers/providers knows a provider's words. Must not import an adapter.
 */
import type { Sender } from '../../../db/delivery/senders/rate-limit.ts'
import type { TemplateState } from '../../../db/messages/whatsapp/status.ts'
import type { MediaKind } from '../../../db/messages/whatsapp/template.ts'
import type { TemplateContent } from '../../../db/messages/whatsapp/templates.sql.ts'
import type { Database } from '../../../db/postgres/pool.ts'
import type { Outcome } from '../provider.ts'

/** A number, and what sends from it: without these nothing talks to Meta. */
type NumberCredentials = { phone_number_id: string; access_token: string }

/** An account whose templates can be listed. */
type AccountCredentials = { account_id: string; access_token: string }

/** A value; `name` is null where the template counts its variables. */
export type NamedValue = { name: string | null; value: string }

export type OutgoingHeader =
  | { kind: 'text'; text: NamedValue }
  | { kind: MediaKind; url: string; file_name: string | null }
  | { kind: 'location'; latitude: string; longitude: string; name: string; address: string }

/** One template message ready for the wire; parameters in the order of their slots. `T`: as of an email. */
export type OutgoingWhatsapp<T extends boolean = false> = {
  test: T
  /** The number that it is sent from; the simulator's messages have none. */
  number: T extends true ? null : NumberCredentials
  /** How often it was put off before. */
  deferrals: number
  team_id: string
  message_id: string
  /** The recipient in E.164 form. */
  to: string
  template: { name: string; language: string }
  header: OutgoingHeader | null
  body: readonly NamedValue[]
  /** Buttons that take a value, by their place among the template's buttons, from 0. */
  buttons: readonly { kind: 'url' | 'code'; place: number; value: string }[]
}

/**
 * What became of one message at one attempt, in the words of provider.ts. `accepted` without an id: taken, but the
 * answer could not be read. `wa_id`: the recipient's id, if it is another than the number. A refusal says when the
 * template itself is at fault, and its new state if it has one. A deferral with `wait_seconds` of one message alone:
 * at least so long, and longer each time. `code`: the provider's fault code, where its answer names one.
 */
export type WhatsappOutcome = (
  | { kind: 'accepted'; detail: string; provider_message_id: string | null; wa_id?: string | null }
  | { kind: 'refused'; detail: string; template?: { status: TemplateState | null } }
  | (Extract<Outcome, { kind: 'deferred' }> & { template?: { status: TemplateState | null } })
  | Extract<Outcome, { kind: 'sender' | 'unknown' }>
) & { code?: string }

/** How the keys of numbers begin. */
export const NUMBER_SENDERS = 'whatsapp:'

/** What the sends of a number share a pace under. */
export const senderKey = (phone_number_id: string): string => `${NUMBER_SENDERS}${phone_number_id}`

/** A way to send WhatsApp messages. `send` never throws: every failure is an outcome; `cut` as in provider.ts. */
export type WhatsappSending<T extends boolean> = {
  /** Whose messages it takes: test teams' alone, or never theirs. */
  test: T
  send(message: OutgoingWhatsapp<T>, cut?: AbortSignal): Promise<WhatsappOutcome>
}

export type WhatsappProvider = WhatsappSending<false> & {
  /** Every template of an account. @throws Error in words for people. */
  listTemplates(account: AccountCredentials): Promise<TemplateContent[]>
  close(): Promise<void>
}

/** The number of the worker's settings. */
type DefaultNumber = NumberCredentials & { account_id: string | null; messages_per_second: number }

/** What a worker sends with; after an unknown outcome it waits this long for a report, in seconds. */
export type WhatsappDelivery = {
  provider: WhatsappProvider
  unknown_wait: number
  /** null: the worker is not set up for it, and sends from the other numbers alone. */
  number: DefaultNumber | null
  /** Tells the database what the worker's settings say. @throws SettingsFault if they contradict what it has. */
  begin(database: Database): Promise<void>
}

/** How many messages of a number are with Meta at once in a process: an eighth of a second's. */
const atOnce = (messages_per_second: number): number => Math.max(2, Math.ceil(messages_per_second / 8))

/** The default number as a sender: it has a queue of its own. */
export const defaultSender = ({ phone_number_id, messages_per_second }: DefaultNumber): Sender => ({
  key: senderKey(phone_number_id),
  ceiling: messages_per_second,
})

/** Another number as a sender: it shares its queue's slots with others, and leaves some for them. */
export const numberSender = (phone_number_id: string, messages_per_second: number): Sender => ({
  key: senderKey(phone_number_id),
  ceiling: messages_per_second,
  at_once: atOnce(messages_per_second),
})
