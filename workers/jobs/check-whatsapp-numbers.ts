/** Asks Meta once an hour about each number that isn't the default one, as `number check` does. */
import { checkNumber } from '../../db/messages/whatsapp/manage-numbers.ts'
import { allNumbers } from '../../db/messages/whatsapp/numbers.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import type { WorkerDeps } from '../deps.ts'

/** A number that can't be checked delays no other. */
export async function checkWhatsappNumbers({
  database,
  secrets,
  graphApi: url,
  notices: { site },
  log,
}: Pick<WorkerDeps, 'database' | 'secrets' | 'graphApi' | 'notices' | 'log'>): Promise<void> {
  const run: Parameters<typeof checkNumber>[0]['run'] = (work) =>
    database.transaction(async (tx) => work({ tx, now: await serviceTime(tx), actor: 'service' }))
  for (const { name } of await allNumbers(database)) {
    try {
      const { accepted } = await checkNumber({ run, secrets, url, site }, name, { subscribe: false })
      if (!accepted) log.error({ number: name }, 'Meta rejects the access token of a WhatsApp number')
    } catch (error) {
      log.warn({ err: error, number: name }, 'failed to check a WhatsApp number')
    }
  }
}
