/** The adapters that the settings name: the only place that chooses among providers. */
import type { Log } from '../../db/process/log.ts'
import type { EmailProviderName, WorkerSettings } from '../config.ts'
import type { EmailProvider } from './provider.ts'
import { createSesProvider } from './ses.ts'
import { createSmtpProvider } from './smtp.ts'
import type { WhatsappDelivery } from './whatsapp.ts'
import { createWhatsappProvider } from './whatsapp-cloud.ts'

/** The adapter behind each name that EMAIL_PROVIDER may have; config.ts sees to it that its settings are there. */
const EMAIL_PROVIDERS: Record<EmailProviderName, (settings: WorkerSettings, log: Log) => EmailProvider> = {
  smtp: ({ SMTP_URL, WORKER_CONCURRENCY }) =>
    createSmtpProvider({ url: SMTP_URL ?? '', max_connections: WORKER_CONCURRENCY }),
  ses: ({ AWS_REGION, SES_ENDPOINT, SES_CONFIGURATION_SET, WORKER_CONCURRENCY }, log) =>
    createSesProvider({
      region: AWS_REGION ?? '',
      endpoint: SES_ENDPOINT,
      configuration_set: SES_CONFIGURATION_SET,
      max_connections: WORKER_CONCURRENCY,
      warn: (words) => log.warn(words),
    }),
}

/** What email goes out through. */
export const emailProvider = (settings: WorkerSettings, log: Log): EmailProvider =>
  EMAIL_PROVIDERS[settings.EMAIL_PROVIDER](settings, log)

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
