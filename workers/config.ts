/** Settings of a worker process. Together with db/config.ts and api/config.ts the only reader of process.env. */
import { type InferType, object, string } from 'yup'
import { readSettings, sharedSettings, wholeNumber } from '../db/config.ts'
import { JOBS, type JobName } from '../db/jobs.ts'

const QUEUES = Object.keys(JOBS)

/** The ways to send email; workers/main.ts has an adapter for each. */
const EMAIL_PROVIDERS = ['smtp', 'ses'] as const
export type EmailProviderName = (typeof EMAIL_PROVIDERS)[number]

const workerSettings = object({
  ...sharedSettings,
  EMAIL_PROVIDER: string().oneOf(EMAIL_PROVIDERS, '${path} must be smtp or ses').default('smtp'),
  SMTP_URL: string()
    .matches(/^smtps?:\/\//, '${path} must be an smtp:// or smtps:// URL')
    .when('EMAIL_PROVIDER', ([provider], schema) =>
      provider === 'smtp' ? schema.required('${path} is missing: the smtp:// URL of the relay') : schema,
    ),
  AWS_REGION: string()
    .matches(/^[a-z]{2}(-[a-z]+)+-\d+$/, '${path} must be a region such as eu-west-1')
    .when('EMAIL_PROVIDER', ([provider], schema) =>
      provider === 'ses' ? schema.required('${path} is missing: the region of the SES account') : schema,
    ),
  /** Another server than AWS's own, for simulators. Credentials come from the SDK's own chain. */
  SES_ENDPOINT: string().matches(/^https?:\/\//, '${path} must be an http(s) URL'),
  SES_CONFIGURATION_SET: string().matches(/^[\w-]{1,64}$/, '${path} must be the name of a configuration set'),
  WORKER_QUEUES: string().test('queues', `\${path} must name queues of ${QUEUES.join(', ')}`, (value) =>
    (value ?? '').split(',').every((name) => name === '' || QUEUES.includes(name.trim())),
  ),
  /** How many provider calls run at once in this process. */
  WORKER_CONCURRENCY: wholeNumber(1, 500).default(20),
})

export type WorkerSettings = Readonly<InferType<typeof workerSettings>>

/** @throws SettingsFault naming every variable that is missing or malformed. */
export const readWorkerSettings = (env?: NodeJS.ProcessEnv): WorkerSettings =>
  readSettings(workerSettings, env)

/** The queues this process works on: WORKER_QUEUES, or all of them. */
export const queuesOf = ({ WORKER_QUEUES }: WorkerSettings): JobName[] => {
  const named = (WORKER_QUEUES ?? '').split(',').map((name) => name.trim())
  return (Object.keys(JOBS) as JobName[]).filter((job) => !WORKER_QUEUES || named.includes(job))
}
