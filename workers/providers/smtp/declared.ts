/** SMTP: any relay, by its URL; broadcasts may have a relay of their own. */
import { string, type ValidationError } from 'yup'
import { relayName, type SettingsOf } from '../../../db/process/config.ts'
import { type DeclaredForEmail, neededToSend, type ReaderContext, type Sends } from '../declared.ts'
import { createSmtpReportReader } from './reports.ts'
import { smtpUrlFault } from './url.ts'

const NAME = 'smtp'

const relay = () =>
  string().test({
    name: 'smtp url',
    test: (
      url: string | undefined,
      { path, createError }: { path: string; createError: (fault: { message: string }) => ValidationError },
    ) => {
      const fault = url === undefined ? null : smtpUrlFault(url)
      return fault === null || createError({ message: `${path} ${fault}` })
    },
  })

const settings = {
  SMTP_URL: neededToSend(NAME, relay(), '${path} is missing: the smtp:// URL of the relay'),
  /** The relay that broadcasts go out through; what single emails go out through when absent. */
  BULK_SMTP_URL: relay(),
  /** The hosted relay behind them: it is handed each email's reference, to repeat it in its reports. */
  SMTP_RELAY: relayName,
}

type Settings = SettingsOf<typeof settings>

const open = async (url: string, max_connections: number, hosted: Settings['SMTP_RELAY']) =>
  (await import('./adapter.ts')).createSmtpProvider({ url, max_connections, ...(hosted ? { hosted } : {}) })

export const SMTP = {
  name: NAME,
  settings,
  open: ({ SMTP_URL = '', SMTP_RELAY, WORKER_CONCURRENCY }: Settings & Sends) =>
    open(SMTP_URL, WORKER_CONCURRENCY, SMTP_RELAY),
  openBulk: async ({ BULK_SMTP_URL: url, SMTP_RELAY }: Settings, most: number) =>
    url ? await open(url, most, SMTP_RELAY) : null,
  reader: ({ secrets }: ReaderContext<Settings>) => createSmtpReportReader(secrets),
} as const satisfies DeclaredForEmail
