/** A hard bounce, as a worker records it from a provider's report. */
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import type { EmailRef } from '../../db/messages/emails/emails.sql.ts'
import type { Service } from './service.ts'

/** Has an email come back from a recipient for good. `detail`: the server's words. */
export async function recordBounce(
  { database }: Pick<Service, 'database'>,
  ref: EmailRef,
  { recipient, detail, effect = 'hard' }: { recipient: string; detail: string; effect?: 'hard' | 'none' },
): Promise<void> {
  const now = new Date()
  const what = { kind: 'bounced', effect, event_key: `bounce:${recipient}` } as const
  await database.transaction((tx) =>
    applyEmailEvents(tx, [{ ...ref, ...what, recipient, detail, occurred_at: now }], now),
  )
}
