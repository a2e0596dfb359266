/**
 * All queues of the service: payloads, retries and dead letter queues. The release step creates them with
 * these names and options. Producers and workers share only this module.
 *
 * Glossary of the queue and the workers:
 * - job: usually the work for one row. Its ID is then the row's, so a row never has two.
 * - claim: a job that this process has fetched. Without heartbeats, another worker gets the job.
 * - attempt: one claim of a job. Its number is never reused, so a late end of one attempt can't end another.
 * - counted attempt: the provider was contacted about the message itself.
 * - simulator: replaces the providers of test teams. The recipient decides its responses. It sends nothing.
 * - sender: a relay, an SES account, a WhatsApp number or a webhook endpoint.
 * - circuit breaker: pauses a failing sender. After each pause, one message of all workers probes it.
 * - reserve: count a send towards its sender's rate limit ahead of time, so that all workers keep to the limit.
 * - accepted: the provider has the message. It is never sent again.
 * - lost response: an attempt with an unknown outcome. The message may have arrived.
 * - settle: store the result of a claimed job (End), in the transaction that stores the work's results.
 * - write buffer: collects the results of many sends, so that one transaction settles them.
 * - deferred: due later, after a temporary rejection (counted) or a snooze (not counted).
 * - paused: a sender, a recipient or a queue. Waiting messages are neither attempted nor failed.
 * - poison job: its workers died with it. It is attempted separately, so that it affects no other job.
 * - dead letter: a job that is no longer retried, and needs manual action.
 * - requeue: give a message that wasn't accepted a new job. A manual requeue resets its attempts.
 * - redrive: move dead letters of a queue back, so that they are retried.
 * - background job: a manual bulk action that workers run in slices (maintenance/background-jobs).
 * - sweep: the scheduled job that requeues rows whose jobs the queue has lost. Attempts keep counting.
 * - parked: a report that can't be parsed or matched, and needs manual action.
 */
import { array, boolean, type InferType, object, string } from 'yup'
import { keysOf } from '../validation/keys.ts'

const DAY = 86_400

/** The group of jobs whose messages are large. */
export const LARGE = 'large'

/** The options of a queue. Times are in seconds. See pg-boss's queue options of the same names. */
type QueueOptions = {
  retryLimit: number
  retryDelay: number
  /** The longest delay. If it is set, the delay doubles from retry to retry. */
  retryDelayMax?: number
  expireInSeconds: number
  heartbeatSeconds: number
  /** Uses its own table, for queues that every message passes. */
  partition: boolean
}

/**
 * Options for delivery. Retries after failed sends are decided in workers/delivery/retry-policy.ts. These
 * options are for jobs whose worker died, which move to another worker immediately. The expiry is longer than
 * the longest send: 50 MiB at 64 KiB/s, and 10 minutes for the server's response to the data.
 */
const delivery = {
  retryLimit: 64,
  retryDelay: 2,
  expireInSeconds: 1_800,
  heartbeatSeconds: 10,
  partition: true,
}

/** Options for all other queues, which set the rest. */
const background = { heartbeatSeconds: 10, partition: false }

/** A user waits for a sync, and can request it again. */
const syncing = { ...background, retryLimit: 2, retryDelay: 5, retryDelayMax: 60, expireInSeconds: 300 }

/**
 * The retry delay of slices after a worker died, in seconds. It doesn't double, because each slice counts as an
 * attempt. Otherwise one death after minutes of work would cause the longest delay.
 */
const TURN_LOST = 5

const id = string().required()
const emailRef = object({ team_id: id, email_id: id })
/** `large` if known when the job is created. Workers can exclude such jobs. */
const singleRef = emailRef.shape({ large: boolean().optional() })
const whatsappRef = object({ team_id: id, message_id: id })
/** A job of a test team has another type, so that code that contacts a provider can't process it. */
const simulated = { test: boolean().isTrue().required() }
const testRef = emailRef.shape(simulated)
const testWhatsappRef = whatsappRef.shape(simulated)
const webhookRef = object({ team_id: id, message_id: id, endpoint_id: id })
/** A number other than the default one. It is the job's group, so that each number is claimed on its own. */
const numberRef = whatsappRef.shape({ phone_number_id: id })
/** `wish` is an additional use of the list. `add` adds one of its templates. */
const syncRef = object({
  ...{ team_id: id, sync_id: id },
  wish: string().oneOf(['available', 'add']),
  name: string(),
  language: string(),
})
/** `reports`: several reports from one commit. `report_id` is then only the job's ID. */
const reportRef = object({ report_id: id, reports: array(id) })
const checkRef = object({ check_id: id })
const backgroundJobRef = object({ background_job_id: id })
const broadcastRef = object({ team_id: id, broadcast_id: id })
/** The failed object: a webhook, a broadcast, a domain, or a team's reputation (`paused`, or the warning). */
const noticeRef = object({
  ...{ team_id: id, notice_id: id },
  ...{ endpoint_id: string(), broadcast_id: string(), domain_id: string(), template_id: string() },
  ...{ category_before: string(), reputation: string() },
})
const upsertRef = object({ team_id: id, upsert_id: id })

