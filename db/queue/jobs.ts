/**
 * Every queue of the service: its payload, how it retries, where its dead letters go.
 * Owns the names and options that the migrate step creates; producers and workers meet only here.
 * Must not import a handler.
 */
import { type InferType, object, string } from 'yup'

const DAY = 86_400

/** How a queue is kept; times in seconds. See pg-boss's queue options of the same names. */
export type QueueOptions = {
  retryLimit: number
  retryDelay: number
  retryDelayMax: number
  expireInSeconds: number
  heartbeatSeconds: number
  /** Gets a table of its own: for queues that see every message. */
  partition: boolean
}

// Pauses begin at 2 to 4 s (decisions: at most 30) and double up to half an hour; a killed worker's jobs wait as long.
// A message is given up at its own deadline of 24 h, which these tries outlast by two hours: one that kills every
// worker that touches it never gets to that deadline, and ends here.
const untilDeadline = { retryLimit: 64, retryDelay: 2, retryDelayMax: 1_800 }

const emailRef = object({ team_id: string().required(), email_id: string().required() })
const whatsappRef = object({ team_id: string().required(), message_id: string().required() })
const syncRef = object({ team_id: string().required(), sync_id: string().required() })
const reportRef = object({ report_id: string().required() })

const upsertRef = object({ team_id: string().required(), upsert_id: string().required() })

export const JOBS = {
  'deliver-email': {
    payload: emailRef,
    /** The job's id is the row's: a row never has two jobs. */
    id: (payload: InferType<typeof emailRef>) => payload.email_id,
    options: { ...untilDeadline, expireInSeconds: 120, heartbeatSeconds: 10, partition: true },
  },
  'deliver-whatsapp': {
    payload: whatsappRef,
    /** The job's id is the row's: a row never has two jobs. */
    id: (payload: InferType<typeof whatsappRef>) => payload.message_id,
    options: { ...untilDeadline, expireInSeconds: 120, heartbeatSeconds: 10, partition: true },
  },
  'sync-whatsapp-templates': {
    payload: syncRef,
    id: (payload: InferType<typeof syncRef>) => payload.sync_id,
    // A person waits for it, and can ask again.
    options: {
      retryLimit: 2,
      retryDelay: 5,
      retryDelayMax: 60,
      expireInSeconds: 300,
      heartbeatSeconds: 10,
      partition: false,
    },
  },
  'ingest-report': {
    payload: reportRef,
    id: (payload: InferType<typeof reportRef>) => payload.report_id,
    // Waiting for a message that is not there yet is no attempt: these are for crashes and a lost database.
    options: {
      retryLimit: 20,
      retryDelay: 4,
      retryDelayMax: 300,
      expireInSeconds: 120,
      heartbeatSeconds: 10,
      partition: true,
    },
  },
  'upsert-contacts': {
    payload: upsertRef,
    id: (payload: InferType<typeof upsertRef>) => payload.upsert_id,
    // A client is waiting: tried again soon at first, then for some days, since the work is promised (design §7).
    options: {
      retryLimit: 300,
      retryDelay: 1,
      retryDelayMax: 1_800,
      expireInSeconds: 120,
      heartbeatSeconds: 10,
      partition: false,
    },
  },
} as const satisfies Record<
  string,
  { payload: unknown; id: (payload: never) => string; options: QueueOptions }
>

export type JobName = keyof typeof JOBS
/** Jobs that run by the clock. */
export type ScheduleName = keyof typeof SCHEDULES
export type Payload<J extends JobName> = InferType<(typeof JOBS)[J]['payload']>

/** The queue that takes what a queue gave up on. */
export const deadLetterOf = (job: JobName): string => `${job}-dead`

/** Jobs that run by the clock, in UTC. */
export const SCHEDULES = {
  'requeue-stale': { cron: '*/5 * * * *' },
  'count-figures': { cron: '*/5 * * * *' },
  'forget-upserts': { cron: '*/10 * * * *' },
  'forget-reports': { cron: '7 * * * *' },
  'forget-sessions': { cron: '37 * * * *' },
  'forget-messages': { cron: '23 3 * * *' },
  'review-suppressions': { cron: '23 * * * *' },
} as const

/** How long a message is tried before it is given up: 24 h (decisions: refused for now), in milliseconds. */
export const DELIVERY_DEADLINE = DAY * 1_000
/** Jobs are kept for a month at most, dead letters too; in seconds. */
export const RETENTION = 30 * DAY

/** Why a job was given up when no attempt of it has said anything. */
export const NO_ANSWER = 'each attempt ended without an answer from its worker'
