/**
 * Emails of broadcasts on their way out: read, sent and recorded as any email (deliver-email.ts), but from a queue and
 * through a sender of their own, so that single emails go first. Promises: at the last moment each is asked about once
 * more: whether its broadcast goes on, and whether its contact still wants it (db/messages/broadcasts/consent.ts).
 */

import { BROADCAST } from '../../db/channels/email.sql.ts'
import { emailsNotPaused } from '../../db/messages/broadcasts/consent.sql.ts'
import { lastWords } from '../../db/messages/broadcasts/consent.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import type { EmailProvider } from '../providers/provider.ts'
import { type EmailAttempt, type EmailDeps, emailChannel } from './deliver-email.ts'

/** What the channel needs: as emails do, and what broadcasts go out through; null where `email` is. */
export type BroadcastDeps = EmailDeps & { bulk: EmailProvider | null }

export function broadcastChannel(deps: BroadcastDeps): DeliveryChannel<'deliver-broadcast', EmailAttempt> {
  /** Emails that were found paused, until they are put back. */
  const paused = new Set<string>()
  return {
    ...emailChannel(BROADCAST, {
      ...deps,
      email: deps.bulk,
      async lastWords(rows) {
        const words = await lastWords(deps.database, rows)
        for (const [id, word] of words) if (typeof word === 'object' && word.until_resumed) paused.add(id)
        return words
      },
    }),
    // What is in hand is sent at once: a pause or an unsubscribe may come any moment.
    ahead: 0,
    horizon: 0,
    // A resume brings forward what waits for it, but not what was in our hands at that moment.
    async mayGoAfterAll(tx, jobs) {
      const waiting = jobs.filter(({ data }) => paused.delete(data.email_id))
      if (waiting.length === 0) return new Set()
      const refs = waiting.map(({ data }) => data)
      const resumed = await emailsNotPaused(tx, refs)
      return new Set(waiting.filter(({ data }) => resumed.has(data.email_id)))
    },
  }
}
