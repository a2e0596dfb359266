/** The neutral types between a WhatsApp adapter and the rest: a template message to send, and its result. */
import type { Sender } from '../../../db/delivery/senders/rate-limit.ts'
import type { TemplateState } from '../../../db/messages/whatsapp/status.ts'
import type { MediaKind } from '../../../db/messages/whatsapp/template.ts'
import type { TemplateContent } from '../../../db/messages/whatsapp/templates.sql.ts'
import type { Database } from '../../../db/postgres/pool.ts'
import type { Outcome } from '../provider.ts'

type NumberCredentials = { phone_number_id: string; access_token: string }

type AccountCredentials = { account_id: string; access_token: string }

/** A value. `name` is null if the template numbers its variables. */
export type NamedValue = { name: string | null; value: string }

export type OutgoingHeader =
  | { kind: 'text'; text: NamedValue }
  | { kind: MediaKind; url: string; file_name: string | null }
  | { kind: 'location'; latitude: string; longitude: string; name: string; address: string }

/**
 * One template message ready for the wire, with parameters in the order of their variables. `T` has the same meaning
 * as for an email.
 */
export type OutgoingWhatsapp<T extends boolean = false> = {
  test: T
  /** The number that it is sent from. The simulator's messages have none. */
  number: T extends true ? null : NumberCredentials
  deferrals: number
  team_id: string
  message_id: string
  to: string
  template: { name: string; language: string }
  header: OutgoingHeader | null
  body: readonly NamedValue[]
  /** Buttons with a value, by their index among the template's buttons, from 0. */
  buttons: readonly (NamedValue & { kind: 'url' | 'code'; place: number })[]
}

/**
 * The result of one message at one attempt, in the terms of provider.ts. `accepted` without an id means accepted with
 * an unreadable response. `wa_id` is the recipient's id if it differs from the number. A rejection has `template` if
 * the template itself is at fault, with its new state if known. A deferral with `wait_seconds` lasts at least that
 * long, and longer each time up to half an hour. `code` is the provider's error code, if the response has one.
 */
export type WhatsappOutcome = (
  | { kind: 'accepted'; detail: string; provider_message_id: string | null; wa_id?: string | null }
  | { kind: 'refused'; detail: string; template?: { status: TemplateState | null } }
  | (Extract<Outcome, { kind: 'deferred' }> & { template?: { status: TemplateState | null } })
  | Extract<Outcome, { kind: 'sender' | 'unknown' }>
) & { code?: string }

export const NUMBER_SENDERS = 'whatsapp:'

export const senderKey = (phone_number_id: string): string => `${NUMBER_SENDERS}${phone_number_id}`

/** Sends WhatsApp messages. `send` never throws: every failure is an outcome. provider.ts describes `cut`. */
export type WhatsappSending<T extends boolean> = {
  /** True if it accepts only messages of test teams, false if it accepts none of them. */
  test: T
  send(message: OutgoingWhatsapp<T>, cut?: AbortSignal): Promise<WhatsappOutcome>
}

export type WhatsappProvider = WhatsappSending<false> & {
  /** Returns every template of an account. @throws Error readable for operators. */
  listTemplates(account: AccountCredentials): Promise<TemplateContent[]>
  close(): Promise<void>
}

/** The number of the worker's settings. */
type DefaultNumber = NumberCredentials & { account_id: string | null; messages_per_second: number }

/**
 * The provider and default number of a worker. After an unknown outcome it waits this long for a report, in seconds.
 */
export type WhatsappDelivery = {
  provider: WhatsappProvider
  unknown_wait: number
  /** null if the worker has no default number and only sends from the others. */
  number: DefaultNumber | null
  /** Stores the worker's settings in the database. @throws SettingsFault if they contradict it. */
  begin(database: Database): Promise<void>
}

/** Returns how many messages of a number are with Meta at once in a process: an eighth of a second's. */
const atOnce = (messages_per_second: number): number => Math.max(2, Math.ceil(messages_per_second / 8))

/** Returns the default number as a sender. It has its own queue. */
export const defaultSender = ({ phone_number_id, messages_per_second }: DefaultNumber): Sender => ({
  key: senderKey(phone_number_id),
  ceiling: messages_per_second,
})

/** Returns another number as a sender. It shares its queue's slots with others, and leaves some for them. */
export const numberSender = (phone_number_id: string, messages_per_second: number): Sender => ({
  key: senderKey(phone_number_id),
  ceiling: messages_per_second,
  at_once: atOnce(messages_per_second),
})
