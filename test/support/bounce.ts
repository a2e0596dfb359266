/** Records hard bounces, as a worker does for a provider's report. */
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import type { EmailRef } from '../../db/messages/emails/emails.sql.ts'
import type { Service } from './service.ts'

/** Records a permanent bounce of an email's recipient. `detail` is the server's message. */
export async function recordBounce(
  { database }: Pick<Service, 'database'>,
  ref: EmailRef,
  {
    recipient,
    detail = '550 5.1.1 no such user',
    effect = 'hard',
  }: { recipient: string; detail?: string; effect?: 'hard' | 'none' },
): Promise<void> {
  const now = new Date()
  const what = { kind: 'bounced', effect, event_key: `bounce:${recipient}` } as const
  await database.transaction((tx) =>
    applyEmailEvents(tx, [{ ...ref, ...what, recipient, detail, occurred_at: now }], now),
  )
}
