/** Reads the simulator's reports into neutral events. They are stored with the record of the accepted message. */
import type { Declared } from '../declared.ts'
import type { ReportReader } from '../report.ts'
import { readEmail } from './simulator.ts'
import { readWhatsapp } from './whatsapp.ts'

type Report =
  | ({ channel: 'email' } & Parameters<typeof readEmail>[0])
  | ({ channel: 'whatsapp' } & Parameters<typeof readWhatsapp>[0])

const reader: ReportReader = async ({ body }) => {
  // Only the simulator writes these.
  const report = JSON.parse(body.toString()) as Report
  return [report.channel === 'email' ? readEmail(report) : readWhatsapp(report)]
}

/** The simulator among those whose reports are read. */
export const SIMULATOR = { name: 'test', settings: {}, reader: () => reader } as const satisfies Declared
