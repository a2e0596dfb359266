/** Declares SMTP: any relay, by its URL. Broadcasts may have a separate relay. */
import { hostname } from 'node:os'
import { string, type ValidationError } from 'yup'
import { relayName, type SettingsOf } from '../../../db/process/config.ts'
import { type DeclaredForEmail, neededToSend, type ReaderContext, type Sends } from '../declared.ts'
import { relaySender } from '../mail/relay-sender.ts'
import { ehloName, isEhloName, type NameSettings } from './ehlo-name.ts'
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
  /** The relay for broadcasts. The default is the relay of single emails. */
  BULK_SMTP_URL: relay(),
  /** The hosted relay behind them. It gets each email's reference and repeats it in its reports. */
  SMTP_RELAY: relayName,
  /** The name for EHLO. Otherwise the host of PUBLIC_URL, RETURN_PATH_DOMAIN or the machine's name. */
  SMTP_EHLO_NAME: string().test('name', '${path} must be a host name, such as mail.example.com', isEhloName),
  /** `relay` if acceptance by the relay counts as delivery. Delivery reports aren't requested then. */
  SMTP_DELIVERED: string().oneOf(['relay'], '${path} must be relay, or unset'),
}

type Settings = SettingsOf<typeof settings>

async function open(
  url: string,
  max_connections: number,
  { SMTP_RELAY: hosted, SMTP_DELIVERED, ...names }: Settings & NameSettings,
) {
  const { createSmtpProvider } = await import('./adapter.ts')
  const name = ehloName(names, hostname())
  return createSmtpProvider({
    ...{ url, max_connections, delivers: SMTP_DELIVERED === 'relay' },
    ...(hosted ? { hosted } : {}),
    ...(name === undefined ? {} : { hostname: name }),
  })
}

export const SMTP = {
  name: NAME,
  settings,
  open: (settings: Settings & Sends & NameSettings) =>
    open(settings.SMTP_URL ?? '', settings.WORKER_CONCURRENCY, settings),
  openBulk: async (settings: Settings & NameSettings, most: number) =>
    settings.BULK_SMTP_URL ? await open(settings.BULK_SMTP_URL, most, settings) : null,
  reader: ({ secrets, settings: { SMTP_URL, BULK_SMTP_URL } }: ReaderContext<Settings>) =>
    createSmtpReportReader(
      secrets,
      SMTP_URL ? { single: relaySender(SMTP_URL), bulk: relaySender(BULK_SMTP_URL ?? SMTP_URL) } : null,
    ),
} as const satisfies DeclaredForEmail
