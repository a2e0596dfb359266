/** Settings of a worker process. With db/process/config.ts and api/config.ts the only reader of process.env. */
import { type InferType, number, object, string } from 'yup'
import { type RampStart, rampStartOf } from '../db/accounts/domains/ramp.ts'
import type { ReputationLimits } from '../db/accounts/teams/reputation.ts'
import type { Retention } from '../db/maintenance/retention/purge.ts'
import type { Brakes } from '../db/messages/broadcasts/auto-pause.ts'
import type { Notices } from '../db/messages/notice.ts'
import {
  commaList,
  dnsServer,
  misspeltSettings,
  networkList,
  ownMailbox,
  publicUrl,
  readSettings,
  returnDomainOf,
  returnPathDomain,
  settingsOf,
  sharedSettings,
  wholeNumber,
} from '../db/process/config.ts'
import { createNames } from '../db/process/dns.ts'
import { byMemory } from '../db/process/memory.ts'
import { networksOf } from '../db/process/public-address.ts'
import { JOBS, type JobName } from '../db/queue/jobs.ts'
import { parseMailbox } from '../db/validation/address.ts'
import { deliversEmail } from './providers/declared.ts'
import { CHANNEL_PROVIDERS, EMAIL_PROVIDERS } from './providers/list.ts'
import { RETRY_PAUSES_S, type WebhookDelivery } from './providers/webhook/post.ts'

const QUEUES = Object.keys(JOBS)

const percent = () =>
  number()
    .typeError('${path} must be a percentage, such as 0.1')
    .min(0.001, '${path} must be a percentage above 0')
    .max(100, '${path} must be a percentage, at most 100')

const percentOrOff = () =>
  number()
    .typeError('${path} must be a percentage, such as 0.3, or 0 to turn it off')
    .min(0, '${path} must be a percentage, or 0 to turn it off')
    .max(100, '${path} must be a percentage, at most 100')

const hours = () =>
  number()
    .typeError('${path} must be a number of hours, such as 24 or 0.5')
    .moreThan(0, '${path} must be above 0')
    .max(720, '${path} must be at most 720')

const EMAIL_NAMES = EMAIL_PROVIDERS.map(({ name }) => name)
const OF_CHANNELS = Object.values(CHANNEL_PROVIDERS)

const workerSettings = object({
  ...sharedSettings,
  EMAIL_PROVIDER: string()
    .oneOf(EMAIL_NAMES, `\${path} must be ${EMAIL_NAMES.join(' or ')}`)
    .default('smtp'),
  ...settingsOf(EMAIL_PROVIDERS),
  /** How many emails of broadcasts go out in a second, by all workers together. */
  BULK_SENDS_PER_SECOND: wholeNumber(1, 10_000),
  /** Above these parts of its mail a broadcast is paused: after 200 emails, or after 1,000 and three complaints. */
  BULK_MAX_BOUNCE_PERCENT: percent().default(5),
  BULK_MAX_COMPLAINT_PERCENT: percent().default(0.1),
  /** How a sending domain without history starts with broadcasts: emails on the first day x factor; or `off`. */
  DOMAIN_RAMP: string()
    .test(
      'ramp',
      '${path} must be off, or STARTxFACTOR such as 500x2',
      (value) => rampStartOf(value ?? 'off') !== undefined,
    )
    .default('off'),
  /** Above these parts of all its email of 24 hours a team's broadcasts and batch items are paused; 0: never. */
  TEAM_MAX_BOUNCE_PERCENT: percentOrOff().default(10),
  TEAM_MAX_COMPLAINT_PERCENT: percentOrOff().default(0.3),
  RETURN_PATH_DOMAIN: returnPathDomain,
  /** For how many hours an email is attempted that servers defer, before it bounces. */
  EMAIL_RETRY_HOURS: hours().default(24),
  /** After how many hours a sent email without any report ends a row of soft bounces. */
  SENT_COUNTS_AS_DELIVERED_HOURS: hours().default(24),
  WORKER_QUEUES: string()
    .test(
      'queues',
      `\${path} must name queues of ${QUEUES.join(', ')}`,
      (value) =>
        value === undefined ||
        (commaList(value).length > 0 && commaList(value).every((name) => QUEUES.includes(name))),
    )
    .test(
      'answers for email',
      '${path} names check-email without deliver-email: it is done by those that deliver email',
      (value) => !commaList(value).includes('check-email') || deliversEmail(value),
    ),
  ...settingsOf(OF_CHANNELS),
  /** How many webhooks are under way at once in this process, and which private networks they may reach. */
  WEBHOOK_CONCURRENCY: wholeNumber(1, 500).default(32),
  WEBHOOK_ALLOW: networkList,
  /** Who notices to owners come from, and the address of the dashboard that they lead to. */
  DASHBOARD_FROM: ownMailbox,
  /** Who gets mail to postmaster@ and abuse@, from DASHBOARD_FROM. */
  OPERATOR_EMAIL: ownMailbox,
  PUBLIC_URL: publicUrl,
  /** A DNS server to ask for the names in webhooks' URLs, in place of the system's. */
  DNS_SERVER: dnsServer,
  /** Whether recipients' names decide what becomes of an email: for the sandbox, where nothing is delivered. */
  SIMULATED_RECIPIENTS: string().oneOf(['yes'], '${path} must be yes'),
  /** How many provider calls run at once in this process. */
  WORKER_CONCURRENCY: wholeNumber(1, 500).default(20),
  /** How much memory the attachments of emails that are being sent may take, in MiB; less with little memory. */
  SEND_MEMORY_MB: wholeNumber(16, 65_536),
  /** For how many days reports, a message's events, body and row, and senders' events are kept; unset: for ever. */
  RETENTION_DAYS_REPORTS: wholeNumber(1, 3_650).default(30),
  RETENTION_DAYS_EVENTS: wholeNumber(1, 3_650).default(365),
  RETENTION_DAYS_BODIES: wholeNumber(1, 3_650),
  RETENTION_DAYS_MESSAGES: wholeNumber(1, 3_650),
  RETENTION_DAYS_SENDERS: wholeNumber(1, 3_650).default(365),
  /** For how many days after their last use the bytes of attachments are kept. */
  RETENTION_DAYS_FILES: wholeNumber(1, 3_650).default(3),
  /** For how many days the figures of a day are kept; charts show the last thirty. */
  RETENTION_DAYS_FIGURES: wholeNumber(31, 3_650).default(400),
  /** Where GET /health and GET /ready are answered; without it this worker listens nowhere. 0 picks a port. */
  HEALTH_PORT: wholeNumber(0, 65_535),
})

