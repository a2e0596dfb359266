/**
 * Every queue of the service: its payload, how it retries, where its dead letters go.
 * Owns the names and options that the migrate step creates; producers and workers meet only here.
 * Must not import a handler.
 *
 * Glossary of the queue and the workers:
 * - job: the work for one row. Its id is the row's, so a row never has two.
 * - claim: a job that this process has fetched. Heartbeats keep it; without them another worker gets the job.
 * - attempt: one claim of a job. Its number is never used again, so a late end of one attempt cannot end another.
 * - try: an attempt that counts, because the provider was asked about the message itself.
 * - simulator: stands in for the providers of test teams: it answers and reports by the recipient, and sends nothing.
 * - sender: what messages go out through: a relay, an SES account, a WhatsApp number, a webhook's endpoint.
 * - circuit breaker: pauses a sender in trouble; after each pause one message in the whole fleet probes it.
 * - reserve: take a send's place in its sender's rate ahead of time, so that the fleet keeps to it.
 * - handed over: taken by the provider. From then on a message is not sent again.
 * - lost answer: a try whose outcome is unknown. The message may have arrived.
 * - settle: write what becomes of a claimed job (End), in the transaction that records the work's results.
 * - write buffer: collects the results of many sends, so that one transaction settles them all.
 * - put off: due later, because it was refused for now (a try, `deferred` in timelines) or snoozed (no try).
 * - paused: said of a sender, a recipient or a queue. What waits for it is neither tried nor given up.
 * - poison job: one whose workers died with it. It is tried alone, so that it takes no other with it.
 * - given up: moved to the dead letters, where it waits for a person.
 * - requeue: give a message that was not handed over a fresh job. When a person does it, tries count from zero.
 * - redrive: move all dead letters of a queue back, so that they are tried again.
 * - background job: what a person has begun and workers go on with, slice by slice (maintenance/background-jobs).
 * - sweep: the scheduled job that requeues rows when the queue has lost their jobs. Their tries go on counting.
 * - parked: said of a report that cannot be read or matched. It waits for a person.
 */
import { boolean, type InferType, object, string } from 'yup'

const DAY = 86_400

/** The group of jobs whose messages are large. */
export const LARGE = 'large'

/** How a queue is kept; times in seconds. See pg-boss's queue options of the same names. */
type QueueOptions = {
  retryLimit: number
  retryDelay: number
  /** With it the pause doubles from one retry to the next, up to this. */
  retryDelayMax?: number
  expireInSeconds: number
  heartbeatSeconds: number
  /** Gets a table of its own: for queues that see every message. */
  partition: boolean
}

/**
 * How delivery is kept. Its pauses are its own (workers/delivery/retry-policy.ts): these are for jobs whose worker
 * died, which go to another one at once. The expiry is longer than the longest send: 50 MiB at 64 KiB/s, and 10 min for
 * the server's answer after the final dot.
 */
const delivery = {
  retryLimit: 64,
  retryDelay: 2,
  expireInSeconds: 1_800,
  heartbeatSeconds: 10,
  partition: true,
}

/** How all else is kept, with the rest of its own. */
const background = { heartbeatSeconds: 10, partition: false }

/**
 * The pause after a turn whose worker died, in seconds, for work that goes on turn by turn. Never one that doubles:
 * each turn is an attempt, so that after some minutes of work a single death would cost the longest pause.
 */
const TURN_LOST = 5

const emailRef = object({ team_id: string().required(), email_id: string().required() })
/** `large` where it is known when the job is made: workers may leave these alone. */
const singleRef = emailRef.shape({ large: boolean().optional() })
const whatsappRef = object({ team_id: string().required(), message_id: string().required() })
/** Of a test team: such a job is of another type, so that nothing which speaks to a provider takes it. */
const simulated = { test: boolean().isTrue().required() }
const testRef = emailRef.shape(simulated)
const testWhatsappRef = whatsappRef.shape(simulated)
const webhookRef = object({
  team_id: string().required(),
  message_id: string().required(),
  endpoint_id: string().required(),
})
/** Of a number that isn't the default one: it is the job's group, so that each number is claimed by itself. */
const numberRef = whatsappRef.shape({ phone_number_id: string().required() })
/** `wish`: what to do with the list besides; `add` names a template of it. */
const syncRef = object({
  team_id: string().required(),
  sync_id: string().required(),
  wish: string().oneOf(['available', 'add']),
  name: string(),
  language: string(),
})
const reportRef = object({ report_id: string().required() })
const checkRef = object({ check_id: string().required() })

