/** What the providers' hooks work with, and how they are declared. */
import type { Log } from '../../db/process/log.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { publicRoutes } from '../http/route.ts'
import type { Accepts } from '../sends/accepts.ts'
import type { Sns } from './sns.ts'

/** How the hooks prove that a report is genuine; null: not configured, so that nothing is. */
export type HookSettings = {
  smtp_report_token: string | null
  whatsapp_app_secret: string | null
  whatsapp_verify_token: string | null
}

export type HookDeps = {
  accepts: Accepts
  secrets: Secrets
  hooks: HookSettings
  sns: Sns
  metrics: Metrics
  log: Log
}

export const publicRoute = publicRoutes<HookDeps>()
