/** Emails that the dashboard sends: sign-in links, tests and copies, accepted and counted like those of clients. */
import { acceptEmails, type EmailOutcome } from '../../../db/messages/emails/accept.ts'
import type { EmailSender } from '../../../db/messages/emails/call.ts'
import { emailItem, type SaidOfEmail } from '../../../db/messages/emails/item.ts'
import { countSends } from '../../sends/count.ts'
import type { PageDeps } from '../server/deps.ts'

/** Counts the outcome of an email of the service itself. @returns its ID. @throws RequestError if it was rejected. */
export function countOwn({ metrics }: PageDeps, outcomes: readonly EmailOutcome[]): string {
  const [outcome] = countSends(metrics, 'email', outcomes)
  if (outcome?.kind === 'refused') throw outcome.refusal
  if (outcome?.kind !== 'stored') throw new Error('our own emails have no key, so they can’t be replays')
  return outcome.row.id
}

/** Sends an email as a team. @returns its ID. @throws RequestError */
export async function sendOwn(deps: PageDeps, sender: EmailSender, said: SaidOfEmail): Promise<string> {
  const items = [emailItem(said)]
  return countOwn(deps, await deps.database.transaction((tx) => acceptEmails({ ...deps, tx }, sender, items)))
}
