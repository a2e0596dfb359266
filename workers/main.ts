/**
 * Runs a worker process: settings, pool, queue, provider, work, drain. On SIGTERM it stops claiming, finishes jobs in
 * flight within 25 s and exits 0. Any number of workers may run.
 */

import { createDomainLookups } from '../db/accounts/domains/dns-lookups.ts'
import { createVersions } from '../db/content/templates/versions.ts'
import { watchDatabase } from '../db/maintenance/restore-guard/restore-guard.ts'
import { nameConnections } from '../db/postgres/connect.ts'
import { openSecrets } from '../db/process/canary.ts'
import { graphApiUrl } from '../db/process/config.ts'
import { createLog, type Log } from '../db/process/log.ts'
import { assertMemory, collectWhenIdle, memoryLimit } from '../db/process/memory.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { createPlainTexts } from '../db/process/plain-texts.ts'
import { DRAIN_MS, failToStart, stopOnSignal, type Up } from '../db/process/shutdown.ts'
import { openConsumer } from '../db/queue/boss.ts'
import { createQueuePauses } from '../db/queue/pauses.ts'
import { onWake } from '../db/queue/wake.ts'
import { startDatabase } from '../db/start.ts'
import { joinFleet } from '../db/stats/fleet/fleet.ts'
import { bulkProvider, channelProviders, channelWarnings, emailProvider, unsetChannels } from './adapters.ts'
import { createEncodedFiles } from './channels/encoded-files.ts'
import {
  emailRules,
  pauseRules,
  queuesOf,
  readWorkerSettings,
  sendMemory,
  settingsWarnings,
  toNotices,
  toRetention,
  type WorkerSettings,
  webhooksOf,
} from './config.ts'
import { serveHealth } from './monitoring/health.ts'
import { createWorkerStats } from './monitoring/stats.ts'
import { createReaders } from './reports/readers.ts'
import { startWork } from './start-work.ts'

/** When a drain cuts off sends without a response, in milliseconds. The remaining time is for their records. */
const CUT_OFF_MS = 21_500

function logSettings(settings: WorkerSettings, log: Log): void {
  for (const warning of [...settingsWarnings(settings), ...channelWarnings(settings, new Date())])
    log.warn(warning)
  for (const words of unsetChannels(settings)) log.info(words)
}

const openHealth = async (deps: Parameters<typeof serveHealth>[0], { HEALTH_PORT }: WorkerSettings) =>
  HEALTH_PORT === undefined ? null : serveHealth(deps, HEALTH_PORT)

/** Opens the worker's dependencies and starts work. @returns how to stop, and the status for the parent process. */
async function start(settings: WorkerSettings, log: Log): Promise<{ stop: () => Promise<void>; up: Up }> {
  const { DATABASE_URL: url, WORKER_CONCURRENCY: concurrency, DATABASE_POOL_SIZE: size } = settings
  const jobs = queuesOf(settings)
  const { database, listenUrl } = await startDatabase(settings, { size, statementTimeout: 30_000 }, log)
  const secrets = await openSecrets(database, settings)
  const { clock, diskFault, end: endWatch } = await watchDatabase({ database, log })
  const queue = await openConsumer(url, {
    connections: 5,
    onError: (error) => log.warn({ err: error }, 'queue error'),
  })
  const email = jobs.includes('check-email') ? await emailProvider(settings, log) : null
  const bulk = email && (await bulkProvider(settings, email))
  const others = await channelProviders(settings, database)
  logSettings(settings, log)
  const metrics = createMetrics()
  const texts = createPlainTexts()
  const stats = createWorkerStats(metrics, concurrency)
  const work = await startWork(jobs, {
    database,
    queue,
    secrets,
    versions: createVersions(),
    texts,
    email,
    bulk,
    ...pauseRules(settings),
    ...others,
    webhooks: webhooksOf(settings),
    notices: toNotices(settings),
    graphApi: graphApiUrl(settings),
    lookupTxt: createDomainLookups(settings.DNS_SERVER).lookupTxt,
    files: createEncodedFiles(database, sendMemory(settings, memoryLimit(settings.MEMORY_LIMIT_MB))),
    concurrency,
    pauses: createQueuePauses(database),
    stats,
    readers: createReaders({ secrets, settings }),
    retention: toRetention(settings),
    ...emailRules(settings),
    log,
    clock,
  })
  const hints = onWake(listenUrl, jobs, (job) => queue.wake(job))
  const member = joinFleet(
    { database, metrics, log },
    { kind: 'worker', limit: size, role: { queues: jobs, ...stats.role } },
  )
  const health = await openHealth({ database, diskFault }, settings)
  const stop = async (): Promise<void> => {
    health?.drain()
    await Promise.all([hints.close(), work.drain(CUT_OFF_MS)])
    await queue.stop(DRAIN_MS - CUT_OFF_MS)
    await Promise.all([email?.close(), bulk?.close()])
    await Promise.all(Object.values(others).map((one) => one?.provider.close()))
    await Promise.all([member.leave(), endWatch(), texts.close()])
    await health?.close()
    await database.end()
  }
  return { stop, up: health ? { port: health.port } : {} }
}

async function main(): Promise<void> {
  const settings = readWorkerSettings()
  assertMemory(memoryLimit(settings.MEMORY_LIMIT_MB))
  nameConnections('worker')
  const log = await createLog({ name: 'worker', ...settings })
  const { stop, up } = await start(settings, log)
  log.info({ queues: queuesOf(settings) }, 'working')
  stopOnSignal(log, stop, up)
  collectWhenIdle()
}

main().catch(failToStart)
