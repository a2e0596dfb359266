/**
 * The value that a provider declares itself with (declared.ts in its folder): its name, its settings, how it is
 * opened, and how its reports are read. list.ts contains them all.
 */
import type { ObjectShape, StringSchema } from 'yup'
import type { Database } from '../../db/postgres/pool.ts'
import { commaList } from '../../db/process/config.ts'
import type { Log } from '../../db/process/log.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { JobName } from '../../db/queue/jobs.ts'
import type { EmailProvider } from './provider.ts'
import type { ReportCut, ReportReader } from './report.ts'

export type Sends = { WORKER_CONCURRENCY: number }

/** The context for reading reports. `settings` are the set ones of all providers. */
export type ReaderContext<S> = { secrets: Secrets; settings: Partial<S> }

export type Declared = {
  name: string
  settings: ObjectShape
  reader(context: ReaderContext<never>): ReportReader
  /** Reduces a raw report to the part that may be stored, because web processes of 0.1.0 store more. */
  cut?: ReportCut
}

/** An email provider that EMAIL_PROVIDER can choose. Its SDK, some megabytes, is loaded when it is opened. */
export type DeclaredForEmail = Declared & {
  open(settings: never, log: Log): Promise<EmailProvider>
  /** Opens a separate provider for broadcasts, if settings name one. @param most concurrent sends. */
  openBulk?(settings: never, most: number): Promise<EmailProvider | null>
}

export type DeclaredForChannel = Declared & {
  /** The queues that no other process works on. */
  queues: readonly JobName[]
  isSet(settings: never): boolean
  unset: string
  /** Returns a startup warning, or null. */
  warning?(settings: never, now: Date): string | null
  /** Returns null if it isn't configured. `begin` runs once when the process starts, before any work. */
  open(
    settings: never,
  ): { provider: { close(): Promise<void> }; begin(database: Database): Promise<void> } | null
}

/** Queues whose workers need an email provider. */
const EMAIL_QUEUES: readonly string[] = ['deliver-email', 'deliver-broadcast']

/** True if a process delivers email. @param queues the setting WORKER_QUEUES. */
export const deliversEmail = (queues: string | undefined): boolean => {
  const named = commaList(queues)
  return named.length === 0 || EMAIL_QUEUES.some((queue) => named.includes(queue))
}

/** A setting that is required in a process that sends email through this provider. */
export const neededToSend = (name: string, setting: StringSchema<string | undefined>, missing: string) =>
  setting.when(['EMAIL_PROVIDER', 'WORKER_QUEUES'], ([provider, queues], schema) =>
    provider === name && deliversEmail(queues) ? schema.required(missing) : schema,
  )
