/** Opens what the settings name: the only place that chooses among providers. */
import { BULK } from '../db/channels/channels.sql.ts'
import type { Sender } from '../db/delivery/senders/rate-limit.ts'
import type { Database } from '../db/postgres/pool.ts'
import type { Log } from '../db/process/log.ts'
import type { WorkerSettings } from './config.ts'
import { CHANNEL_PROVIDERS, EMAIL_PROVIDERS, type OpenProviders } from './providers/list.ts'
import type { EmailProvider } from './providers/provider.ts'

/** What email goes out through: the provider that EMAIL_PROVIDER names. */
export function emailProvider(settings: WorkerSettings, log: Log): Promise<EmailProvider> {
  const chosen = EMAIL_PROVIDERS.find(({ name }) => name === settings.EMAIL_PROVIDER)
  if (!chosen) throw new Error(`unknown provider ${settings.EMAIL_PROVIDER}`)
  return chosen.open(settings, log)
}

/** How many emails of broadcasts are with their provider at once: at most half of the slots. */
const bulkSlots = (concurrency: number): number => Math.max(1, Math.floor(concurrency / 2))

/** What broadcasts go out through: what settings name for them alone, or the single emails' provider. */
export async function bulkProvider(settings: WorkerSettings, single: EmailProvider): Promise<EmailProvider> {
  const { BULK_SENDS_PER_SECOND: most, WORKER_CONCURRENCY } = settings
  for (const provider of EMAIL_PROVIDERS) {
    const own = 'openBulk' in provider && (await provider.openBulk(settings, bulkSlots(WORKER_CONCURRENCY)))
    if (own) return { ...beside(own, most), close: own.close }
  }
  return beside(single, most)
}

/**
 * The same way out under a sender of its own, so that what slows or pauses broadcasts leaves single emails alone. Of a
 * rate that the provider sets for the whole account broadcasts get half.
 * @param most emails a second, where there is a limit.
 */
export const beside = (single: EmailProvider, most?: number): EmailProvider => ({
  ...single,
  sender: async () => bulkSender(await single.sender(), most),
  // Closed by its opener.
  close: async () => {},
})

/** The sender of broadcasts beside the one of single emails. Pure. */
function bulkSender({ on_demand, ceiling, key }: Sender, most: number | undefined): Sender {
  const bulk = { key: `${key}${BULK}` }
  if (on_demand && most === undefined) return { ...bulk, ceiling, on_demand }
  const share = on_demand ? Number.POSITIVE_INFINITY : ceiling / 2
  return { ...bulk, ceiling: Math.min(share, most ?? share) }
}

/** Opens what other channels go out through, as far as this process is set up for them. */
export async function channelProviders(settings: WorkerSettings, database: Database): Promise<OpenProviders> {
  const opened = Object.entries(CHANNEL_PROVIDERS).map(([name, { open }]) => [name, open(settings)] as const)
  for (const [, one] of opened) await one?.begin(database)
  return Object.fromEntries(opened) as OpenProviders
}

/** What is to be warned of at the start, about channels that this process is set up for. */
export const channelWarnings = (settings: WorkerSettings, now: Date): string[] =>
  Object.values(CHANNEL_PROVIDERS).flatMap(({ warning }) => warning(settings, now) ?? [])

/** What is to be said of the channels that this process is not set up for. */
export const unsetChannels = (settings: WorkerSettings): string[] =>
  Object.values(CHANNEL_PROVIDERS).flatMap(({ isSet, unset }) => (isSet(settings) ? [] : [unset]))
