/**
 * Emails of broadcasts on their way out: read, sent and recorded as any email (deliver-email.ts), from a queue of their
 * own, so that single emails go first.
 */
import { BROADCAST } from '../../db/channels/channels.sql.ts'
import type { DeliveryChannel } from '../delivery/channel.ts'
import type { WorkerDeps } from '../deps.ts'
import { type EmailAttempt, emailChannel } from './deliver-email.ts'

export const broadcastChannel = (deps: WorkerDeps): DeliveryChannel<'deliver-broadcast', EmailAttempt> =>
  emailChannel(BROADCAST, deps)
