/** The dependencies of handlers. It is below the handlers and the registry, so that they don't import each other. */

import type { TxtLookup } from '../db/accounts/domains/dns-lookups.ts'
import type { RampStart } from '../db/accounts/domains/ramp.ts'

import type { ReputationLimits } from '../db/accounts/teams/reputation.ts'
import type { Retention } from '../db/maintenance/retention/purge.ts'
import type { Brakes } from '../db/messages/broadcasts/auto-pause.ts'
import type { Notices } from '../db/messages/notice.ts'
import type { BroadcastDeps } from './channels/deliver-broadcast.ts'
import type { WebhookDeps } from './channels/deliver-webhook.ts'
import type { DeliveryDeps } from './delivery/channel.ts'
import type { OpenProviders } from './providers/list.ts'
import type { Readers } from './reports/readers.ts'

type JobDeps = {
  /** When a broadcast is paused automatically (BULK_MAX_…). */
  brakes: Brakes
  /** How sending domains without history start with broadcasts (DOMAIN_RAMP). */
  ramp: RampStart | null
  /** When a team's bulk email is paused (TEAM_MAX_…). */
  reputation: ReputationLimits
  notices: Notices
  lookupTxt: TxtLookup
  readers: Readers
  graphApi: string
  retention: Retention
  clock: () => Date
}

/** The dependencies of handlers, made once by main.ts and passed down. */
export type WorkerDeps = DeliveryDeps &
  BroadcastDeps &
  OpenProviders &
  WebhookDeps &
  JobDeps & {
    /** The number of a channel's messages that are with its provider at once in this process (WORKER_CONCURRENCY). */
    concurrency: number
  }
