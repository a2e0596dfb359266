/**
 * Giving up on a WhatsApp message: what its timeline says when no more attempts are made.
 * Promises: told once for each time that it was accepted or requeued, whoever notices first. The row stays queued.
 */

import type { Tx } from '../postgres/pool.ts'
import { NO_ANSWER } from '../queue/jobs.ts'
import { insertWhatsappEvents, type WhatsappEvent } from './events.sql.ts'
import type { MessageRef } from './messages.sql.ts'
import { messagesGivenUp } from './requeue.sql.ts'

/** The event that tells of it. `since`: when the message was accepted, or requeued last. */
export const messageGaveUp = (
  { team_id, message_id, since }: MessageRef & { since: string },
  detail: string,
  now: Date,
): WhatsappEvent => ({
  team_id,
  message_id,
  event_key: `gave_up:${since}`,
  kind: 'gave_up',
  occurred_at: now,
  detail,
})

/** Tells of messages whose job became a dead letter without a word, up to `limit`. @returns how many. */
export async function noteMessagesGivenUp(
  { tx, now }: { tx: Tx; now: Date },
  limit: number,
): Promise<number> {
  const messages = await messagesGivenUp(tx, limit)
  if (messages.length === 0) return 0
  const events = messages.map(({ reason, ...message }) => messageGaveUp(message, reason ?? NO_ANSWER, now))
  return (await insertWhatsappEvents(tx, events)).length
}
