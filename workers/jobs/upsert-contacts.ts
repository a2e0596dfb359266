/**
 * Runs bulk upserts of contacts. Contacts, quota, result and job are settled once, in one transaction, even if another
 * worker has the job. The waiting caller gets a reply after the commit. An error in one call fails only that call.
 */
import { readItems, upsertContacts } from '../../db/audience/contacts/upsert.ts'
import { finishUpsert, lockUpsert } from '../../db/audience/contacts/upserts.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { announce } from '../../db/postgres/replies.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import { openJobsBefore } from '../../db/queue/jobs.sql.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

type UpsertJob = FetchedJob<'upsert-contacts'>

/** @param end ends the call's job, in the same transaction. Another worker's job then finds nothing to do. */
async function carryOut(
  { team_id, upsert_id }: UpsertJob['data'],
  { database, secrets, clock }: WorkerDeps,
  end?: (tx: Tx) => Promise<void>,
): Promise<void> {
  const done = await database.transaction(async (tx) => {
    const body = await lockUpsert(tx, team_id, upsert_id)
    if (body === null) {
      await end?.(tx)
      return false
    }
    const items = readItems(body)
    const now = clock()
    const result = await upsertContacts({ tx, now, secrets }, team_id, items)
    await finishUpsert(tx, team_id, upsert_id, result, now)
    await end?.(tx)
    return true
  })
  // Only a hint: the caller also polls.
  if (done) await announce(database, [upsert_id]).catch(() => {})
}

/**
 * Runs a batch, one call after the other. Earlier calls of a team run first, in any worker, so that an old call can't
 * overwrite a newer one.
 */
export async function runUpserts(
  { jobs, settle }: Batch<'upsert-contacts'>,
  deps: WorkerDeps,
): Promise<void> {
  const { database, log } = deps
  const attempt = async (upsert_id: string, work: () => Promise<unknown>): Promise<void> => {
    await work().catch((error: unknown) => {
      log.error({ err: error, upsert_id }, 'failed to process a bulk upsert')
    })
  }
  for (const job of jobs) {
    const { team_id } = job.data
    await attempt(job.id, async () => {
      const before = await openJobsBefore(database, 'upsert-contacts', { team_id, id: job.id })
      for (const upsert_id of before) await attempt(upsert_id, () => carryOut({ team_id, upsert_id }, deps))
      await carryOut(job.data, deps, (tx) => settle(tx, new Map([[job, { end: 'completed' }]]), true))
    })
  }
}
