/**
 * The API process: settings, pool, queue, server, shutdown. A missing setting stops it immediately with a
 * message that names it. After SIGTERM it finishes the requests in flight, within 25 s, and exits with 0.
 */

import { createDomainLookups, createZoneLookup } from '../db/accounts/domains/dns-lookups.ts'
import { teamOfDomain } from '../db/accounts/domains/domains.sql.ts'
import { checkDefaultPlan, USUAL_PLAN } from '../db/accounts/teams/create.ts'
import { createVersions } from '../db/content/templates/versions.ts'
import { createReturnPathCheck } from '../db/delivery/senders/return-path.ts'
import { watchDatabase } from '../db/maintenance/restore-guard/restore-guard.ts'
import { unsubscribeLinks } from '../db/messages/emails/unsubscribe-token.ts'
import { nameConnections } from '../db/postgres/connect.ts'
import { openDatabase } from '../db/postgres/pool.ts'
import { createReplies, type Replies } from '../db/postgres/replies.ts'
import { openSecrets } from '../db/process/canary.ts'
import { graphApiUrl, toReturnDomain } from '../db/process/config.ts'
import { createKeyedSemaphore } from '../db/process/keyed-semaphore.ts'
import { createLog, type Log } from '../db/process/log.ts'
import { collectWhenIdle, memoryLimit, memoryWarnings, saveMemory } from '../db/process/memory.ts'
import { createMetrics } from '../db/process/metrics.ts'
import { createPlainTexts } from '../db/process/plain-texts.ts'
import { DRAIN_MS, failToStart, stopOnSignal } from '../db/process/shutdown.ts'
import { createQueueStatus } from '../db/queue/jobs.sql.ts'
import { createProducer } from '../db/queue/producer.ts'
import { createWaker } from '../db/queue/wake.ts'
import { startDatabase, startReplica } from '../db/start.ts'
import { joinFleet } from '../db/stats/fleet/fleet.ts'
import { createScale } from '../db/stats/fleet/scale.ts'
import { parseMailbox } from '../db/validation/address.ts'
import { createApp } from './app.ts'
import {
  type ApiSettings,
  attachmentLimits,
  listSwitches,
  openIdSettings,
  readApiSettings,
  reservedHeaders,
  settingsWarnings,
  webhookNetworks,
} from './config.ts'
import type { DashboardDeps } from './dashboard/server/deps.ts'
import { createDocs, type Docs } from './docs/routes.ts'
import { openHooks } from './hooks/list.ts'
import { createCredentials } from './http/auth.ts'
import { createBodies } from './http/bodies.ts'
import { budgetFor } from './http/body-budget.ts'
import { createParser } from './http/parser.ts'
import { createRejections } from './http/rejections.ts'
import { FLUSH_MS, serve } from './http/server.ts'
import { createAccepts } from './sends/accepts.ts'
import { createCatalog } from './v1/plan-cache.ts'
import { PARSER_THREAD, V1_ROUTES } from './v1/routes.ts'

// DECISIONS: 503 responses. Shorter than the deadline of a request, and not longer than the grace period of a
// shutdown.
const UPSERT_WAIT_MS = 25_000

// How long a statement waits for a locked row, in milliseconds. Then the response is 503.
const LOCK_WAIT_MS = 3_000

// A separate pool, so that pages only wait for each other and never delay the API.
const DASHBOARD_POOL = { size: 3, statementTimeout: 5_000, lockTimeout: LOCK_WAIT_MS }

const buildDocs = ({ PUBLIC_URL, PORT, DOCS_DOMAIN }: ApiSettings): Docs =>
  createDocs(V1_ROUTES, { publicUrl: PUBLIC_URL ?? null, port: PORT, domain: DOCS_DOMAIN })

async function openDashboard(settings: ApiSettings, log: Log): Promise<DashboardDeps> {
  const openid = openIdSettings(settings)
  const database = await openDatabase(settings.DATABASE_URL, DASHBOARD_POOL)
  const domain = parseMailbox(settings.DASHBOARD_FROM ?? '')?.domain
  if (domain !== undefined && (await teamOfDomain(database, domain)) === null)
    log.warn(
      { domain },
      'no team has verified the domain of DASHBOARD_FROM, so sign-in links can’t be emailed',
    )
  return {
    database,
    texts: createPlainTexts(),
    ...createDomainLookups(settings.DNS_SERVER),
    zoneOf: createZoneLookup(settings.DNS_SERVER),
    returnDomain: toReturnDomain(settings),
    webhookNetworks: webhookNetworks(settings),
    publicUrl: settings.PUBLIC_URL ?? null,
    from: settings.DASHBOARD_FROM ?? null,
    graphApi: graphApiUrl(settings),
    defaultPlan: settings.DEFAULT_PLAN ?? USUAL_PLAN,
    openid: openid && (await import('./dashboard/server/openid.ts')).createOpenId(openid),
    switches: listSwitches(settings),
  }
}

