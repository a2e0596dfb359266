/** Amazon SES, by its API in one region. */
import { string } from 'yup'
import { httpUrl, type SettingsOf } from '../../../db/process/config.ts'
import type { Log } from '../../../db/process/log.ts'
import { type DeclaredForEmail, neededToSend, type ReaderContext, type Sends } from '../declared.ts'
import { createSesReportReader } from './reports.ts'
import { sesSender } from './sender.ts'

const NAME = 'ses'

const settings = {
  AWS_REGION: neededToSend(
    NAME,
    string().matches(/^[a-z]{2}(-[a-z]+)+-\d+$/, '${path} must be a region such as eu-west-1'),
    '${path} is missing: the region of the SES account',
  ),
  /** A server other than AWS's, for simulators. Credentials come from the SDK's own chain. */
  SES_ENDPOINT: httpUrl,
  SES_CONFIGURATION_SET: string().matches(/^[\w-]{1,64}$/, '${path} must be the name of a configuration set'),
}

export const SES = {
  name: NAME,
  settings,
  open: async (given: SettingsOf<typeof settings> & Sends, log: Log) =>
    (await import('./adapter.ts')).createSesProvider({
      region: given.AWS_REGION ?? '',
      endpoint: given.SES_ENDPOINT,
      configuration_set: given.SES_CONFIGURATION_SET,
      max_connections: given.WORKER_CONCURRENCY,
      warn: (words) => log.warn(words),
    }),
  reader: ({ settings: { AWS_REGION: region } }: ReaderContext<SettingsOf<typeof settings>>) =>
    createSesReportReader(region ? sesSender(region) : null),
} as const satisfies DeclaredForEmail
