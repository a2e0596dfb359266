/** What the dashboard works with. Types alone. */
import type { DomainLookups, ZoneLookup } from '../../../db/accounts/domains/dns-lookups.ts'
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

/** What it shares with the API of its process. */
export type SharedDeps = {
  bodies: Bodies
  queue: Producer
  secrets: Secrets
  versions: Versions
  links: UnsubscribeLinks | null
  metrics: Metrics
  /** Where lists are read that may be a moment behind. */
  replica: Pick<Replica, 'read'>
  log: Log
  clock: () => Date
}

/** What the dashboard has of its own; made by main.ts. */
export type DashboardDeps = DomainLookups & {
  /** A pool of its own with a short statement timeout: no page keeps the API waiting. */
  database: Database
  /** Makes the text parts that emails get. */
  texts: PlainTexts
  zoneOf: ZoneLookup
  /** RETURN_PATH_DOMAIN, as the workers have it; null if it isn't set. */
  returnDomain: string | null
  /** Private networks that webhooks may reach. */
  webhookNetworks: readonly Network[]
  /** The address that people reach the service at; null: the one that they asked for. */
  publicUrl: string | null
  /** Who sign-in links by mail come from; null: there are none. */
  from: string | null
  /** Meta's Graph API with its version: what numbers are checked by. */
  graphApi: string
  /** The plan of new teams. */
  defaultPlan: string
  openid: OpenId | null
  /** Which optional settings this process has; never their values. */
  switches: readonly { name: string; isSet: boolean }[]
}

/** `primary`: the database itself, where `database` may be a standby that lags. */
export type PageDeps = SharedDeps & DashboardDeps & { primary: Database }
