/**
 * Syncs teams' WhatsApp templates with the provider's list. One listing serves all jobs of a batch and is dated at its
 * request, which runs outside any transaction. Waiting callers (db/messages/whatsapp/sync-templates.ts) learn of a
 * failure, and the job is retried a few times.
 */
import { applyListing } from '../../db/messages/whatsapp/sync-templates.ts'
import type { Batch } from '../batches/batches.ts'
import type { WorkerDeps } from '../deps.ts'

export async function syncWhatsappTemplates(
  { jobs, settle }: Batch<'sync-whatsapp-templates'>,
  { whatsapp, database, clock }: WorkerDeps,
): Promise<void> {
  if (!whatsapp.number) throw new Error('this worker has no default WhatsApp number')
  const { access_token, account_id } = whatsapp.number
  if (account_id === null) throw new Error('WHATSAPP_BUSINESS_ACCOUNT_ID is not set')
  // The provider's updates from this time on are newer than its list.
  const asked_at = clock()
  const contents = await whatsapp.provider.listTemplates({ access_token, account_id })
  for (const job of jobs) {
    await database.transaction(async (tx) => {
      const output = await applyListing(tx, job.data, contents, { asked_at, account_id: null })
      await settle(tx, new Map([[job, { end: 'completed', output }]]))
    })
  }
}
