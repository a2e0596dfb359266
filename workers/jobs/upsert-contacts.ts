/**
 * Carries out contact bulk upserts.
 * Promises: contacts, allowance, result and job are settled in one transaction, once, even if another worker has the
 * job; the caller that waits is notified after the commit. One call's fault fails that call alone.
 */
import { readItems, upsertContacts } from '../../db/audience/contacts/upsert.ts'
import { finishUpsert, lockUpsert } from '../../db/audience/contacts/upserts.sql.ts'
import { announce } from '../../db/postgres/replies.ts'
import type { FetchedJob } from '../../db/queue/claims.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

type UpsertJob = FetchedJob<'upsert-contacts'>

async function carryOut(
  job: UpsertJob,
  settle: Batch<'upsert-contacts'>['settle'],
  { database, secrets, clock }: WorkerDeps,
): Promise<void> {
  const { team_id, upsert_id } = job.data
  const done = await database.transaction(async (tx) => {
    const body = await lockUpsert(tx, team_id, upsert_id)
    const ended = new Map([[job, { end: 'completed' as const }]])
    if (body === null) {
      await settle(tx, ended)
      return false
    }
    const items = readItems(body)
    const now = clock()
    const result = await upsertContacts({ tx, now, secrets }, team_id, items)
    await finishUpsert(tx, team_id, upsert_id, result, now)
    await settle(tx, ended)
    return true
  })
  // Only a hint: the caller also polls.
  if (done) await announce(database, [upsert_id]).catch(() => {})
}

/** Works on one batch, a call after the other: those of one team would wait for each other anyway. */
export async function runUpserts(
  { jobs, settle }: Batch<'upsert-contacts'>,
  deps: WorkerDeps,
): Promise<void> {
  for (const job of jobs) {
    await carryOut(job, settle, deps).catch((error: unknown) => {
      deps.log.error({ err: error, upsert_id: job.id }, 'cannot carry out this bulk upsert')
    })
  }
}
