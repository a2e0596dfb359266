/**
 * What the hooks share: a report that was proved genuine is stored with its job, and answered at once.
 * Must not know a provider.
 */
import { storeReport, type TakenReport } from '../../db/reports/store.ts'
import type { Answer } from '../errors.ts'
import type { Deps } from '../route.ts'

/** Stores a report that has been proved genuine and wakes a worker. A repeat is taken as well as the first. */
export async function takeReport(
  { database, queue, wake }: Pick<Deps, 'database' | 'queue' | 'wake'>,
  report: TakenReport,
  now: Date,
): Promise<Answer> {
  const fresh = await database.transaction((tx) => storeReport({ tx, queue, now }, report))
  if (fresh) wake('ingest-report')
  return { status: 200, body: { status: fresh ? 'taken' : 'repeated' } }
}
