/** The dependencies of the dashboard. Only types. */
import type { DomainLookups, ZoneLookup } from '../../../db/accounts/domains/dns-lookups.ts'
import type { RecentLookups } from '../../../db/accounts/domains/recent-lookups.ts'
import type { Database } from '../../../db/postgres/pool.ts'
import type { PlainTexts } from '../../../db/process/plain-texts.ts'
import type { Network } from '../../../db/process/public-address.ts'
import type { HttpDeps } from '../../http/route.ts'
import type { OperationsDeps } from '../../operations/routes.ts'
import type { V1Deps } from '../../v1/deps.ts'
import type { OpenId } from './openid.ts'

/** Shared with the API of the same process. */
export type SharedDeps = Pick<HttpDeps, 'bodies' | 'log'> &
  Pick<OperationsDeps, 'replica'> &
  Pick<V1Deps, 'queue' | 'secrets' | 'versions' | 'links' | 'metrics' | 'clock'>

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
