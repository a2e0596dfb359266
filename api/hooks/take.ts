/**
 * What the hooks share: secrets compared in constant time, and a report stored with its job, answered at once.
 * Must not know a provider.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Refusal } from '../../db/errors.ts'
import { storeReport, type TakenReport } from '../../db/reports/store.ts'
import type { Answer } from '../errors.ts'
import type { Deps } from '../route.ts'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Whether two secrets are the same, in a time that tells nothing of either. */
export const sameSecret = (given: string, expected: string): boolean =>
  timingSafeEqual(digest(given), digest(expected))

/** @throws Refusal unauthorized unless the header carries this very token; always when there is none. */
export function assertBearer(authorization: string | undefined, token: string | null): void {
  const given = /^Bearer +([^\s]+) *$/i.exec(authorization ?? '')?.[1]
  if (given !== undefined && token !== null && sameSecret(given, token)) return
  throw new Refusal('unauthorized', 'this hook takes reports with its own token only')
}

/** Stores a report that has been proved genuine and wakes a worker. A repeat is taken as well as the first. */
export async function takeReport(
  { database, queue, wake }: Pick<Deps, 'database' | 'queue' | 'wake'>,
  report: TakenReport,
  now: Date,
): Promise<Answer> {
  const fresh = await database.transaction(async (tx) => await storeReport({ tx, queue, now }, report))
  if (fresh) wake('ingest-report')
  return { status: 200, body: { status: fresh ? 'taken' : 'repeated' } }
}
