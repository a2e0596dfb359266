/**
 * Sends the emails of broadcasts like any email (deliver-email.ts), but from a separate queue and through a separate
 * sender, so that single emails go first. Just before each is sent, its broadcast must still be running and its
 * contact must still want it (db/messages/broadcasts/consent.ts).
 */

import type { Channel } from '../../db/channels/channel.sql.ts'
import { BROADCAST } from '../../db/channels/email.sql.ts'
import { checkBeforeSend } from '../../db/messages/broadcasts/consent.ts'
import type { OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import type { EmailProvider } from '../providers/provider.ts'
import { type EmailDeps, emailChannel, type Through } from './deliver-email.ts'
import type { EmailAttempt } from './email-attempts.ts'

/** The dependencies of the email channel, and the provider for broadcasts. `bulk` is null if `email` is. */
export type BroadcastDeps = EmailDeps & { bulk: EmailProvider | null }

export const broadcastChannel = (deps: BroadcastDeps): DeliveryChannel<'deliver-broadcast', EmailAttempt> =>
  withFinalCheck(BROADCAST, { ...deps, email: deps.bulk })

/** Adds the final check to a channel that may carry emails of broadcasts. Other emails need no check. */
export function withFinalCheck<J extends 'deliver-broadcast' | 'deliver-test', T extends boolean = false>(
  channel: Channel<J>,
  deps: Through<T>,
): DeliveryChannel<J, EmailAttempt> {
  return {
    ...emailChannel<J, T>(channel, {
      ...deps,
      async checkBeforeSend(rows) {
        const own: OutgoingRow[] = []
        const others: OutgoingRow[] = []
        for (const row of rows) (row.broadcast_id === null ? others : own).push(row)
        const checks = await checkBeforeSend(deps.database, own)
        return new Map([...checks, ...others.map(({ id }) => [id, 'go'] as const)])
      },
    }),
    // A claimed email is sent at once, because a pause or an unsubscribe may come at any moment.
    ahead: 0,
    horizon: 0,
  }
}