export const JOBS = {
  'deliver-email': {
    payload: singleRef,
    id: 'email_id',
    options: delivery,
    shared: true,
    group: ({ large }: InferType<typeof singleRef>) => (large ? LARGE : null),
  },
  'deliver-broadcast': { payload: emailRef, id: 'email_id', options: delivery, shared: true },
  'deliver-whatsapp': { payload: whatsappRef, id: 'message_id', options: delivery, shared: true },
  /** Messages with media, named variables and similar parts. Version 0.1.0 would send them without these. */
  'deliver-whatsapp-parts': { payload: whatsappRef, id: 'message_id', options: delivery, shared: true },
  'deliver-whatsapp-number': {
    payload: numberRef,
    id: 'message_id',
    options: delivery,
    shared: true,
    group: ({ phone_number_id }: InferType<typeof numberRef>) => `whatsapp:${phone_number_id}`,
    by_group: 'place',
  },
  'deliver-test': { payload: testRef, id: 'email_id', options: delivery, shared: true },
  'deliver-test-whatsapp': { payload: testWhatsappRef, id: 'message_id', options: delivery, shared: true },
  'deliver-webhook': {
    payload: webhookRef,
    id: 'message_id',
    options: { ...delivery, expireInSeconds: 300 },
    shared: true,
    group: ({ endpoint_id }: InferType<typeof webhookRef>) => `webhook:${endpoint_id}`,
    by_group: 'due',
  },
  'sync-whatsapp-templates': { payload: syncRef, id: 'sync_id', options: syncing },
  'sync-whatsapp-number-templates': { payload: syncRef, id: 'sync_id', options: syncing },
  'ingest-report': {
    payload: reportRef,
    id: 'report_id',
    // Waiting for a message that doesn't exist yet isn't an attempt. The retries are for crashes and database
    // outages.
    options: {
      ...background,
      retryLimit: 20,
      retryDelay: 4,
      retryDelayMax: 300,
      expireInSeconds: 120,
      partition: true,
    },
  },
  'upsert-contacts': {
    payload: upsertRef,
    id: 'upsert_id',
    // A client is waiting, so the first retries come quickly. The work was accepted, so retries continue for
    // days.
    options: { ...background, retryLimit: 300, retryDelay: 1, retryDelayMax: 1_800, expireInSeconds: 120 },
  },
  'run-background-job': {
    payload: backgroundJobRef,
    id: 'background_job_id',
    // The work was accepted, and continues at its cursor. Retries continue for three days.
    options: {
      ...background,
      retryLimit: (3 * DAY) / TURN_LOST,
      retryDelay: TURN_LOST,
      expireInSeconds: 300,
    },
  },
  'expand-broadcast': {
    payload: broadcastRef,
    /** The ID of the broadcast, so two jobs never expand the same one. */
    id: 'broadcast_id',
    // Retries are for crashes and database outages. The sweep finds broadcasts that lost their job.
    options: { ...background, retryLimit: DAY / TURN_LOST, retryDelay: TURN_LOST, expireInSeconds: 120 },
  },
  'mail-owners': {
    payload: noticeRef,
    id: 'notice_id',
    options: { ...background, retryLimit: 20, retryDelay: 5, retryDelayMax: 600, expireInSeconds: 60 },
  },
  'check-email': {
    payload: checkRef,
    id: 'check_id',
    // A user waits for it, and can request it again.
    options: { ...background, retryLimit: 2, retryDelay: 2, expireInSeconds: 60 },
  },
} as const satisfies Record<
  string,
  {
    payload: unknown
    /** The field of the payload with the job's ID. If the job has a row, it is the row's. */
    id: string
    options: QueueOptions
    shared?: true
    /**
     * The part of the queue that can stay unclaimed on its own: the messages of a paused sender, or large messages.
     */
    group?: (payload: never) => string | null
    /**
     * If set, each group is claimed with its own capacity (group-claims.sql.ts). Jobs in a group are ordered by due
     * time (`due`) or alternate between teams (`place`).
     */
    by_group?: 'due' | 'place'
  }
