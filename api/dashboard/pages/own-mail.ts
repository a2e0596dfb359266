/**
 * Mail that the dashboard sends by itself: sign-in links, tests of templates, copies of emails.
 * Promises: each is accepted as a client's send is, and counts in the same figures.
 */
import { acceptEmails, type EmailOutcome } from '../../../db/messages/emails/accept.ts'
import type { EmailItem, EmailSender } from '../../../db/messages/emails/call.ts'
import { countSends } from '../../sends/count.ts'
import type { PageDeps } from '../served/deps.ts'

/** Counts an email of ours that was to be accepted. @returns its id. @throws Refusal */
export function countOwn({ metrics }: PageDeps, outcomes: readonly EmailOutcome[]): string {
  countSends(metrics, 'email', outcomes)
  for (const outcome of outcomes) if (outcome.kind === 'refused') throw outcome.refusal
  const [outcome] = outcomes
  if (outcome?.kind !== 'stored') throw new Error('an email of our own has no key, so none is a replay')
  return outcome.row.id
}

/** Sends an email in a team's name. @returns its id. @throws Refusal */
export async function sendOwn(deps: PageDeps, sender: EmailSender, item: EmailItem): Promise<string> {
  const outcomes = await deps.database.transaction((tx) => acceptEmails({ ...deps, tx }, sender, [item]))
  return countOwn(deps, outcomes)
}
