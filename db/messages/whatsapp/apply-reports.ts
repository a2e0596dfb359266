/** The appliers for WhatsApp reports, by kind and in lock order, and their follow-up jobs. */
import { deliveryFrom } from '../../channels/channels.sql.ts'
import { queueOf } from '../../channels/queues.ts'
import { APPLIED, type EventResult, ignored } from '../../delivery/reports/event-result.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import type { Producer } from '../../queue/producer.ts'
import { type AccountEvent, ownAccounts, storeAccountEvents } from './account-events.sql.ts'
import { applyReportedWhatsapp } from './apply-events.ts'
import { applyReportedTemplates, applyTemplateChanges, applyTemplateFacts } from './apply-template-events.ts'
import { applyReportedOptOuts } from './opt-outs.ts'
import { requestSyncs } from './sync-templates.ts'

/** Kinds: message statuses, template states, and changed template content. */
export const WHATSAPP_APPLIERS = {
  whatsapp: applyReportedWhatsapp,
  'whatsapp-opt-out': applyReportedOptOuts,
  'whatsapp-account': applyAccountEvents,
  'whatsapp-template': applyReportedTemplates,
  'whatsapp-template-change': applyTemplateChanges,
  'whatsapp-template-facts': applyTemplateFacts,
} as const

/** Enqueues returned messages again, and requests one sync per team with changed templates. */
export async function followWhatsappReports(
  { tx, queue }: { tx: Tx; queue: Pick<Producer, 'enqueue' | 'reenqueue'> },
  results: readonly EventResult[],
): Promise<void> {
  const applied = results.flatMap((result) => (result.kind === 'applied' ? [result] : []))
  const again = applied.flatMap((result) => (result.again ? [result.again] : []))
  const jobOf = ({ parts, number }: (typeof again)[number]) =>
    queueOf(parts ? 'whatsapp_parts' : 'whatsapp', { test: false, number })
  for (const [job, own] of Map.groupBy(again, jobOf)) {
    const { payload } = deliveryFrom(job)
    const payloads = own.map(({ team_id, message_id: id, number: sender }) =>
      payload.of({ team_id, id, sender }),
    )
    await queue.reenqueue(
      tx,
      job,
      payloads,
      own.map(({ seconds }) => seconds),
    )
  }
  const notices = applied.flatMap(({ notices = [] }) => notices)
  await queue.enqueue(
    tx,
    'mail-owners',
    notices.map((notice) => ({ ...notice, notice_id: idNow() })),
  )
  await requestSyncs({ tx, queue }, [...new Set(applied.flatMap(({ sync = [] }) => sync))])
}

/** Applies Meta's events about accounts and numbers. Events of other accounts are dropped. */
async function applyAccountEvents(tx: Tx, events: readonly AccountEvent[]): Promise<EventResult[]> {
  const own = await ownAccounts(tx)
  const isOwn = ({ account_id }: AccountEvent): boolean => own === null || own.has(account_id)
  const kept = events.filter(isOwn)
  if (kept.length > 0) await storeAccountEvents(tx, kept)
  return events.map((event) => (isOwn(event) ? APPLIED : ignored("the account isn't one of ours")))
}
