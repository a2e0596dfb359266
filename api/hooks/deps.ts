/** The dependencies of the providers' hooks. */
import type { Database } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { Accepts } from '../sends/accepts.ts'

/** @template Own the part that comes from a hook's settings */
export type HookDeps<Own = unknown> = {
  accepts: Accepts
  database: Database
  secrets: Secrets
  hooks: Own
  metrics: Metrics
  log: Log
}
