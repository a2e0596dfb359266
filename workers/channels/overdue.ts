/** Ends an email that servers have deferred for too long: it bounces. Pure. DECISIONS: Temporary failures. */
import type { ContactEffect } from '../../db/audience/contacts/effect.ts'
import { RETRIES_ENDED } from '../../db/channels/email.ts'
import { classifyFailure, type FailureSubject } from '../../db/validation/failures.ts'
import { storableWords } from '../../db/validation/words.ts'
import type { JudgeContext } from '../delivery/channel.ts'
import type { Outcome } from '../providers/provider.ts'

const NOT_THE_MAILBOX: ReadonlySet<FailureSubject> = new Set(['policy', 'rate', 'sender'])

/** Returns the effect of a last response after deferrals until the deadline: at most a soft bounce. */
function effectOfLast(response: string): Extract<ContactEffect, 'soft' | 'none'> {
  // Classified as if it were permanent, because a temporary reply would be classified as an expiry.
  const final = response.replace(/^4(?=\d\d\b)/, '5').replace(/\b4(?=\.\d{1,3}\.\d{1,3}\b)/g, '5')
  return NOT_THE_MAILBOX.has(classifyFailure({ reply: final }).about) ? 'none' : 'soft'
}

/** Turns deferrals of this attempt into bounces after the email's deadline for attempts. */
export function bounceOverdue(
  outcomes: ReadonlyMap<string, Outcome>,
  { history: { since }, now }: JudgeContext,
  retryMs: number,
): ReadonlyMap<string, Outcome> {
  if (since === null || now.getTime() - Date.parse(since) <= retryMs) return outcomes
  const hours = Math.round((retryMs / 3_600_000) * 100) / 100
  return new Map(
    [...outcomes].map(([recipient, outcome]): [string, Outcome] => {
      if (outcome.kind !== 'deferred') return [recipient, outcome]
      const detail = `${RETRIES_ENDED} Still deferred after ${hours} h of attempts. Last response: ${outcome.detail}`
      return [
        recipient,
        { kind: 'refused', detail: storableWords(detail), effect: effectOfLast(outcome.detail) },
      ]
    }),
  )
}
