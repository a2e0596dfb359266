/** SMTP: any relay, by its URL; broadcasts may have a relay of their own. */
import { string, type ValidationError } from 'yup'
import type { SettingsOf } from '../../../db/process/config.ts'
import { type DeclaredForEmail, neededToSend, type Reading, type Sends } from '../declared.ts'
import { createSmtpReportReader } from './reports.ts'
import { smtpUrlFault } from './url.ts'

const NAME = 'smtp'

/** The URL of a relay. */
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
}

type Settings = SettingsOf<typeof settings>

const open = async (url: string, max_connections: number) =>
  (await import('./adapter.ts')).createSmtpProvider({ url, max_connections })

export const SMTP = {
  name: NAME,
  settings,
  open: ({ SMTP_URL = '', WORKER_CONCURRENCY }: Settings & Sends) => open(SMTP_URL, WORKER_CONCURRENCY),
  openBulk: async ({ BULK_SMTP_URL: url }: Settings, most: number) => (url ? await open(url, most) : null),
  reader: ({ secrets }: Reading<Settings>) => createSmtpReportReader(secrets),
} as const satisfies DeclaredForEmail
