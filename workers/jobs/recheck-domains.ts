/** Looks verified domains up again every night, so that owners learn of missing DKIM records. */
import { recheckDomains } from '../../db/accounts/domains/recheck.ts'
import type { WorkerDeps } from '../deps.ts'

/** The time limit of a round. It ends before the next one starts, and before the queue considers it lost. */
const MAX_ROUND_MS = 240_000

export async function recheckDomainsJob(deps: WorkerDeps): Promise<void> {
  const { checked, failing } = await recheckDomains(deps, MAX_ROUND_MS)
  if (failing > 0) {
    deps.queue.wake('mail-owners')
    deps.log.warn({ checked, failing }, 'DKIM records of domains are missing or have another value')
  }
}
