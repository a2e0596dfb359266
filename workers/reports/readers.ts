/** The readers of raw reports, by the provider whose hook took them (providers/list.ts, providers/relays/list.ts). */

import type { Provider } from '../../db/delivery/reports/reports.sql.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { WorkerSettings } from '../config.ts'
import { CHANNEL_PROVIDERS, EMAIL_PROVIDERS } from '../providers/list.ts'
import { HOSTED_RELAYS } from '../providers/relays/list.ts'
import type { ReportReader } from '../providers/report.ts'
import { SIMULATOR } from '../providers/test/reports.ts'

export type Readers = Readonly<Record<Provider, ReportReader>>

/** Makes them. @param context with the settings of providers that reports are read by. */
export function createReaders(context: { secrets: Secrets; settings?: Partial<WorkerSettings> }): Readers {
  const { secrets, settings = {} } = context
  const providers = [...EMAIL_PROVIDERS, ...HOSTED_RELAYS, ...Object.values(CHANNEL_PROVIDERS), SIMULATOR]
  return Object.fromEntries(
    providers.map(({ name, reader }) => [name, reader({ secrets, settings })]),
  ) as Record<(typeof providers)[number]['name'], ReportReader>
}
