/**
 * Giving up on an email: what its timeline says when no more attempts are made (decisions: refused for now).
 * Promises: told once for each time that it was accepted or requeued, whoever notices first. The row stays queued.
 */
import type { Tx } from '../pool.ts'
import { emailsGivenUp } from './requeue/table.ts'
import { type EmailEvent, insertEvents } from './table.ts'

const LOT = 1_000

/** The event that tells of it. `since`: when the email was accepted, or requeued last. */
export const gaveUp = (
  email: { team_id: string; email_id: string; since: string },
  detail: string,
  now: Date,
): EmailEvent => ({
  ...{ team_id: email.team_id, email_id: email.email_id, event_key: `gave_up:${email.since}` },
  ...{ kind: 'gave_up', recipient: null, occurred_at: now, detail },
})

/** Tells of up to a thousand emails whose job became a dead letter without a word: its workers died over it. */
export async function noteGivenUp(tx: Tx, now: Date): Promise<number> {
  const emails = await emailsGivenUp(tx, LOT)
  if (emails.length === 0) return 0
  const events = emails.map(({ reason, ...email }) =>
    gaveUp(email, reason ?? 'each attempt ended without an answer from its worker', now),
  )
  return (await insertEvents(tx, events)).length
}
