/**
 * Workers for tests: in this process on the test's database, or as real processes that can be killed.
 * Handlers, queue and providers are the real ones. Everything ends with the test.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import type { Test } from 'tap'
import { createNames } from '../../db/process/dns.ts'
import { createPlainTexts } from '../../db/process/plain-texts.ts'
import { networksIn } from '../../db/process/public-address.ts'
import type { Up } from '../../db/process/shutdown.ts'
import { openConsumer } from '../../db/queue/boss.ts'
import { JOBS, type JobName, type SharedJob } from '../../db/queue/jobs.ts'
import { createQueuePauses } from '../../db/queue/pauses.ts'
import { onWake } from '../../db/queue/wake.ts'
import type { Relay } from '../../db/validation/relays.ts'
import { beside } from '../../workers/adapters.ts'
import { createEncodedFiles } from '../../workers/channels/encoded-files.ts'
import type { WorkerDeps } from '../../workers/deps.ts'
import { createSmtpProvider } from '../../workers/providers/smtp/adapter.ts'
import { createWhatsappProvider } from '../../workers/providers/whatsapp/cloud.ts'
import { WHATSAPP } from '../../workers/providers/whatsapp/declared.ts'
import type { WhatsappDelivery } from '../../workers/providers/whatsapp/provider.ts'
import { createReaders } from '../../workers/reports/readers.ts'
import { startWork } from '../../workers/start-work.ts'
import { canary } from './canary.ts'
import { bareEnvironment, SECRET_KEY } from './environment.ts'
import { procfileOptions, procfileVariables } from './procfile.ts'
import type { Service } from './service.ts'
import type { Teardown } from './smtp-sink.ts'

const ROOT = join(import.meta.dirname, '../..')
const ERROR = 50
/** The network of the tests' receivers. */
const LOOPBACK_V4 = '127.0.0.0/8'
/** For tests that send nothing. The port is closed. */
const NOWHERE = 'smtp://127.0.0.1:9'
const UNSET_WHATSAPP: WhatsappDelivery = {
  provider: createWhatsappProvider({ url: 'http://127.0.0.1:9' }),
  number: null,
  unknown_wait: 1,
  begin: async () => {},
}

/**
 * Starts a worker in this process for every queue that has a provider. `changes` replaces dependencies, such
 * as the clock.
 */
export async function startWorker(
  t: Test,
  { database, deps, url }: Service,
  {
    smtp_url = NOWHERE,
    hosted,
    concurrency = 20,
    connections = 2,
    scheduled = false,
    whatsapp = UNSET_WHATSAPP,
    webhooks = {
      concurrency: 32,
      allowed: networksIn([LOOPBACK_V4]),
      resolve: createNames().addresses,
      pauses: [0.05, 0.05],
    },
    ...changes
  }: {
    smtp_url?: string
    /** The hosted relay that sends the reports. */
    hosted?: Relay
    concurrency?: number
    /** The queue's connections. With one, a loop claims all waiting jobs before the next loop runs. */
    connections?: number
    /** Also runs scheduled jobs. Starting them is a hundred statements. */
    scheduled?: boolean
  } & Partial<WorkerDeps> = {},
): Promise<{ stop(): Promise<void> }> {
  canary.secrets(decodeURIComponent(new URL(smtp_url).password))
  const opened = await openConsumer(url, { connections, onError: () => {} })
  const queue = scheduled ? opened : { ...opened, schedule: async () => {} }
  const email = createSmtpProvider({
    ...{ url: smtp_url, max_connections: concurrency },
    ...(hosted ? { hosted } : {}),
  })
  const { secrets, versions, log, clock } = deps
  const readers = createReaders({ secrets })
  const texts = createPlainTexts()
  const jobs = (Object.keys(JOBS) as JobName[]).filter(
    (job) =>
      whatsapp !== UNSET_WHATSAPP || !(WHATSAPP.queues.includes(job) || job === 'deliver-whatsapp-number'),
  )
  const own = {
    database,
    queue,
    secrets,
    versions,
    texts,
    email,
    brakes: { bounce_percent: 5, complaint_percent: 0.1 },
    ramp: null,
    reputation: { bounce_percent: 10, complaint_percent: 0.3, least_emails: 500 },
    bulk: beside(changes.email ?? email),
    whatsapp,
    webhooks,
    notices: { from: null, operator: null, site: null },
    graphApi: 'http://127.0.0.1:9/v26.0',
    lookupTxt: async () => [],
    files: createEncodedFiles(database, 128 * 1024 * 1024),
    concurrency,
    pauses: createQueuePauses(database),
    readers,
    retry_ms: 24 * 3_600_000,
    sent_counts_ms: 24 * 3_600_000,
    return_domain: null,
    simulated_recipients: false,
    retention: {
      reports: 30,
      events: 365,
      bodies: null,
      messages: null,
      senders: 365,
      files: 3,
      figures: 400,
    },
    log,
    clock,
  }
  const work = await startWork(jobs, { ...own, ...changes })
  const hints = onWake(url, jobs, (job) => queue.wake(job))
  let running = true
  const stop = async (): Promise<void> => {
    if (!running) return
    running = false
    await hints.close()
    await work.drain(10_000)
    await queue.stop(10_000)
    await email.close()
    await texts.close()
  }
  t.teardown(stop)
  return { stop }
}

