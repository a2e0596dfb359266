/** The order of WhatsApp statuses (DECISIONS: Statuses), and the states of a template. Pure. */
import { createLadder } from '../../channels/status-order.ts'
import { WHATSAPP_LADDER } from '../../channels/whatsapp.ts'

export type WhatsappStatus = (typeof WHATSAPP_LADDER)[number]

/** The events of a message. Those that name a status can raise it. The others are for information. */
export type WhatsappEventKind =
  | Exclude<WhatsappStatus, 'queued'>
  | 'accepted'
  | 'deferred'
  | 'held'
  | 'unknown'
  | 'requeued'
  | 'gave_up'

const ladder = createLadder<WhatsappStatus>(WHATSAPP_LADDER)

/** Returns the status that an event can raise its row to, or `queued`, the lowest. */
export const statusOfEvent = (kind: WhatsappEventKind): WhatsappStatus => ladder.statusOf(kind)

/** Returns the higher of two statuses. Proof of delivery overrides a failure, and a late `sent` changes nothing. */
export const higherStatus = ladder.higher

/**
 * The states of a template, least restrictive first. Only approved templates can be sent (DECISIONS: Template
 * states).
 */
export const TEMPLATE_STATES = ['approved', 'pending', 'paused', 'rejected', 'disabled'] as const
export type TemplateState = (typeof TEMPLATE_STATES)[number]

/** Parses a state in any case. Null for any other word. */
export const templateState = (word: string): TemplateState | null =>
  TEMPLATE_STATES.find((state) => state === word.toLowerCase()) ?? null
