/** The adapters that the settings name: the only place that chooses among providers. */
import { BULK } from '../db/channels/channels.sql.ts'
import type { Sender } from '../db/delivery/senders/pace.ts'
import type { Log } from '../db/process/log.ts'
import type { EmailProviderName, WorkerSettings } from './config.ts'
import type { EmailProvider } from './providers/provider.ts'
import { createWhatsappProvider } from './providers/whatsapp/cloud.ts'
import type { WhatsappDelivery } from './providers/whatsapp/provider.ts'

/** Makes an adapter, and loads no other: a provider's SDK is some megabytes. */
type Make = (settings: WorkerSettings, log: Log) => Promise<EmailProvider>

/** The adapter behind each name that EMAIL_PROVIDER may have; config.ts sees to it that its settings are there. */
const EMAIL_PROVIDERS: Record<EmailProviderName, Make> = {
  smtp: async ({ SMTP_URL, WORKER_CONCURRENCY }) =>
    (await import('./providers/smtp/adapter.ts')).createSmtpProvider({
      url: SMTP_URL ?? '',
      max_connections: WORKER_CONCURRENCY,
    }),
  ses: async ({ AWS_REGION, SES_ENDPOINT, SES_CONFIGURATION_SET, WORKER_CONCURRENCY }, log) =>
    (await import('./providers/ses/adapter.ts')).createSesProvider({
      region: AWS_REGION ?? '',
      endpoint: SES_ENDPOINT,
      configuration_set: SES_CONFIGURATION_SET,
      max_connections: WORKER_CONCURRENCY,
      warn: (words) => log.warn(words),
    }),
}

/** What email goes out through. */
export const emailProvider = (settings: WorkerSettings, log: Log): Promise<EmailProvider> =>
  EMAIL_PROVIDERS[settings.EMAIL_PROVIDER](settings, log)

/** How many emails of broadcasts are with their provider at once: at most half of the slots. */
const bulkSlots = (concurrency: number): number => Math.max(1, Math.floor(concurrency / 2))

/** What broadcasts go out through: a relay of their own, or the single emails' one. */
export async function bulkProvider(settings: WorkerSettings, single: EmailProvider): Promise<EmailProvider> {
  const { BULK_SMTP_URL: url, BULK_SENDS_PER_SECOND: most, WORKER_CONCURRENCY } = settings
  if (!url) return beside(single, most)
  const { createSmtpProvider } = await import('./providers/smtp/adapter.ts')
  const own = createSmtpProvider({ url, max_connections: bulkSlots(WORKER_CONCURRENCY) })
  return { ...beside(own, most), close: own.close }
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

/** What WhatsApp messages go out through; null when it is not set up. */
export function whatsappDelivery(settings: WorkerSettings): WhatsappDelivery | null {
  const { WHATSAPP_ACCESS_TOKEN: access_token, WHATSAPP_PHONE_NUMBER_ID: phone_number_id } = settings
  const business_account_id = settings.WHATSAPP_BUSINESS_ACCOUNT_ID
  if (!access_token || !phone_number_id) return null
  const url = settings.WHATSAPP_API_URL.replace(/\/$/, '')
  const messages_per_second = settings.WHATSAPP_MESSAGES_PER_SECOND
  const account = { url, access_token, phone_number_id, business_account_id }
  return {
    provider: createWhatsappProvider({ ...account, messages_per_second }),
    unknown_wait: settings.WHATSAPP_UNKNOWN_WAIT_SECONDS,
  }
}
