/**
 * Syncs the templates of teams that have their own number with Meta's list for that number's account. Each account is
 * listed once per batch, outside any transaction. A failing list delays no other account.
 */
import { numberCredentials, numberOfTeam } from '../../db/messages/whatsapp/numbers.sql.ts'
import { openCredential } from '../../db/messages/whatsapp/numbers.ts'
import { applyListing } from '../../db/messages/whatsapp/sync-templates.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

type Jobs = Batch<'sync-whatsapp-number-templates'>['jobs']

export async function syncNumberTemplates(
  { jobs, settle }: Batch<'sync-whatsapp-number-templates'>,
  deps: WorkerDeps,
): Promise<void> {
  const { database, log } = deps
  const byNumber = new Map<string, Jobs[number][]>()
  for (const job of jobs) {
    const number = (await numberOfTeam(database, job.data.team_id))?.number ?? ''
    byNumber.set(number, [...(byNumber.get(number) ?? []), job])
  }
  for (const [name, own] of byNumber) {
    try {
      await syncFrom(name, own, { settle, deps })
    } catch (error) {
      if (byNumber.size === 1) throw error
      log.warn({ err: error, number: name }, 'failed to list the templates of a WhatsApp number')
    }
  }
}

/** Syncs the teams of one number. A team that has since moved to the default number has another sync. */
async function syncFrom(
  name: string,
  jobs: Jobs,
  { settle, deps }: { settle: Batch<'sync-whatsapp-number-templates'>['settle']; deps: WorkerDeps },
): Promise<void> {
  const { whatsapp, database, secrets, clock } = deps
  // Meta's reports from this time on are newer than its list.
  const asked_at = clock()
  const number = await numberCredentials(database, name)
  const { account_id = '' } = number ?? {}
  const access_token = number && openCredential(secrets, name, 'access_token', number.access_token).toString()
  const contents = access_token ? await whatsapp.provider.listTemplates({ account_id, access_token }) : []
  for (const job of jobs)
    await database.transaction(async (tx) => {
      const output = await applyListing(tx, job.data, contents, { asked_at, account_id })
      await settle(tx, new Map([[job, { end: 'completed', output }]]))
    })
}
