/** Creates the readers of raw reports, by provider (providers/list.ts, providers/relays/list.ts). */

import type { Provider } from '../../db/delivery/reports/reports.sql.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { WorkerSettings } from '../config.ts'
import { CHANNEL_PROVIDERS, EMAIL_PROVIDERS, OTHER_REPORTERS } from '../providers/list.ts'
import { HOSTED_RELAYS } from '../providers/relays/list.ts'
import type { ReportCut, ReportReader } from '../providers/report.ts'
import { SIMULATOR } from '../providers/test/reports.ts'

const PROVIDERS = [
  ...[...EMAIL_PROVIDERS, ...HOSTED_RELAYS, ...Object.values(CHANNEL_PROVIDERS)],
  ...[...OTHER_REPORTERS, SIMULATOR],
]

/** How reports of these providers are reduced before they are stored. */
export const REPORT_CUTS: Readonly<Partial<Record<string, ReportCut>>> = Object.fromEntries(
  PROVIDERS.flatMap((provider) => ('cut' in provider ? [[provider.name, provider.cut]] : [])),
)

export type Readers = Readonly<Record<Provider, ReportReader>>

/** @param context with the provider settings that reading needs. */
export function createReaders(context: { secrets: Secrets; settings?: Partial<WorkerSettings> }): Readers {
  const { secrets, settings = {} } = context
  return Object.fromEntries(
    PROVIDERS.map(({ name, reader }) => [name, reader({ secrets, settings })]),
  ) as Record<(typeof PROVIDERS)[number]['name'], ReportReader>
}
