/**
 * What every handler works with, joined of the parts that rooms ask for. Beneath the handlers and the registry, so
 * that neither imports the other in a circle.
 */

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

/** What the jobs that are no deliveries need beside what those need. */
type JobDeps = {
  /** When a broadcast is paused by itself: BULK_MAX_… */
  brakes: Brakes
  /** How sending domains without history start with broadcasts: DOMAIN_RAMP. */
  ramp: RampStart | null
  /** When the bulk email of a team is paused: TEAM_MAX_… */
  reputation: ReputationLimits
  notices: Notices
  /** How DNS is asked about domains. */
  lookupTxt: TxtLookup
  readers: Readers
  /** Meta's Graph API with its version. */
  graphApi: string
  retention: Retention
  clock: () => Date
}

/** What handlers work with; made once by main.ts, passed down. */
export type WorkerDeps = DeliveryDeps &
  BroadcastDeps &
  OpenProviders &
  WebhookDeps &
  JobDeps & {
    /** How many messages of a channel are with its provider at once in this process: WORKER_CONCURRENCY. */
    concurrency: number
  }
