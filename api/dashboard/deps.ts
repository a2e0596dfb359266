/** What the dashboard works with beside what every route has. Types alone. */
import type { TxtLookup } from '../../db/domains/verify.ts'
import type { Database } from '../../db/postgres/pool.ts'
import type { Network } from '../../db/process/public-address.ts'
import type { OpenId } from './openid.ts'

/** What the dashboard has of its own; made by main.ts. */
export type DashboardDeps = {
  /** A pool of its own with a short statement timeout: no page keeps the API waiting. */
  database: Database
  lookupTxt: TxtLookup
  /** Private networks that webhooks may reach. */
  webhookNetworks: readonly Network[]
  /** The address that people reach the service at; null: the one that they asked for. */
  publicUrl: string | null
  /** Who sign-in links by mail come from; null: there are none. */
  from: string | null
  openid: OpenId | null
  /** Which optional settings this process has; never their values. */
  switches: readonly { name: string; isSet: boolean }[]
}
