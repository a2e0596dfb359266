/** The ladder of WhatsApp statuses (DECISIONS: Statuses) and the states of a template. Pure. */
import { createLadder } from '../../channels/status-order.ts'
import { WHATSAPP_LADDER } from '../../channels/whatsapp.ts'

export type WhatsappStatus = (typeof WHATSAPP_LADDER)[number]

/** What can happen to a message; those that name a status move the row to it, the others only inform. */
export type WhatsappEventKind =
  | Exclude<WhatsappStatus, 'queued'>
  | 'accepted'
  | 'deferred'
  | 'held'
  | 'unknown'
  | 'requeued'
  | 'gave_up'

const ladder = createLadder<WhatsappStatus>(WHATSAPP_LADDER)

/** The status an event lifts its row to; `queued`, the lowest, when it moves nothing. */
export const statusOfEvent = (kind: WhatsappEventKind): WhatsappStatus => ladder.statusOf(kind)

/** The higher of two rungs: proof of delivery beats a stray failure, a late `sent` changes nothing. */
export const higherStatus = ladder.higher

/**
 * What a template can be, the least restrictive first; only an approved one is sendable (DECISIONS: Template
 * states).
 */
export const TEMPLATE_STATES = ['approved', 'pending', 'paused', 'rejected', 'disabled'] as const
export type TemplateState = (typeof TEMPLATE_STATES)[number]

/** The state that a word names, in any case; null for any other word. */
export const templateState = (word: string): TemplateState | null =>
  TEMPLATE_STATES.find((state) => state === word.toLowerCase()) ?? null
