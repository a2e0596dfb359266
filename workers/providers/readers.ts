/** The readers of raw reports, by the provider whose hook took them. To add one: its file, and a line here. */

import type { Secrets } from '../../db/process/secrets.ts'
import type { Provider } from '../../db/reports/reports.sql.ts'
import type { ReportReader } from './report.ts'
import { readSesReport } from './ses-reports.ts'
import { createSmtpReportReader } from './smtp-reports.ts'
import { readWhatsappReport } from './whatsapp-reports.ts'

export type Readers = Readonly<Record<Provider, ReportReader>>

export const createReaders = ({ secrets }: { secrets: Secrets }): Readers => ({
  smtp: createSmtpReportReader(secrets),
  ses: readSesReport,
  whatsapp: readWhatsappReport,
})
