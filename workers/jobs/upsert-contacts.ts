/**
 * Carries out contact bulk upserts (design §7).
 * Promises: contacts, allowance, result and job are settled in one transaction, once, whoever else was given the
 * job; whoever waits for the result is told after the commit. One call's fault fails that call alone.
 */
import { readItems, upsertContacts } from '../../db/contacts/upsert.ts'
import { finishUpsert, lockUpsert } from '../../db/contacts/upserts.sql.ts'
import { announce } from '../../db/postgres/replies.ts'
import type { FetchedJob, Settlement } from '../../db/queue/boss.ts'
import type { WorkerDeps } from '../deps.ts'

type UpsertJob = FetchedJob<'upsert-contacts'>

async function carryOut(job: UpsertJob, { database, queue, secrets, clock }: WorkerDeps): Promise<void> {
  const { team_id, upsert_id } = job.data
  const done = await database.transaction(async (tx) => {
    const body = await lockUpsert(tx, team_id, upsert_id)
    if (body === null) return false
    const items = readItems(body)
    const now = clock()
    const result = await upsertContacts({ tx, now, secrets }, team_id, items)
    await finishUpsert(tx, team_id, upsert_id, result, now)
    await queue.complete(tx, 'upsert-contacts', [job])
    return true
  })
  // A hint: whoever waits looks by itself too.
  if (done) await announce(database, [upsert_id]).catch(() => {})
}

/** Works on one fetched batch, a call after the other: those of one team would wait for each other anyway. */
export async function runUpserts(jobs: UpsertJob[], deps: WorkerDeps): Promise<Settlement[]> {
  const settlements: Settlement[] = []
  for (const job of jobs) {
    const { id } = job
    try {
      await carryOut(job, deps)
      settlements.push({ id, status: 'completed' })
    } catch (error) {
      deps.log.error({ err: error, upsert_id: id }, 'cannot carry out this bulk upsert')
      settlements.push({ id, status: 'failed', output: { reason: 'the upsert could not be carried out' } })
    }
  }
  return settlements
}
