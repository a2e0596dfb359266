/** Reads the settings of a worker process. */
import { type InferType, number, object, string } from 'yup'
import { parseRampStart, type RampStart } from '../db/accounts/domains/ramp.ts'
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
  returnPathDomain,
  settingsOf,
  sharedSettings,
  toReturnDomain,
  wholeNumber,
} from '../db/process/config.ts'
import { createNames } from '../db/process/dns.ts'
import { byMemory } from '../db/process/memory.ts'
import { networksIn } from '../db/process/public-address.ts'
import { JOBS, type JobName, PART_OF } from '../db/queue/jobs.ts'
import { parseMailbox } from '../db/validation/address.ts'
import { compact, keysOf } from '../db/validation/keys.ts'
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
  /** The number of broadcast emails that all workers together send per second. */
  BULK_SENDS_PER_SECOND: wholeNumber(1, 10_000),
  /**
   * A broadcast is paused above these shares of its emails: after 200 emails, or after 1,000 and three complaints.
   */
  BULK_MAX_BOUNCE_PERCENT: percent().default(5),
  BULK_MAX_COMPLAINT_PERCENT: percent().default(0.1),
  /** How a sending domain without history starts with broadcasts: emails on the first day x factor, or `off`. */
  DOMAIN_RAMP: string()
    .test(
      'ramp',
      '${path} must be off, or STARTxFACTOR such as 500x2',
      (value) => parseRampStart(value ?? 'off') !== undefined,
    )
    .default('off'),
  /**
   * A team's broadcasts and batch items are paused above these shares of all its emails in 24 hours. 0 means never.
   */
  TEAM_MAX_BOUNCE_PERCENT: percentOrOff().default(10),
  TEAM_MAX_COMPLAINT_PERCENT: percentOrOff().default(0.3),
  RETURN_PATH_DOMAIN: returnPathDomain,
  /** How many hours a deferred email is attempted before it bounces. */
  EMAIL_RETRY_HOURS: hours().default(24),
  /** After how many hours a sent email without any report ends a series of soft bounces. */
  SENT_COUNTS_AS_DELIVERED_HOURS: hours().default(24),
  WORKER_QUEUES: string()
    .test(
      'queues',
      `\${path} must only contain queues from this list: ${QUEUES.join(', ')}`,
      (value) =>
        value === undefined ||
        (commaList(value).length > 0 && commaList(value).every((name) => QUEUES.includes(name))),
    )
    .test(
      'answers for email',
      '${path} contains check-email without deliver-email. Only workers that deliver email can run it',
      (value) => !commaList(value).includes('check-email') || deliversEmail(value),
    ),
  ...settingsOf(OF_CHANNELS),
  /** The number of concurrent webhooks in this process, and the private networks they may reach. */
  WEBHOOK_CONCURRENCY: wholeNumber(1, 500).default(32),
  WEBHOOK_ALLOW: networkList,
  DASHBOARD_FROM: ownMailbox,
  OPERATOR_EMAIL: ownMailbox,
  PUBLIC_URL: publicUrl,
  /** A DNS server to use for the host names of webhooks instead of the system's. */
  DNS_SERVER: dnsServer,
  /** `yes` if recipients' names decide the outcome. For the sandbox, where nothing is delivered. */
  SIMULATED_RECIPIENTS: string().oneOf(['yes'], '${path} must be yes, or unset'),
  /** The number of concurrent provider calls in this process. */
  WORKER_CONCURRENCY: wholeNumber(1, 500).default(20),
  /**
   * The memory for attachments of emails that are being sent, in MiB. The default depends on the process's memory.
   */
  SEND_MEMORY_MB: wholeNumber(16, 65_536),
  /** How many days each kind of data is kept. Unset means forever. */
  RETENTION_DAYS_REPORTS: wholeNumber(1, 3_650).default(30),
  RETENTION_DAYS_EVENTS: wholeNumber(1, 3_650).default(365),
  RETENTION_DAYS_BODIES: wholeNumber(1, 3_650),
  RETENTION_DAYS_MESSAGES: wholeNumber(1, 3_650),
  RETENTION_DAYS_SENDERS: wholeNumber(1, 3_650).default(365),
  /** How many days the bytes of attachments are kept after their last use. */
  RETENTION_DAYS_FILES: wholeNumber(1, 3_650).default(3),
  /** How many days daily stats are kept. Charts show the last thirty. */
  RETENTION_DAYS_FIGURES: wholeNumber(31, 3_650).default(400),
  /** The port for GET /health and GET /ready. Without it this worker doesn't listen. 0 picks a port. */
  HEALTH_PORT: wholeNumber(0, 65_535),
})

