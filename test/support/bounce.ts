/** Records hard bounces, as a worker does for a provider's report. */
import type { EmailRef } from '../../db/messages/emails/emails.sql.ts'
import type { Service } from './service.ts'
import { happen } from './webhooks.ts'

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
  const event_key = `bounce:${recipient}`
  await happen({ database }, { ...ref, kind: 'bounced', effect, event_key, recipient, detail })
}
