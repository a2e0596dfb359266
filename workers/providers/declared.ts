/**
 * What a provider says of itself, in one value (declared.ts in its folder): its name, its settings, how it is opened,
 * how its reports are read. list.ts has them all; what opens or configures providers walks over that list.
 * Must not know any one of them.
 */
import type { ObjectShape, StringSchema } from 'yup'
import type { Database } from '../../db/postgres/pool.ts'
import { commaList } from '../../db/process/config.ts'
import type { Log } from '../../db/process/log.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import type { JobName } from '../../db/queue/jobs.ts'
import type { EmailProvider } from './provider.ts'
import type { ReportCut, ReportReader } from './report.ts'

/** How many sends run at once in this process. */
export type Sends = { WORKER_CONCURRENCY: number }

/** What reports are read with. `settings`: those of all providers, as far as they are set. */
export type ReaderContext<S> = { secrets: Secrets; settings: Partial<S> }

export type Declared = {
  /** As its reports and its settings name it. */
  name: string
  settings: ObjectShape
  reader(context: ReaderContext<never>): ReportReader
  /** Cuts a raw report to what may be stored of it, where web processes of 0.1.0 store more. */
  cut?: ReportCut
}

/** A way to send email; EMAIL_PROVIDER chooses one. Opening it loads its SDK, which is some megabytes. */
export type DeclaredForEmail = Declared & {
  open(settings: never, log: Log): Promise<EmailProvider>
  /** A way out for broadcasts alone, where settings name one. @param most how many sends at once. */
  openBulk?(settings: never, most: number): Promise<EmailProvider | null>
}

/** What another channel goes out through, in processes that are set up for it. */
export type DeclaredForChannel = Declared & {
  /** The queues that no other process works on. */
  queues: readonly JobName[]
  isSet(settings: never): boolean
  /** What is said of a process that is not set up for it. */
  unset: string
  /** What is to be warned of at the start; null: nothing. */
  warning?(settings: never, now: Date): string | null
  /** null: it is not set up. */
  open(settings: never): {
    provider: { close(): Promise<void> }
    /** Runs once when the process starts, before any work. */
    begin(database: Database): Promise<void>
  } | null
}

/** A worker on one of these needs a provider of email. */
const EMAIL_QUEUES: readonly string[] = ['deliver-email', 'deliver-broadcast']

/** Whether a process delivers email. @param queues the setting WORKER_QUEUES. */
export const deliversEmail = (queues: string | undefined): boolean => {
  const named = commaList(queues)
  return named.length === 0 || EMAIL_QUEUES.some((queue) => named.includes(queue))
}

/** A setting that is required of a process which sends email through this provider. */
export const neededToSend = (name: string, setting: StringSchema<string | undefined>, missing: string) =>
  setting.when(['EMAIL_PROVIDER', 'WORKER_QUEUES'], ([provider, queues], schema) =>
    provider === name && deliversEmail(queues) ? schema.required(missing) : schema,
  )