export type WorkerSettings = Readonly<InferType<typeof workerSettings>>

/** @throws SettingsFault naming every missing or malformed variable. */
export const readWorkerSettings = (env?: NodeJS.ProcessEnv): WorkerSettings =>
  readSettings(workerSettings, env)

const MIB = 1024 * 1024
/** The default memory for attachments in MiB, with MIN_MEMORY and with enough memory. */
const [LEAST_SEND_MEMORY_MB, SEND_MEMORY_MB] = [32, 128]

/** Returns how many bytes of attachments may be in memory. @param memory the process's limit in bytes. */
export const sendMemory = (settings: WorkerSettings, memory: number): number =>
  Math.floor((settings.SEND_MEMORY_MB ?? byMemory(memory, LEAST_SEND_MEMORY_MB, SEND_MEMORY_MB)) * MIB)

/** Returns when a broadcast and a team's bulk email are paused automatically, and how new domains start. */
export const pauseRules = (
  settings: WorkerSettings,
): { brakes: Brakes; reputation: ReputationLimits; ramp: RampStart | null } => ({
  ramp: parseRampStart(settings.DOMAIN_RAMP) ?? null,
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

export const toRetention = (settings: WorkerSettings): Retention => ({
  reports: settings.RETENTION_DAYS_REPORTS,
  events: settings.RETENTION_DAYS_EVENTS,
  bodies: settings.RETENTION_DAYS_BODIES ?? null,
  messages: settings.RETENTION_DAYS_MESSAGES ?? null,
  senders: settings.RETENTION_DAYS_SENDERS,
  files: settings.RETENTION_DAYS_FILES,
  figures: settings.RETENTION_DAYS_FIGURES,
})

export const emailRules = ({
  EMAIL_RETRY_HOURS,
  SENT_COUNTS_AS_DELIVERED_HOURS,
  RETURN_PATH_DOMAIN,
  SIMULATED_RECIPIENTS,
}: WorkerSettings) => ({
  simulated_recipients: SIMULATED_RECIPIENTS === 'yes',
  retry_ms: EMAIL_RETRY_HOURS * 3_600_000,
  sent_counts_ms: SENT_COUNTS_AS_DELIVERED_HOURS * 3_600_000,
  return_domain: toReturnDomain({ RETURN_PATH_DOMAIN }),
})

export const toNotices = (settings: WorkerSettings): Notices => ({
  from: settings.DASHBOARD_FROM ?? null,
  operator: parseMailbox(settings.OPERATOR_EMAIL ?? '')?.address ?? null,
  site: settings.PUBLIC_URL ?? null,
})

export const webhooksOf = (settings: WorkerSettings): WebhookDelivery => ({
  concurrency: settings.WEBHOOK_CONCURRENCY,
  allowed: networksIn(commaList(settings.WEBHOOK_ALLOW)),
  resolve: createNames(settings.DNS_SERVER).addresses,
  pauses: RETRY_PAUSES_S,
})

/** Returns the queues that this process works on: WORKER_QUEUES, or all that it is configured for. */
export const queuesOf = (settings: WorkerSettings): JobName[] => {
  const { WORKER_QUEUES } = settings
  const named = commaList(WORKER_QUEUES)
  const missing = OF_CHANNELS.filter((provider) => !provider.isSet(settings)).flatMap(({ queues }) => queues)
  return keysOf(JOBS).filter((job) => {
    if (missing.includes(job)) return false
    // The check needs the email provider, so a process that delivers email runs it.
    if (job === 'check-email') return deliversEmail(WORKER_QUEUES)
    // A list of an older version doesn't have the part.
    return named.length === 0 || named.includes(job) || named.includes(PART_OF.get(job) ?? '')
  })
}

const NO_RETURN_PATH =
  'RETURN_PATH_DOMAIN is not set, so bounces go to the mail server of each From domain and are never processed'

export const settingsWarnings = (settings: WorkerSettings, env?: NodeJS.ProcessEnv): string[] => [
  ...compact([
    settings.EMAIL_PROVIDER === 'smtp' &&
      deliversEmail(settings.WORKER_QUEUES) &&
      !settings.RETURN_PATH_DOMAIN &&
      NO_RETURN_PATH,
  ]),
  ...misspeltSettings(workerSettings, env),
]
