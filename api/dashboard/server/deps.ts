/** The dependencies of the dashboard. Only types. */
import type { DomainLookups, ZoneLookup } from '../../../db/accounts/domains/dns-lookups.ts'
import type { RecentLookups } from '../../../db/accounts/domains/recent-lookups.ts'
import type { Versions } from '../../../db/content/templates/versions.ts'
import type { UnsubscribeLinks } from '../../../db/messages/emails/unsubscribe-token.ts'
import type { Database } from '../../../db/postgres/pool.ts'
import type { Replica } from '../../../db/postgres/replica.ts'
import type { Log } from '../../../db/process/log.ts'
import type { Metrics } from '../../../db/process/metrics.ts'
import type { PlainTexts } from '../../../db/process/plain-texts.ts'
import type { Network } from '../../../db/process/public-address.ts'
import type { Secrets } from '../../../db/process/secrets.ts'
import type { Producer } from '../../../db/queue/producer.ts'
import type { Bodies } from '../../http/bodies.ts'
import type { OpenId } from './openid.ts'

/** Shared with the API of the same process. */
export type SharedDeps = {
  bodies: Bodies
  queue: Producer
  secrets: Secrets
  versions: Versions
  links: UnsubscribeLinks | null
  metrics: Metrics
  /** For lists that can lag slightly. */
  replica: Pick<Replica, 'read'>
  log: Log
  clock: () => Date
}

/** The dashboard's own dependencies, created by main.ts. */
export type DashboardDeps = DomainLookups & {
  /** A separate pool with a short statement timeout, so that pages don't delay the API. */
  database: Database
  /** Creates text parts like those of sent emails. */
  texts: PlainTexts
  zoneOf: ZoneLookup
  /** RETURN_PATH_DOMAIN, or null if it isn't set. */
  returnDomain: string | null
  /** Private networks that webhooks can reach. */
  webhookNetworks: readonly Network[]
  /** PUBLIC_URL, or null if it isn't set. */
  publicUrl: string | null
  /** From address of sign-in links by email. Null disables them. */
  from: string | null
  /** The URL of Meta's Graph API, with its version. */
  graphApi: string
  defaultPlan: string
  openid: OpenId | null
  /** The optional settings that this process has, without their values. */
  switches: readonly { name: string; isSet: boolean }[]
}

/** `primary` is never a replica, but `database` can be. */
export type PageDeps = SharedDeps & DashboardDeps & { primary: Database; recent: RecentLookups }
