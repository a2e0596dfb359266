/**
 * Giving up on an email: what its timeline says when no more attempts are made (decisions: refused for now).
 * Promises: told once for each time that it was accepted or requeued, whoever notices first. The row stays queued.
 */
import type { Tx } from '../postgres/pool.ts'
import { NO_ANSWER } from '../queue/jobs.ts'
import type { EmailRef } from './emails.sql.ts'
import { type EmailEvent, insertEmailEvents } from './events.sql.ts'
import { emailsGivenUp } from './requeue.sql.ts'

/** The event that tells of it. `since`: when the email was accepted, or requeued last. */
export const emailGaveUp = (
  { team_id, email_id, since }: EmailRef & { since: string },
  detail: string,
  now: Date,
): EmailEvent => ({
  team_id,
  email_id,
  event_key: `gave_up:${since}`,
  kind: 'gave_up',
  recipient: null,
  occurred_at: now,
  detail,
})

/** Tells of emails whose job became a dead letter without a word, up to `limit`. @returns how many. */
export async function noteEmailsGivenUp({ tx, now }: { tx: Tx; now: Date }, limit: number): Promise<number> {
  const emails = await emailsGivenUp(tx, limit)
  if (emails.length === 0) return 0
  const events = emails.map(({ reason, ...email }) => emailGaveUp(email, reason ?? NO_ANSWER, now))
  return (await insertEmailEvents(tx, events)).length
}
