/** The readers of raw reports, by the provider whose hook took them. To add one: its file, and a line here. */

import type { Provider } from '../../db/delivery/reports/reports.sql.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { ReportReader } from '../providers/report.ts'
import { readSesReport } from '../providers/ses/reports.ts'
import { createSmtpReportReader } from '../providers/smtp/reports.ts'
import { createWhatsappReportReader } from '../providers/whatsapp/reports.ts'

export type Readers = Readonly<Record<Provider, ReportReader>>

/** `business_account`: the WhatsApp account that is ours, where one is named. */
export const createReaders = ({
  secrets,
  business_account = null,
}: {
  secrets: Secrets
  business_account?: string | null
}): Readers => ({
  smtp: createSmtpReportReader(secrets),
  ses: readSesReport,
  whatsapp: createWhatsappReportReader(business_account),
})
