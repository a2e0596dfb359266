/** Settings of a worker process. Together with db/config.ts and api/config.ts the only reader of process.env. */
import { type InferType, object, string } from 'yup'
import { readSettings, sharedSettings, wholeNumber } from '../db/config.ts'
import { JOBS, type JobName } from '../db/jobs.ts'
import { domainToAscii } from '../db/text/address.ts'

const QUEUES = Object.keys(JOBS)

const workerSettings = object({
  ...sharedSettings,
  EMAIL_PROVIDER: string().oneOf(['smtp'], '${path} must be smtp').default('smtp'),
  SMTP_URL: string()
    .matches(/^smtps?:\/\//, '${path} must be an smtp:// or smtps:// URL')
    .when('EMAIL_PROVIDER', ([provider], schema) =>
      provider === 'smtp' ? schema.required('${path} is missing: the smtp:// URL of the relay') : schema,
    ),
  /** Where bounces return to; the From domain of each email when absent. Its mail must reach POST /hooks/smtp. */
  RETURN_PATH_DOMAIN: string().test(
    'domain',
    '${path} must be a domain name',
    (value) => value === undefined || domainToAscii(value) !== null,
  ),
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