>

export type JobName = keyof typeof JOBS

/** Queues that are a part of another one. Workers process both, and an operator pauses both. */
export const PART_OF: ReadonlyMap<string, JobName> = new Map([['deliver-whatsapp-parts', 'deliver-whatsapp']])

/**
 * How a claimed job ends.
 * - completed: done and deleted. With an `output`, it is kept for some minutes for a caller that waits for
 *   it.
 * - again: an attempt that is retried after `seconds`.
 * - snoozed: checked again after `seconds`, without using an attempt.
 * - failed: retried after the queue's own delay, or dead-lettered without retries left.
 * - given_up: dead-lettered.
 */
export type End =
  | { end: 'completed'; output?: object }
  | { end: 'again' | 'snoozed'; seconds: number }
  | { end: 'failed' | 'given_up'; reason: string }

/** The queues in which jobs alternate between teams. */
export type SharedJob = {
  [J in JobName]: (typeof JOBS)[J] extends { shared: true } ? J : never
}[JobName]
export const isSharedJob = (job: JobName): job is SharedJob => 'shared' in JOBS[job]
export const SHARED_JOBS = keysOf(JOBS).filter(isSharedJob)
/** Queues that are claimed by group, and the order within a group. */
export const BY_GROUP: ReadonlyMap<string, 'due' | 'place'> = new Map(
  Object.entries(JOBS).flatMap(([job, given]) => ('by_group' in given ? [[job, given.by_group]] : [])),
)
/** True if jobs alternate between teams within each group, not in the complete queue. */
export const hasLanesByGroup = (job: JobName): boolean => BY_GROUP.get(job) === 'place'
/** Returns the group of a job. Null if it has none, or its queue has no groups. */
export const toGroup = <J extends JobName>(job: J, payload: Payload<J>): string | null =>
  (JOBS[job] as { group?: (payload: Payload<J>) => string | null }).group?.(payload) ?? null

export type ScheduleName = keyof typeof SCHEDULES
export type Payload<J extends JobName> = InferType<(typeof JOBS)[J]['payload']>

/** Returns the dead letter queue of a queue. */
export const deadLetterQueue = (job: JobName): string => `${job}-dead`

/**
 * Scheduled jobs, in UTC. A renamed job keeps its queue of 0.1.0 (`queue`). Workers of both versions then share
 * it during an upgrade and a rollback, and still run the job in one process at a time.
 */
export const SCHEDULES = {
  'requeue-stale': { cron: '*/5 * * * *' },
  'count-stats': { cron: '* * * * *', queue: 'count-figures' },
  'purge-whatsapp-texts': { cron: '* * * * *' },
  'purge-upserts': { cron: '*/10 * * * *', queue: 'forget-upserts' },
  'purge-reports': { cron: '7 * * * *', queue: 'forget-reports' },
  'purge-sessions': { cron: '37 * * * *', queue: 'forget-sessions' },
  'purge-messages': { cron: '23 3 * * *', queue: 'forget-messages' },
  'review-suppressions': { cron: '* * * * *' },
  'copy-suppressions': { cron: '* * * * *' },
  'check-whatsapp-numbers': { cron: '17 * * * *' },
  'refresh-whatsapp-templates': { cron: '11 3 * * *' },
  // Every night, in several runs, because one run may not have the time for all domains.
  'recheck-domains': { cron: '*/5 2-4 * * *' },
} as const satisfies Record<string, { cron: string; queue?: string }>

/** Returns the queue of a scheduled job. */
export const scheduleQueue = (name: ScheduleName): string => {
  const { queue = name }: { cron: string; queue?: string } = SCHEDULES[name]
  return queue
}
export const SCHEDULE_QUEUES: readonly string[] = keysOf(SCHEDULES).map(scheduleQueue)

/** How long a message is retried before it fails: 24 h (DECISIONS: Temporary failures), in milliseconds. */
export const DELIVERY_DEADLINE_MS = DAY * 1_000
/** The maximum age of jobs and dead letters, in seconds. */
export const JOB_RETENTION_S = 30 * DAY

/** The failure reason if no attempt has returned one. */
export const NO_ANSWER = 'the worker stopped during every attempt'
