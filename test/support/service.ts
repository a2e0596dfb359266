/**
 * Starts the API on a real listener and database, with initial rows for tests. createApp builds the
 * application with main.ts's dependencies. Only the clock, the waker, and the timeouts of bulk upserts and
 * locks can be chosen. Everything ends with the test.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { createApp } from '../../api/app.ts'
import type { DashboardDeps } from '../../api/dashboard/server/deps.ts'
import type { Deps } from '../../api/deps.ts'
import { createDocs } from '../../api/docs/routes.ts'
import { unverified } from '../../api/hooks/relay-signatures.ts'
import { createSns } from '../../api/hooks/sns.ts'
import { createCredentials } from '../../api/http/auth.ts'
import { createBodies } from '../../api/http/bodies.ts'
import { createParser } from '../../api/http/parser.ts'
import { createRejections } from '../../api/http/rejections.ts'
import { createAccepts } from '../../api/sends/accepts.ts'
import { createCatalog } from '../../api/v1/plan-cache.ts'
import { PARSER_THREAD, V1_ROUTES } from '../../api/v1/routes.ts'
import { auditEntries } from '../../db/accounts/audit/audit.sql.ts'
import { insertKey, insertSession, SCOPES } from '../../db/accounts/credentials/credentials.sql.ts'
import { credentialHash, displayPrefix, makeCredential } from '../../db/accounts/credentials/token.ts'
import { createTeam } from '../../db/accounts/teams/create.ts'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { createReturnPathCheck } from '../../db/delivery/senders/return-path.ts'
import { unsubscribeLinks } from '../../db/messages/emails/unsubscribe-token.ts'
import { type Database, openDatabase, type Tx } from '../../db/postgres/pool.ts'
import { NO_REPLICA } from '../../db/postgres/replica.ts'
import { createReplies } from '../../db/postgres/replies.ts'
import { createKeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { createMetrics } from '../../db/process/metrics.ts'
import { createPlainTexts } from '../../db/process/plain-texts.ts'
import { networksIn } from '../../db/process/public-address.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { queueStatus } from '../../db/queue/jobs.sql.ts'
import { createProducer } from '../../db/queue/producer.ts'
import { createWaker, type Waker } from '../../db/queue/wake.ts'
import { joinFleet } from '../../db/stats/fleet/fleet.ts'
import { createScale } from '../../db/stats/fleet/scale.ts'
import { adminCli } from './admin.ts'
import { type Canary, canary } from './canary.ts'
import { noteRestOf, testDatabase } from './database.ts'
import { assertDescribed } from './described.ts'
import { verifiedDomain } from './domain.ts'
import { SECRET_KEY } from './environment.ts'
import { silentLog } from './log.ts'

export const METRICS_TOKEN = 'a-token-for-figures'
export const HIREFIRE_TOKEN = 'a-token-in-a-path'
/** The test operator's reserved header prefixes. */
export const RESERVED_PREFIXES = ['X-Relay-', 'x-steer']

export const SMTP_REPORT_TOKEN = 'a-report-token-for-tests'
export const WHATSAPP_APP_SECRET = 'an app secret for tests'
export const WHATSAPP_VERIFY_TOKEN = 'a verify token for tests'

canary.secrets(
  ...[SECRET_KEY, METRICS_TOKEN, HIREFIRE_TOKEN],
  ...[SMTP_REPORT_TOKEN, WHATSAPP_APP_SECRET, WHATSAPP_VERIFY_TOKEN],
)

export type Reply = {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses like a client
  body: any
}

export type Call = (
  method: string,
  path: string,
  options?: { key?: string; body?: unknown; raw?: string | Uint8Array; headers?: Record<string, string> },
) => Promise<Reply>

export type Service = {
  base: string
  /** The database's URL, for separate processes. */
  url: string
  database: Database
  deps: Deps
  call: Call
}

export type TestTeam = { id: string; key: string; domain_id: string }

/** Sends one request like a client, and checks the response against the API's description. */
export const caller =
  (base: string, watch: Canary = canary): Call =>
  async (method, path, { key, body, raw, headers = {} } = {}) => {
    const response = await fetch(base + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined && raw === undefined ? {} : { body: raw ?? JSON.stringify(body) }),
    })
    const text = await response.text()
    const json = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
    const reply = { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text }
    assertDescribed(method, path, reply)
    watch.secrets(key)
    watch.contents(body)
    if (reply.status >= 400) watch.note({ where: 'a refusal', text, own: path + JSON.stringify(body) + raw })
    return reply
  }

