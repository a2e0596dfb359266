/** Answers db/delivery/senders/check.ts: whether email's provider can be reached. Must not know how it is asked. */
import type { End } from '../../db/queue/jobs.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

export async function checkEmail(
  { jobs, settle }: Batch<'check-email'>,
  { email, database }: WorkerDeps,
): Promise<void> {
  if (!email) throw new Error('this worker delivers no email')
  const fault = await email.check()
  const { key: sender } = await email.sender()
  const end: End = { end: 'completed', output: { sender, fault } }
  await database.transaction((tx) => settle(tx, new Map(jobs.map((job) => [job, end]))))
}