export type WorkerSettings = Readonly<InferType<typeof workerSettings>>

/** @throws SettingsFault naming every variable that is missing or malformed. */
export const readWorkerSettings = (env?: NodeJS.ProcessEnv): WorkerSettings =>
  readSettings(workerSettings, env)

const MIB = 1024 * 1024
/** The room for attachments in MiB, if nobody sets it: with MIN_MEMORY, and with enough. */
const [LEAST_SEND_MEMORY_MB, SEND_MEMORY_MB] = [32, 128]

/** How many bytes of attachments may be held. @param memory the process's limit in bytes. */
export const sendMemory = (settings: WorkerSettings, memory: number): number =>
  Math.floor((settings.SEND_MEMORY_MB ?? byMemory(memory, LEAST_SEND_MEMORY_MB, SEND_MEMORY_MB)) * MIB)

/** When a broadcast is paused by itself, when all bulk email of a team is, and how new domains start. */
export const pauseRules = (
  settings: WorkerSettings,
): { brakes: Brakes; reputation: ReputationLimits; ramp: RampStart | null } => ({
  ramp: rampStartOf(settings.DOMAIN_RAMP) ?? null,
  brakes: {
    bounce_percent: settings.BULK_MAX_BOUNCE_PERCENT,
    complaint_percent: settings.BULK_MAX_COMPLAINT_PERCENT,
  },
  reputation: {
    bounce_percent: settings.TEAM_MAX_BOUNCE_PERCENT,
    complaint_percent: settings.TEAM_MAX_COMPLAINT_PERCENT,
    least_emails: settings.TEAM_PAUSE_MIN_EMAILS,
  },
})

export const retentionOf = (settings: WorkerSettings): Retention => ({
  reports: settings.RETENTION_DAYS_REPORTS,
  events: settings.RETENTION_DAYS_EVENTS,
  bodies: settings.RETENTION_DAYS_BODIES ?? null,
  messages: settings.RETENTION_DAYS_MESSAGES ?? null,
  senders: settings.RETENTION_DAYS_SENDERS,
  files: settings.RETENTION_DAYS_FILES,
  figures: settings.RETENTION_DAYS_FIGURES,
})

/** For how long email is attempted, and where its bounces return to. */
export const emailRules = ({
  EMAIL_RETRY_HOURS,
  SENT_COUNTS_AS_DELIVERED_HOURS,
  RETURN_PATH_DOMAIN,
  SIMULATED_RECIPIENTS,
}: WorkerSettings) => ({
  simulated_recipients: SIMULATED_RECIPIENTS === 'yes',
  retry_ms: EMAIL_RETRY_HOURS * 3_600_000,
  sent_counts_ms: SENT_COUNTS_AS_DELIVERED_HOURS * 3_600_000,
  return_domain: returnDomainOf({ RETURN_PATH_DOMAIN }),
})

/** How the service writes to people. */
export const noticesOf = (settings: WorkerSettings): Notices => ({
  from: settings.DASHBOARD_FROM ?? null,
  operator: parseMailbox(settings.OPERATOR_EMAIL ?? '')?.address ?? null,
  site: settings.PUBLIC_URL ?? null,
})

export const webhooksOf = (settings: WorkerSettings): WebhookDelivery => ({
  concurrency: settings.WEBHOOK_CONCURRENCY,
  allowed: networksOf(commaList(settings.WEBHOOK_ALLOW)),
  resolve: createNames(settings.DNS_SERVER).addresses,
  pauses: RETRY_PAUSES_S,
})

/** The queues this process works on: WORKER_QUEUES, or all of them that it is set up for. */
export const queuesOf = (settings: WorkerSettings): JobName[] => {
  const { WORKER_QUEUES } = settings
  const named = commaList(WORKER_QUEUES)
  const missing = OF_CHANNELS.filter((provider) => !provider.isSet(settings)).flatMap(({ queues }) => queues)
  return (Object.keys(JOBS) as JobName[]).filter((job) => {
    if (missing.includes(job)) return false
    // It is about what email goes out through: who delivers answers.
    if (job === 'check-email') return deliversEmail(WORKER_QUEUES)
    return named.length === 0 || named.includes(job)
  })
}

const NO_RETURN_PATH =
  'RETURN_PATH_DOMAIN is not set, so bounces go to the mail server of each From domain and are never processed'

/** Warnings about settings that are allowed, but rarely meant. */
export const settingsWarnings = (settings: WorkerSettings, env?: NodeJS.ProcessEnv): string[] => [
  ...(settings.EMAIL_PROVIDER === 'smtp' &&
  deliversEmail(settings.WORKER_QUEUES) &&
  !settings.RETURN_PATH_DOMAIN
    ? [NO_RETURN_PATH]
    : []),
  ...misspeltSettings(workerSettings, env),
]
