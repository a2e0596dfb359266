/** Looks verified domains up again at night, so that owners get to know of a DKIM record that went missing. */
import { lookAgain } from '../../db/accounts/domains/look-again.ts'
import type { WorkerDeps } from '../deps.ts'

/** A round ends before the next one begins, and before the queue takes it for lost; in milliseconds. */
const ROUND = 240_000

export async function lookAtDomains(deps: WorkerDeps): Promise<void> {
  const { checked, failing } = await lookAgain(deps, ROUND)
  if (failing > 0) {
    deps.queue.wake('mail-owners')
    deps.log.warn({ checked, failing }, 'domains have lost their DKIM records')
  }
}
