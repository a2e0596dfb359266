/**
 * Emails of broadcasts on their way out: read, sent and recorded as any email (deliver-email.ts), but from a queue and
 * through a sender of their own, so that single emails go first. Promises: at the last moment each is asked about once
 * more: whether its broadcast goes on, and whether its contact still wants it (db/messages/broadcasts/consent.ts).
 */

import type { Channel } from '../../db/channels/channel.sql.ts'
import { BROADCAST } from '../../db/channels/email.sql.ts'
import { emailsNotPaused } from '../../db/messages/broadcasts/consent.sql.ts'
import { checkBeforeSend } from '../../db/messages/broadcasts/consent.ts'
import type { OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import type { EmailProvider } from '../providers/provider.ts'
import { type EmailDeps, emailChannel, type Through } from './deliver-email.ts'
import type { EmailAttempt } from './email-attempts.ts'

/** What the channel needs: as emails do, and what broadcasts go out through; null where `email` is. */
export type BroadcastDeps = EmailDeps & { bulk: EmailProvider | null }

export const broadcastChannel = (deps: BroadcastDeps): DeliveryChannel<'deliver-broadcast', EmailAttempt> =>
  withFinalCheck(BROADCAST, { ...deps, email: deps.bulk })

/** Delivers what may be of broadcasts: what is of none needs no final check. */
export function withFinalCheck<J extends 'deliver-broadcast' | 'deliver-test', T extends boolean = false>(
  channel: Channel<J>,
  deps: Through<T>,
): DeliveryChannel<J, EmailAttempt> {
  /** Emails that were found paused, until they are put back. */
  const paused = new Set<string>()
  return {
    ...emailChannel<J, T>(channel, {
      ...deps,
      async checkBeforeSend(rows) {
        const [own, others] = [[], []] as [OutgoingRow[], OutgoingRow[]]
        for (const row of rows) (row.broadcast_id === null ? others : own).push(row)
        const checks = await checkBeforeSend(deps.database, own)
        for (const [id, check] of checks)
          if (typeof check === 'object' && 'until_resumed' in check) paused.add(id)
        return new Map([...checks, ...others.map(({ id }) => [id, 'go'] as const)])
      },
    }),
    // What is in flight is sent at once: a pause or an unsubscribe may come any moment.
    ahead: 0,
    horizon: 0,
    // A resume brings forward what waits for it, but not what was in flight at that moment.
    async mayGoAfterAll(tx, jobs) {
      const waiting = jobs.filter(({ data }) => paused.delete(data.email_id))
      if (waiting.length === 0) return new Set()
      const refs = waiting.map(({ data }) => data)
      const resumed = await emailsNotPaused(tx, refs)
      return new Set(waiting.filter(({ data }) => resumed.has(data.email_id)))
    },
  }
}
