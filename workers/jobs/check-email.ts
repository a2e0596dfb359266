/** Checks whether the email providers can be reached, for db/delivery/senders/check.ts. */
import type { End } from '../../db/queue/jobs.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'
import type { EmailProvider } from '../providers/provider.ts'

/** Returns the provider of single emails, and that of broadcasts if it is a different one. */
const waysOut = (email: EmailProvider, bulk: EmailProvider | null): EmailProvider[] =>
  bulk === null || bulk.check === email.check ? [email] : [email, bulk]

const checked = async (provider: EmailProvider) => ({
  sender: (await provider.sender()).key,
  fault: await provider.check(),
})

export async function checkEmail(
  { jobs, settle }: Batch<'check-email'>,
  { email, bulk, database }: WorkerDeps,
): Promise<void> {
  if (!email) throw new Error("this worker doesn't deliver email")
  const [own, ...others] = await Promise.all(waysOut(email, bulk).map(checked))
  const faulty = [own, ...others].find((found) => found?.fault)
  const end: End = { end: 'completed', output: faulty ?? own ?? {} }
  await database.transaction((tx) => settle(tx, new Map(jobs.map((job) => [job, end]))))
}
