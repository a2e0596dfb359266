/** Looks verified domains up again at night, so that owners get to know of a DKIM record that went missing. */
import { recheckDomains } from '../../db/accounts/domains/recheck.ts'
import type { WorkerDeps } from '../deps.ts'

/** A round ends before the next one begins, and before the queue takes it for lost; in milliseconds. */
const MAX_ROUND_MS = 240_000

export async function recheckDomainsJob(deps: WorkerDeps): Promise<void> {
  const { checked, failing } = await recheckDomains(deps, MAX_ROUND_MS)
  if (failing > 0) {
    deps.queue.wake('mail-owners')
    deps.log.warn({ checked, failing }, 'DKIM records of domains are missing')
  }
}
