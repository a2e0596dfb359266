/** The declaration of a hook, and the dependencies of all hooks. list.ts lists them for the code that uses them. */
import type { ObjectShape } from 'yup'
import type { Database } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { PublicRoute } from '../http/route.ts'
import type { Accepts } from '../sends/accepts.ts'

export type DeclaredHook = {
  settings: ObjectShape
  /** The setting that enables the hook. */
  switched_by: string
  /** Returns the error in the combination of its settings, or null. */
  fault?(settings: never): { path: string; message: string } | null
  /** Creates the dependencies that verify reports. A value is null if it isn't configured. */
  open(settings: never): object
  routes: readonly PublicRoute<never>[]
}

/** @template Own the part that comes from a hook's settings */
export type HookDeps<Own = unknown> = {
  accepts: Accepts
  database: Database
  secrets: Secrets
  hooks: Own
  metrics: Metrics
  log: Log
}
