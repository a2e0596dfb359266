/** Brings back contacts that only soft bounces suppress, once an email to them has stayed `sent` for a day. */
import { reviewSoftSuppressions } from '../../db/audience/suppressions/suppress.ts'
import type { WorkerDeps } from '../deps.ts'

/** Judges them all once more (DECISIONS: Delivery reports, Suppression). */
export async function reviewSuppressions({ database, clock, log }: WorkerDeps): Promise<void> {
  const back = await reviewSoftSuppressions(database, clock())
  if (back > 0) log.info({ back }, 'lifted soft-bounce suppressions')
}