const backgroundJobRef = object({ background_job_id: string().required() })
const broadcastRef = object({ team_id: string().required(), broadcast_id: string().required() })
/** What stopped or fails: a webhook, a broadcast, a domain, or a team's reputation (`paused`, or the warning). */
const noticeRef = object({
  team_id: string().required(),
  endpoint_id: string(),
  broadcast_id: string(),
  domain_id: string(),
  template_id: string(),
  category_before: string(),
  reputation: string(),
  notice_id: string().required(),
})
const upsertRef = object({ team_id: string().required(), upsert_id: string().required() })

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
  'sync-whatsapp-templates': {
    payload: syncRef,
    id: 'sync_id',
    // A person waits for it, and can ask again.
    options: { ...background, retryLimit: 2, retryDelay: 5, retryDelayMax: 60, expireInSeconds: 300 },
  },
  'sync-whatsapp-number-templates': {
    payload: syncRef,
    id: 'sync_id',
    options: { ...background, retryLimit: 2, retryDelay: 5, retryDelayMax: 60, expireInSeconds: 300 },
  },
  'ingest-report': {
    payload: reportRef,
    id: 'report_id',
    // Waiting for a message that is not there yet is no attempt: these are for crashes and a lost database.
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
    // A client is waiting: tried again soon at first, then for some days, since the work is promised.
    options: { ...background, retryLimit: 300, retryDelay: 1, retryDelayMax: 1_800, expireInSeconds: 120 },
  },
  'run-background-job': {
    payload: backgroundJobRef,
    id: 'background_job_id',
    // It is promised, and goes on where it was: tried again for three days.
    options: {
      ...background,
      retryLimit: (3 * DAY) / TURN_LOST,
      retryDelay: TURN_LOST,
      expireInSeconds: 300,
    },
  },
  'expand-broadcast': {
    payload: broadcastRef,
    /** The broadcast's: two never walk for one. */
    id: 'broadcast_id',
    // These are for crashes and a lost database; the sweep finds what has lost its job.
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
    // A person waits for it, and can ask again.
    options: { ...background, retryLimit: 2, retryDelay: 2, expireInSeconds: 60 },
  },
} as const satisfies Record<
  string,
  {
    payload: unknown
    /** The field of the payload that is the job's id: its row's. */
    id: string
    options: QueueOptions
    shared?: true
    /**
     * What may stay unclaimed together: the messages of a sender, by its key, where a queue's messages have many, while
     * that is paused; large messages.
     */
    group?: (payload: never) => string | null
    /**
     * Whether each group is claimed by its own room (group-claims.sql.ts): an index is made for that. `due`: what is
     * due first goes first. `place`: teams that share a group take turns.
     */
    by_group?: 'due' | 'place'
  }
>

export type JobName = keyof typeof JOBS

/**
 * How a claimed job ends.
 * - completed: over, and deleted; with an `output` it is kept for some minutes, for the caller that waits for it.
 * - again: tried, and to be tried once more after `seconds`.
 * - snoozed: looks again after `seconds`; no try.
 * - failed: to be tried again after the queue's own pause, or given up when its retries are used up.
 * - given_up: to the dead letters.
 */
export type End =
  | { end: 'completed'; output?: object }
  | { end: 'again' | 'snoozed'; seconds: number }
  | { end: 'failed' | 'given_up'; reason: string }

/** The queues before which teams stand in line. */
export type SharedJob = {
  [J in JobName]: (typeof JOBS)[J] extends { shared: true } ? J : never
}[JobName]
export const isSharedJob = (job: JobName): job is SharedJob => 'shared' in JOBS[job]
export const SHARED_JOBS = (Object.keys(JOBS) as JobName[]).filter(isSharedJob)
/** The queues that are claimed by the groups of their jobs, and the order within a group. */
export const BY_GROUP: ReadonlyMap<string, 'due' | 'place'> = new Map(
  Object.entries(JOBS).flatMap(([job, given]) => ('by_group' in given ? [[job, given.by_group]] : [])),
)
/** Whether teams take turns within each group of a queue, not in the queue as a whole. */
export const hasLineByGroup = (job: JobName): boolean => BY_GROUP.get(job) === 'place'
/** What a job may stay unclaimed with; null where its queue has no groups. */
export const groupOf = <J extends JobName>(job: J, payload: Payload<J>): string | null =>
  (JOBS[job] as { group?: (payload: Payload<J>) => string | null }).group?.(payload) ?? null

/** Jobs that run by the clock. */
export type ScheduleName = keyof typeof SCHEDULES
export type Payload<J extends JobName> = InferType<(typeof JOBS)[J]['payload']>

/** The queue that takes what a queue gave up on. */
export const deadLetterOf = (job: JobName): string => `${job}-dead`

/** Jobs that run by the clock, in UTC. */
export const SCHEDULES = {
  'requeue-stale': { cron: '*/5 * * * *' },
  'count-figures': { cron: '* * * * *' },
  'purge-whatsapp-texts': { cron: '* * * * *' },
  'forget-upserts': { cron: '*/10 * * * *' },
  'forget-reports': { cron: '7 * * * *' },
  'forget-sessions': { cron: '37 * * * *' },
  'forget-messages': { cron: '23 3 * * *' },
  'review-suppressions': { cron: '* * * * *' },
  'copy-suppressions': { cron: '* * * * *' },
  'check-whatsapp-numbers': { cron: '17 * * * *' },
  'refresh-whatsapp-templates': { cron: '11 3 * * *' },
  // Each night, in as many rounds as there are domains for.
  'recheck-domains': { cron: '*/5 2-4 * * *' },
} as const

/** How long a message is tried before it is given up: 24 h (DECISIONS: Temporary failures), in milliseconds. */
export const DELIVERY_DEADLINE_MS = DAY * 1_000
/** Jobs are kept for a month at most, dead letters too; in seconds. */
export const JOB_RETENTION_S = 30 * DAY

/** Why a job was given up when no attempt of it has said anything. */
export const NO_ANSWER = 'the worker stopped during every attempt'
