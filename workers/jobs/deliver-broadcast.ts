/**
 * Emails of broadcasts on their way out: read, sent and recorded as any email (deliver-email.ts), but from a queue and
 * through a sender of their own, so that single emails go first. Promises: at the last moment each is asked about once
 * more: whether its broadcast goes on, and whether its contact still wants it (db/broadcasts/consent.ts).
 */
import { lastWords } from '../../db/broadcasts/consent.ts'
import { BROADCAST } from '../../db/channels/channels.sql.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import type { WorkerDeps } from '../deps.ts'
import { type EmailAttempt, emailChannel } from './deliver-email.ts'

export const broadcastChannel = (deps: WorkerDeps): DeliveryChannel<'deliver-broadcast', EmailAttempt> => ({
  ...emailChannel(BROADCAST, {
    ...deps,
    email: deps.bulk,
    lastWords: (rows) => lastWords(deps.database, rows),
  }),
  // What is in hand is sent at once: a pause or an unsubscribe may come any moment.
  ahead: 0,
  horizon: 0,
})