/** Returns how much of a pool of this size one team can use. */
const semaphoresFor = (size: number) => ({
  transactions: createKeyedSemaphore(Math.ceil(size / 2)),
  statements: createKeyedSemaphore(Math.ceil(size / 4)),
  // Each can use a CPU of the database for a while.
  searches: createKeyedSemaphore(1),
})

/** Finishes the requests in flight. Those that wait for a worker get their response shortly before the deadline. */
async function drain(server: Awaited<ReturnType<typeof serve>>, replies: Replies): Promise<void> {
  const deadline = setTimeout(() => void replies.close(), DRAIN_MS - FLUSH_MS)
  await server.drain()
  clearTimeout(deadline)
}

/** The tokens of the operator's paths, and what these paths report. */
const operatorPaths = ({ METRICS_TOKEN, HIREFIRE_TOKEN, ...settings }: ApiSettings) => ({
  tokens: { metrics: METRICS_TOKEN ?? null, hirefire: HIREFIRE_TOKEN ?? null },
  least: settings.TEAM_PAUSE_MIN_EMAILS,
  returnPath: createReturnPathCheck(toReturnDomain(settings), createDomainLookups(settings.DNS_SERVER)),
})

async function start(settings: ApiSettings, log: Log) {
  const size = settings.DATABASE_POOL_SIZE
  const { database, listenUrl } = await startDatabase(settings, { size, lockTimeout: LOCK_WAIT_MS }, log)
  await checkDefaultPlan(database, settings.DEFAULT_PLAN)
  const standby = { primary: database, log, options: DASHBOARD_POOL }
  const replica = await startReplica(settings.DATABASE_REPLICA_URL, standby)
  const secrets = await openSecrets(database, settings)
  const { clock, diskFault, end: endWatch } = await watchDatabase({ database, log })
  const queue = createProducer(createWaker(database))
  const memory = memoryLimit(settings.MEMORY_LIMIT_MB)
  const parser = createParser(PARSER_THREAD, { memory })
  const metrics = createMetrics()
  const fleet = joinFleet({ database, metrics, log }, { kind: 'web', limit: size })
  const versions = createVersions()
  const links = unsubscribeLinks(secrets, settings.PUBLIC_URL ?? null)
  let draining = false
  const replies = createReplies(listenUrl)
  const dashboard = settings.DASHBOARD === 'off' ? null : await openDashboard(settings, log)
  for (const warning of [...settingsWarnings(settings), ...memoryWarnings(memory)]) log.warn(warning)
  const app = createApp({
    database,
    semaphores: semaphoresFor(size),
    bodies: createBodies(parser, budgetFor(memory)),
    docs: buildDocs(settings),
    queue,
    secrets,
    versions,
    links,
    publicUrl: settings.PUBLIC_URL ?? null,
    accepts: createAccepts({ database, queue, versions, links }),
    credentials: createCredentials(database),
    catalog: createCatalog(),
    hooks: openHooks(settings),
    reservedHeaders: reservedHeaders(settings),
    attachments: attachmentLimits(settings),
    replies,
    upsertWait: UPSERT_WAIT_MS,
    metrics,
    fleet,
    scale: createScale(database),
    queues: createQueueStatus(database),
    replica,
    ...operatorPaths(settings),
    isDraining: () => draining,
    diskFault,
    rejections: createRejections(database),
    dashboard,
    log,
    clock,
  })
  const server = await serve(app.callback(), settings)
  const stop = async (): Promise<void> => {
    draining = true
    await drain(server, replies)
    await Promise.all([fleet.leave(), endWatch()])
    const databases = [database.end(), dashboard?.database.end(), replica.end()]
    await Promise.allSettled([parser.close(), dashboard?.texts.close(), replies.close(), ...databases])
  }
  return { port: server.port, stop }
}

async function main(): Promise<void> {
  const settings = readApiSettings()
  nameConnections('web')
  const log = await createLog({ name: 'web', ...settings })
  saveMemory(memoryLimit(settings.MEMORY_LIMIT_MB))
  const { port, stop } = await start(settings, log)
  log.info({ port }, 'listening')
  stopOnSignal(log, stop, { port })
  collectWhenIdle()
}

main().catch(failToStart)