/** Serves an application on a free port until the test ends. @returns its base URL. */
export async function listen(t: Test, app: ReturnType<typeof createApp>): Promise<string> {
  // The value of api/http/server.ts. With Node's 5 s, connections would be closed while a test keeps the
  // process busy.
  const server = createServer({ keepAliveTimeout: 65_000 }, app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Starts the API on a separate database, or on the one at `url`. */
export async function startService(
  t: Test,
  {
    clock = () => new Date(),
    url,
    wake,
    upsertWait = 25_000,
    lockTimeout = 3_000,
    replica = NO_REPLICA,
    publicUrl = null,
    dashboard = {},
  }: {
    clock?: () => Date
    url?: string
    wake?: Waker
    upsertWait?: number
    lockTimeout?: number
    replica?: Deps['replica']
    publicUrl?: string | null
    dashboard?: Partial<DashboardDeps>
  } = {},
): Promise<Service> {
  const databaseUrl = url ?? (await testDatabase(t)).url
  // It is long, because tests must also pass on a busy machine.
  const database = await openDatabase(databaseUrl, { size: 10, statementTimeout: 60_000, lockTimeout })
  const queue = createProducer(wake ?? createWaker(database))
  const replies = createReplies(databaseUrl)
  const parser = createParser(PARSER_THREAD, { timeLimit: 60_000 })
  const metrics = createMetrics()
  const fleet = joinFleet(
    { database, metrics, log: silentLog },
    { kind: 'web', limit: 10, interval: 3_600_000 },
  )
  await fleet.flush()
  const versions = createVersions()
  const texts = createPlainTexts()
  const secrets = createSecrets(SECRET_KEY)
  const links = unsubscribeLinks(secrets, publicUrl)
  const deps: Deps = {
    database,
    semaphores: {
      transactions: createKeyedSemaphore(5),
      statements: createKeyedSemaphore(3),
      searches: createKeyedSemaphore(1),
    },
    bodies: createBodies(parser),
    docs: createDocs(V1_ROUTES, { publicUrl, port: 3000, domain: 'example.com' }),
    queue,
    secrets,
    versions,
    links,
    publicUrl,
    accepts: createAccepts({ database, queue, versions, links }),
    credentials: createCredentials(database),
    catalog: createCatalog(),
    hooks: {
      smtp_report_token: SMTP_REPORT_TOKEN,
      whatsapp_app_secret: WHATSAPP_APP_SECRET,
      whatsapp_verify_token: WHATSAPP_VERIFY_TOKEN,
      whatsapp_stop_words: [],
      sns: createSns({ topics: [] }),
      relay: { relay: null, proof: unverified },
    },
    reservedHeaders: { prefixes: RESERVED_PREFIXES, names: [] },
    attachments: { message_bytes: 25 * 1024 * 1024, blocked_extensions: new Set(['exe', 'js']) },
    replies,
    upsertWait,
    metrics,
    fleet,
    scale: createScale(database),
    queues: () => queueStatus(database),
    tokens: { metrics: METRICS_TOKEN, hirefire: HIREFIRE_TOKEN },
    isDraining: () => false,
    least: 500,
    returnPath: createReturnPathCheck(dashboard.returnDomain ?? null, {
      ...{ lookupTxt: async () => [], lookupCname: async () => [], lookupMx: async () => [] },
      ...dashboard,
    }),
    diskFault: () => null,
    rejections: createRejections(database),
    dashboard: {
      database,
      texts,
      lookupTxt: async () => [],
      lookupCname: async () => [],
      lookupMx: async () => [],
      zoneOf: async () => null,
      returnDomain: null,
      webhookNetworks: networksIn(['127.0.0.0/8']),
      publicUrl,
      from: null,
      graphApi: 'http://127.0.0.1:9/v26.0',
      defaultPlan: 'free',
      openid: null,
      switches: [{ name: 'METRICS_TOKEN', isSet: true }],
      ...dashboard,
    },
    replica,
    log: silentLog,
    clock,
  }
  const base = await listen(t, createApp(deps))
  t.teardown(async () => {
    await parser.close()
    await texts.close()
    await fleet.leave()
    await replies.close()
    await noteRestOf(database, databaseUrl)
    await database.end()
  })
  return { base, url: databaseUrl, database, deps, call: caller(base) }
}

/** Creates an API key of a team. */
export async function makeKey(
  { database }: Pick<Service, 'database'>,
  teamId: string,
  {
    scopes = SCOPES,
    domain = null,
    expires_at = null,
  }: { scopes?: readonly string[]; domain?: string | null; expires_at?: Date | null } = {},
): Promise<string> {
  const key = makeCredential('key')
  canary.secrets(key)
  const stored = { id: uuidv7(), name: 'test', prefix: displayPrefix(key), hash: credentialHash(key) }
  await insertKey(database, teamId, { ...stored, scopes, domain, expires_at }, new Date())
  return key
}

/** Creates a session token of a team. */
export async function makeSession({ database, deps }: Pick<Service, 'database' | 'deps'>, teamId: string) {
  const token = makeCredential('session')
  canary.secrets(token)
  const expires_at = new Date(deps.clock().getTime() + 3_600_000)
  await insertSession(
    database,
    teamId,
    { id: uuidv7(), user_id: null, hash: credentialHash(token), expires_at },
    new Date(),
  )
  return token
}

/**
 * Limits of a team's subscription. The default quotas are the plan's, and the default rate is practically
 * unlimited.
 */
export type TeamLimits = {
  email_limit?: number
  contact_limit?: number
  whatsapp_limit?: number
  storage_gb?: number
  rate?: number
}

/** Creates a team with a verified domain `example.com` and a key with every scope. */
export async function makeTeam(
  service: Pick<Service, 'database' | 'deps'>,
  {
    plan = 'pro',
    domain = 'example.com',
    test = false,
    rate: send_rate_per_second = 100_000,
    ...limits
  }: TeamLimits & { plan?: string; domain?: string; test?: boolean } = {},
): Promise<TestTeam> {
  const { database, deps } = service
  const now = deps.clock()
  const { id, domain_id } = await database.transaction(async (tx) => {
    const team = await createTeam({ tx, now: new Date(), actor: null }, { name: 'A team', plan, test })
    await subscribeTeam({ tx, now: new Date(), actor: null }, team.id, {
      plan,
      ...limits,
      send_rate_per_second,
    })
    const row = await verifiedDomain({ tx, secrets: deps.secrets, now }, team.id, domain)
    return { id: team.id, domain_id: row.id }
  })
  return { id, domain_id, key: await makeKey(service, id) }
}

/**
 * Creates a team, with `team` for makeTeam, a CLI, a function that sends the team's emails, and one that
 * returns the latest entry of its audit log.
 */
export async function worldOf(service: Service, team?: Parameters<typeof makeTeam>[1]) {
  const cli = adminCli({ DATABASE_URL: service.url })
  const made = await makeTeam(service, team)
  const send = (changes: object = {}) => sendEmail(service, made, changes)
  const lastEntry = async () => (await auditEntries(service.database, { team: made.id, limit: 1 }))[0]
  return { ...service, service, cli, team: made, team_id: made.id, key: made.key, send, lastEntry }
}

/** Creates the usual set-up: a service, its CLI, and a team from makeTeam with `team`. */
export const world = async (
  t: Test,
  { team, ...options }: Parameters<typeof startService>[1] & { team?: Parameters<typeof makeTeam>[1] } = {},
) => worldOf(await startService(t, options), team)

/** Returns the context of a use case called from the command line, now. */
export const byCli = <T extends Tx>(tx: T) => ({ tx, now: new Date(), actor: 'cli' })

/** Builds a valid send, with a test's changes. */
export const anEmail = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  from: 'Acme <hello@example.com>',
  to: ['someone@example.org'],
  subject: 'Hello',
  html: '<p>Hello</p>',
  ...changes,
})

/** Sends an email. @returns its id. @throws Error with the API's error if it isn't accepted. */
export async function sendEmail(
  { call }: Pick<Service, 'call'>,
  { key }: { key: string },
  changes: object = {},
): Promise<string> {
  const { status, body } = await call('POST', '/v1/emails', { key, body: anEmail({ ...changes }) })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id
}

/**
 * Sends an email with each of these changes, in batches. @returns the ids. @throws Error with the API's
 * response unless all are accepted.
 */
export async function sendEmails(
  { call }: Pick<Service, 'call'>,
  { key }: { key: string },
  changes: readonly object[],
): Promise<string[]> {
  const ids: string[] = []
  for (let from = 0; from < changes.length; from += 100) {
    const emails = changes.slice(from, from + 100).map((each) => anEmail({ ...each }))
    const { body } = await call('POST', '/v1/emails/batch', { key, body: { emails } })
    if (!body.data?.every(({ id }: { id?: string }) => id)) throw new Error(JSON.stringify(body))
    ids.push(...body.data.map(({ id }: { id: string }) => id))
  }
  return ids
}
