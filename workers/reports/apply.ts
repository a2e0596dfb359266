/** What applies the reported events of each channel, as an explicit list. To add one: a line here. */

import { type Fate, ignored } from '../../db/delivery/reports/fate.ts'
import { applyReportedPauses } from '../../db/delivery/senders/reported-pauses.ts'
import { applyReportedEmails } from '../../db/messages/emails/apply-events.ts'
import { applyReportedWhatsapp } from '../../db/messages/whatsapp/apply-events.ts'
import {
  applyReportedTemplates,
  applyTemplateChanges,
} from '../../db/messages/whatsapp/apply-template-events.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import type { ReportedEvent } from '../providers/report.ts'

type Channel = ReportedEvent['channel']

/** Applies events in the caller's transaction, set-based, any order and any repeats. @returns a fate for each. */
type Applier<C extends Channel> = (
  tx: Tx,
  events: readonly Extract<ReportedEvent, { channel: C }>[],
  now: Date,
) => Promise<readonly Fate[]>

/** In the order of their locks, which is that of deliveries: rows, templates, senders. */
const APPLIERS: { [C in Channel]: Applier<C> } = {
  email: applyReportedEmails,
  whatsapp: applyReportedWhatsapp,
  'whatsapp-template': applyReportedTemplates,
  'whatsapp-template-change': applyTemplateChanges,
  sender: applyReportedPauses,
}

async function applyChannel<C extends Channel>(
  channel: C,
  tx: Tx,
  events: readonly ReportedEvent[],
  now: Date,
): Promise<Map<ReportedEvent, Fate>> {
  const own = events.filter((event) => event.channel === channel) as Extract<ReportedEvent, { channel: C }>[]
  if (own.length === 0) return new Map()
  const fates = await APPLIERS[channel](tx, own, now)
  return new Map(own.map((event, index) => [event, fates[index] ?? ignored('no fate')]))
}

/** Applies events of any channels, always in the same order of channels. @returns the fate of each event. */
export async function applyEvents(
  tx: Tx,
  events: readonly ReportedEvent[],
  now: Date,
): Promise<ReadonlyMap<ReportedEvent, Fate>> {
  const fates = new Map<ReportedEvent, Fate>()
  for (const channel of Object.keys(APPLIERS) as Channel[]) {
    for (const [event, fate] of await applyChannel(channel, tx, events, now)) fates.set(event, fate)
  }
  return fates
}
