/** Lists each account's templates once a night, because a missed webhook leaves a wrong state. */
import { requestAllSyncs } from '../../db/messages/whatsapp/sync-templates.ts'
import type { Producer } from '../../db/queue/producer.ts'
import type { WorkerDeps } from '../deps.ts'

export async function refreshWhatsappTemplates({
  database,
  queue,
  log,
}: Pick<WorkerDeps, 'database' | 'log'> & { queue: Pick<Producer, 'enqueue'> }): Promise<void> {
  const teams = await database.transaction((tx) => requestAllSyncs({ tx, queue }))
  if (teams > 0) log.info({ teams }, 'refreshing the WhatsApp templates')
}
