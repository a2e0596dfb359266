/** Opens the providers that the settings name. No other module chooses a provider. */
import { BULK } from '../db/channels/channels.sql.ts'
import type { Sender } from '../db/delivery/senders/rate-limit.ts'
import type { Database } from '../db/postgres/pool.ts'
import type { Log } from '../db/process/log.ts'
import type { WorkerSettings } from './config.ts'
import { CHANNEL_PROVIDERS, EMAIL_PROVIDERS, type OpenProviders } from './providers/list.ts'
import type { EmailProvider } from './providers/provider.ts'

export function emailProvider(settings: WorkerSettings, log: Log): Promise<EmailProvider> {
  const chosen = EMAIL_PROVIDERS.find(({ name }) => name === settings.EMAIL_PROVIDER)
  if (!chosen) throw new Error(`unknown provider ${settings.EMAIL_PROVIDER}`)
  return chosen.open(settings, log)
}

/** The number of broadcast emails that may be with their provider at once: at most half of the slots. */
const bulkSlots = (concurrency: number): number => Math.max(1, Math.floor(concurrency / 2))

/** Opens the provider for broadcasts: the one set for them, otherwise the provider of single emails. */
export async function bulkProvider(settings: WorkerSettings, single: EmailProvider): Promise<EmailProvider> {
  const { BULK_SENDS_PER_SECOND: most, WORKER_CONCURRENCY } = settings
  for (const provider of EMAIL_PROVIDERS) {
    const own = 'openBulk' in provider && (await provider.openBulk(settings, bulkSlots(WORKER_CONCURRENCY)))
    if (own) return { ...beside(own, most), close: own.close }
  }
  return beside(single, most)
}

/**
 * Gives broadcasts a separate sender at the same provider, so that a slow or paused broadcast doesn't affect single
 * emails. If the provider limits the account's rate, broadcasts get half of it.
 * @param most emails per second, or absent without a limit.
 */
export const beside = (single: EmailProvider, most?: number): EmailProvider => ({
  ...single,
  sender: async () => bulkSender(await single.sender(), most),
  // Closed by its opener.
  close: async () => {},
})

function bulkSender({ on_demand, ceiling, key }: Sender, most: number | undefined): Sender {
  const bulk = { key: `${key}${BULK}` }
  if (on_demand && most === undefined) return { ...bulk, ceiling, on_demand }
  const share = on_demand ? Number.POSITIVE_INFINITY : ceiling / 2
  return { ...bulk, ceiling: Math.min(share, most ?? share) }
}

export async function channelProviders(settings: WorkerSettings, database: Database): Promise<OpenProviders> {
  const opened = Object.entries(CHANNEL_PROVIDERS).map(([name, { open }]) => [name, open(settings)] as const)
  for (const [, one] of opened) await one?.begin(database)
  return Object.fromEntries(opened) as OpenProviders
}

/** Lists startup warnings about the channels that this process is configured for. */
export const channelWarnings = (settings: WorkerSettings, now: Date): string[] =>
  Object.values(CHANNEL_PROVIDERS).flatMap(({ warning }) => warning(settings, now) ?? [])

/** Lists startup messages about the channels that this process is not configured for. */
export const unsetChannels = (settings: WorkerSettings): string[] =>
  Object.values(CHANNEL_PROVIDERS).flatMap(({ isSet, unset }) => (isSet(settings) ? [] : [unset]))
