/**
 * Brings teams' WhatsApp templates up to what the provider lists.
 * Promises: one listing for a whole batch, which counts from when it was asked for; the provider is asked outside any
 * transaction. A failure is told to whoever
 * waits (db/whatsapp/templates/sync.ts) and tried again a few times. Must not know a provider's words.
 */
import type { FetchedJob, Settlement } from '../../db/queue/boss.ts'
import { applyListing } from '../../db/whatsapp/sync-templates.ts'
import type { WorkerDeps } from '../deps.ts'

export async function syncWhatsappTemplates(
  jobs: FetchedJob<'sync-whatsapp-templates'>[],
  { whatsapp, database, clock }: WorkerDeps,
): Promise<Settlement[]> {
  if (!whatsapp) throw new Error('there is no WhatsApp provider here')
  // What the provider tells meanwhile is newer than its list.
  const asked_at = clock()
  const contents = await whatsapp.provider.listTemplates()
  const settled: Settlement[] = []
  for (const { id, data } of jobs) {
    const missing = await database.transaction((tx) => applyListing(tx, data.team_id, contents, asked_at))
    settled.push({ id, status: 'completed', output: { missing } })
  }
  return settled
}
