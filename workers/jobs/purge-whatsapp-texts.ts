/**
 * Starts the background job that deletes recipients' texts from stored WhatsApp posts, which web processes of 0.1.0
 * store completely. It runs once after the upgrade from 0.1.0, and again once no web process of 0.1.0 is running.
 */
import { hasReports } from '../../db/delivery/reports/reports.sql.ts'
import { beginBackgroundJob } from '../../db/maintenance/background-jobs/background-jobs.ts'
import type { BackgroundJobTools } from '../../db/maintenance/background-jobs/kind.ts'
import { oldWeb, recordPurge } from '../../db/messages/whatsapp/old-web.sql.ts'
import type { WorkerDeps } from '../deps.ts'

export async function purgeWhatsappTexts({
  database,
  queue,
}: Pick<WorkerDeps, 'database'> & { queue: BackgroundJobTools['queue'] }): Promise<void> {
  const { is_running, has_run } = await oldWeb(database)
  const isDue = has_run === null || (has_run && !is_running)
  if (!isDue) return
  if (!(await hasReports(database, 'whatsapp')))
    return void (await recordPurge(database, { again: is_running }))
  await beginBackgroundJob(
    { database, queue, secrets: null },
    {
      kind: 'report.purge',
      team_id: null,
      actor: 'upgrade',
      given: {},
      store: async (tx) => void (await recordPurge(tx, { again: is_running })),
    },
  )
}