/**
 * One of our processes, and its startup message. `exited` resolves with its exit code, or the signal that
 * ended it.
 */
export type OurProcess = {
  child: ChildProcess
  up: Up
  exited: Promise<number | string>
  kill(signal?: NodeJS.Signals): void
}

/** Returns the secret settings, and the passwords of URLs. */
const secretsIn = (env: Record<string, string>): string[] =>
  Object.entries(env).flatMap(([name, value]) => {
    if (/TOKEN|SECRET|PASSWORD|_KEY$/.test(name)) return [value]
    return URL.canParse(value) ? [decodeURIComponent(new URL(value).password)] : []
  })

/** Lets the canary read a process's output, and shows its errors. */
function watchOutput(file: string, output: Readable): void {
  createInterface({ input: output }).on('line', (text) => {
    canary.note({ where: `the output of ${file}`, text })
    const level = Number(/"level":(\d+)/.exec(text)?.[1] ?? ERROR)
    if (level >= ERROR) process.stderr.write(`${text}\n`)
  })
}

/**
 * Starts `api/main.ts` or `workers/main.ts` as in production, and waits until it has started.
 * @param root the folder of another version's sources.
 * @param execPath another Node binary.
 */
export async function startProcess(
  t: Teardown,
  file: 'api/main.ts' | 'workers/main.ts',
  env: Record<string, string>,
  root = ROOT,
  execPath = process.execPath,
): Promise<OurProcess> {
  const child = fork(join(root, file), {
    execPath,
    env: { ...bareEnvironment(), ...procfileVariables(file), SECRET_KEY, LOG_LEVEL: 'info', ...env },
    execArgv: procfileOptions(file),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  canary.secrets(...secretsIn(env))
  for (const output of [child.stdout, child.stderr]) if (output) watchOutput(file, output)
  const exited = once(child, 'exit').then(([code, signal]) => (signal ?? code) as number | string)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const up = await Promise.race([
    once(child, 'message').then(([said]) => said as Up),
    exited.then(() => null),
  ])
  if (!up) throw new Error(`${file} could not start`)
  return { child, up, exited, kill: (signal = 'SIGKILL') => void child.kill(signal) }
}

/** Milliseconds between checks of a condition. Each check has a cost, so they become rarer. */
const [FIRST_LOOK, LAST_LOOK] = [20, 250]

/**
 * Waits until a condition is true.
 * @throws Error with `what` after `seconds`, which is long because tests must also pass on a busy machine.
 */
export async function until(what: string, holds: () => Promise<boolean> | boolean, seconds = 90) {
  const deadline = Date.now() + seconds * 1_000
  for (let pause = FIRST_LOOK; !(await holds()); pause = Math.min(pause * 1.3, LAST_LOOK)) {
    if (Date.now() > deadline) throw new Error(`waited ${seconds} s until ${what}`)
    await sleep(pause)
  }
}

/** Keeps pg-boss from storing schedules, so that no scheduled job’s statements are counted among others. */
export async function withoutSchedules({ database }: Service): Promise<void> {
  await database.query(sql.unsafe`
    create function no_schedule() returns trigger language plpgsql as 'begin return null; end'`)
  await database.query(sql.unsafe`
    create trigger no_schedule before insert on pgboss.schedule for each row execute function no_schedule()`)
}

/** Fails every job of a queue, like a worker. @param reason a server's last response. */
export async function giveUpAll(
  { url, database }: Pick<Service, 'url' | 'database'>,
  job: SharedJob,
  reason = 'words',
): Promise<void> {
  const consumer = await openConsumer(url, { connections: 2, onError: () => {} })
  const claims = consumer.claims(job)
  let jobs: Awaited<ReturnType<typeof claims.fetch>>
  do {
    jobs = await claims.fetch(10)
    const ends = new Map(jobs.map((one) => [one, { end: 'given_up', reason } as const]))
    await database.transaction((tx) => claims.settle(tx, ends))
  } while (jobs.length > 0)
  await consumer.stop(5_000)
}
