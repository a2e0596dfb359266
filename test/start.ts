/**
 * Runs `npm start`: the complete service on one machine, without any set-up. Starts PostgreSQL (embedded,
 * unless DATABASE_URL is set), migrates it, creates a demo team once, then starts sandbox, API and a worker.
 * Data is kept in .data/ between runs, and environment variables are passed through. Ctrl-C or SIGTERM stops
 * everything, even if only npm receives it. Not for production.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, chmod, constants, mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readApiSettings } from '../api/config.ts'
import { acquireName, type Postgres, runningPostgres, startPostgres } from '../db/dev/postgres.ts'
import { demoFile, storeGraphApi, storePort } from '../db/dev/used.ts'
import { migrate } from '../db/migrate.ts'
import { readToolSettings } from '../db/process/config.ts'
import { LOOPBACK } from '../db/process/public-address.ts'
import { startFault } from '../db/process/shutdown.ts'
import { readWorkerSettings } from '../workers/config.ts'
import { DEMO_DOMAIN, type Demo, demoLink, demoTeam } from './demo.ts'
import { DEMO_NUMBER } from './sandbox/whatsapp-magic.ts'

const ROOT = join(import.meta.dirname, '..')
const DATA = join(ROOT, '.data')
const KILL_AFTER = 30_000
/**
 * How often PostgreSQL is checked, in milliseconds, and the number of failed checks that stops everything.
 */
const WATCH_PAUSE = 1_000
const MISSES = 30

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** Returns a secret of this checkout. Creates it the first time. */
async function keptSecret(name: string): Promise<string> {
  const file = join(DATA, name)
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept.trim().length >= 32) return kept.trim()
  const made = randomBytes(32).toString('base64url')
  await writeFile(file, `${made}\n`, { mode: 0o600 })
  await chmod(file, 0o600)
  return made
}

/** Returns the port if it is free, or null. @param port 0 for any free port. */
async function freePort(port: number): Promise<number | null> {
  const probe = createServer()
  const found = await new Promise<number | null>((resolve) => {
    probe.once('error', () => resolve(null))
    probe.listen(port, () => resolve((probe.address() as AddressInfo).port))
  })
  await new Promise((resolve) => probe.close(resolve))
  return found
}

/** Returns the port in a variable, or `fallback`. @throws Error if it isn't a port or is in use. */
async function portOf(name: string, fallback: number): Promise<number> {
  const port = Number(process.env[name] || fallback)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`${name} must be a port number`)
  if ((await freePort(port)) !== null) return port
  throw new Error(
    `port ${port} is in use by another program or another npm start. Stop it, or set ${name} to another port`,
  )
}

/**
 * Returns a port of the sandbox: the one in its variable, otherwise its usual port, or any port if that is in
 * use.
 */
const sandboxPort = async (name: string, usual: number): Promise<number> =>
  process.env[name] ? await portOf(name, usual) : ((await freePort(usual)) ?? (await freePort(0)) ?? usual)

/**
 * Settings to send WhatsApp through the sandbox, unless others are set. Its number has Meta's maximum rate.
 */
const whatsappSettings = async (port: number, url: string): Promise<NodeJS.ProcessEnv> => ({
  WHATSAPP_API_URL: `http://127.0.0.1:${port}/v23.0`,
  WHATSAPP_ACCESS_TOKEN: 'sandbox',
  WHATSAPP_PHONE_NUMBER_ID: '100000000000002',
  WHATSAPP_BUSINESS_ACCOUNT_ID: '100000000000001',
  WHATSAPP_MESSAGES_PER_SECOND: '1000',
  // Random, because anyone who knows it can sign reports.
  WHATSAPP_APP_SECRET: await keptSecret('whatsapp-app-secret'),
  WHATSAPP_VERIFY_TOKEN: await keptSecret('whatsapp-verify-token'),
  SANDBOX_WHATSAPP_WEBHOOK: `${url}/hooks/whatsapp`,
})

/**
 * Starts our own PostgreSQL. @returns its URL. @throws Error if another `npm start` of this checkout uses it.
 */
async function embeddedPostgres(running: Running): Promise<string> {
  say('starting PostgreSQL …')
  running.postgres = await startPostgres({ directory: DATA, log: say })
  return running.postgres.url
}

/**
 * Two of them on one database would share workers, so emails of the first would arrive in the inbox of the
 * second.
 */
async function holdDatabase(url: string): Promise<void> {
  const isFree = (await acquireName(demoFile(DATA, url))) !== null && (await runningPostgres(DATA)) !== url
  if (isFree) return
  throw new Error(
    'another npm start of this checkout uses this database. Stop it, or set DATABASE_URL to another one',
  )
}

/** Restarts PostgreSQL on the same port if it was killed. */
async function keepPostgres(running: Running, url: string): Promise<void> {
  const port = Number(new URL(url).port)
  for (let misses = 0; !running.stopping; await sleep(WATCH_PAUSE, undefined, { ref: false })) {
    misses = (await runningPostgres(DATA)) === null ? misses + 1 : 0
    // One failed check may be a busy machine.
    if (misses < 3 || running.stopping) continue
    say('PostgreSQL has stopped. Starting it again')
    try {
      await running.postgres?.stop()
      running.postgres = null
      running.postgres = await startPostgres({ directory: DATA, port, log: say })
      if (running.stopping) await running.postgres.stop()
    } catch (error) {
      if (misses > MISSES) return running.stop(error as Error)
    }
  }
}

/** Starts one of our processes and waits until it is up. Restarts it if it was killed. */
async function startProcess(running: Running, file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = fork(join(ROOT, file), { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  running.children.add(child)
  const exited = once(child, 'exit').then(([code, signal]) => signal ?? code)
  const up = await Promise.race([once(child, 'message').then(() => true), exited.then(() => false)])
  if (!up) throw new Error(`${file} could not start`)
  void exited.then(async (how) => {
    running.children.delete(child)
    if (running.stopping) return
    say(`${file} has exited (${how}). Starting it again`)
    await startProcess(running, file, env).catch((error: Error) => running.stop(error))
  })
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const late = sleep(KILL_AFTER, undefined, { ref: false }).then(() => child.kill('SIGKILL'))
  await Promise.race([exited, late.then(() => exited)])
}

type Running = {
  children: Set<ChildProcess>
  postgres: Postgres | null
  stopping: boolean
  /** Stops everything and exits with 0, or with 1 and the error's message. */
  stop(error?: Error): void
}

async function stopAll({ children, postgres }: Running): Promise<void> {
  await Promise.all([...children].map(stopProcess))
  await postgres?.stop()
}

/** Stops when npm dies, because its shell would leave orphans. */
function stopWithParent(stop: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent) stop()
  }, 1_000).unref()
}

const curl = (url: string, key: string, path: string, body: unknown): string =>
  [
    `curl -s ${url}${path} \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n')

/** True if email isn't sent to the sandbox. */
function hasEmailProvider(): boolean {
  const { SMTP_URL = '', EMAIL_PROVIDER = '' } = process.env
  return SMTP_URL !== '' || !['', 'smtp'].includes(EMAIL_PROVIDER)
}

function greet(
  { key, email, whatsapp, own_number }: Demo,
  url: string,
  places: { inbox: string; login: string; cloud: string },
): void {
  say('')
  say(`API      ${url}/v1`)
  say(`docs     ${url}/docs`)
  say(
    hasEmailProvider()
      ? 'email    goes to your provider, not to the sandbox'
      : `inbox    ${places.inbox}   what the sandbox received`,
  )
  if (process.env.DASHBOARD !== 'off') say(`sign in  ${places.login}   once, within 15 minutes`)
  say(`API key  ${key}`)
  say('')
  say('Send an email:')
  say('')
  say(curl(url, key, '/v1/emails', email))
  say('')
  say('Send a WhatsApp message:')
  say('')
  say(curl(url, key, '/v1/whatsapp/messages', whatsapp))
  say('')
  if (own_number) {
    say('Send one as a second team, which has a WhatsApp number of its own:')
    say('')
    say(curl(url, own_number.key, '/v1/whatsapp/messages', own_number.whatsapp))
    say('')
    say('Reply to its number as a recipient. The text STOP opts out of marketing:')
    say('')
    const incoming = { number: DEMO_NUMBER.phone_number_id, from: '+15555550102', text: 'STOP' }
    say(`curl -s ${places.cloud}/incoming -d '${JSON.stringify(incoming)}'`)
    say('')
  }
  say('ready')
}

type Ports = { api: number; smtp: number; inbox: number; whatsapp: number }

const choosePorts = async (): Promise<Ports> => ({
  api: await portOf('PORT', 3000),
  smtp: await sandboxPort('SANDBOX_SMTP_PORT', 2525),
  inbox: await sandboxPort('SANDBOX_HTTP_PORT', 8025),
  whatsapp: await sandboxPort('SANDBOX_WHATSAPP_PORT', 8026),
})

/**
 * The settings of our processes, except the embedded database. Set variables win. Empty ones count as unset.
 */
async function environment({ api, smtp, inbox, whatsapp }: Ports, url: string): Promise<NodeJS.ProcessEnv> {
  const set = Object.entries(process.env).filter(([, value]) => value !== '')
  return {
    SECRET_KEY: await keptSecret('secret-key'),
    SMTP_REPORT_TOKEN: await keptSecret('smtp-report-token'),
    SMTP_RELAY_SECRET: await keptSecret('smtp-relay-secret'),
    LOG_FORMAT: 'pretty',
    // Only reachable from this machine, unless HOST is set.
    HOST: '127.0.0.1',
    SMTP_URL: `smtp://127.0.0.1:${smtp}`,
    PUBLIC_URL: url,
    DOCS_DOMAIN: DEMO_DOMAIN,
    ...(hasEmailProvider() ? {} : { SIMULATED_RECIPIENTS: 'yes' }),
    WEBHOOK_ALLOW: LOOPBACK,
    ...(await whatsappSettings(whatsapp, url)),
    ...Object.fromEntries(set),
    PORT: String(api),
    SANDBOX_DATA: join(DATA, 'sandbox'),
    SANDBOX_DASHBOARD: `${url}/dashboard`,
    SANDBOX_SMTP_PORT: String(smtp),
    SANDBOX_HTTP_PORT: String(inbox),
    SANDBOX_REPORT_URL: `${url}/hooks/smtp`,
    SANDBOX_RELAY_URL: `${url}/hooks/relay`,
    SANDBOX_WHATSAPP_PORT: String(whatsapp),
  }
}

/** Validates the settings of our processes before anything starts. @throws SettingsFault */
function checkSettings(env: NodeJS.ProcessEnv): void {
  const whole = { DATABASE_URL: 'postgres://embedded', ...env }
  readApiSettings(whole)
  readWorkerSettings(whole)
}

/** Creates .data, and checks that it is writable before other code fails there. */
async function makeData(): Promise<void> {
  try {
    await mkdir(DATA, { recursive: true })
    await access(DATA, constants.W_OK)
  } catch (error) {
    throw new Error(
      `${DATA} cannot be written to (${(error as NodeJS.ErrnoException).code}). npm start keeps its secrets there, and without DATABASE_URL also its database. Run it in a folder that you own`,
    )
  }
}

async function start(running: Running): Promise<void> {
  const { DATABASE_URL: given } = readToolSettings()
  const ports = await choosePorts()
  const url = `http://localhost:${ports.api}`
  await makeData()
  const env = await environment(ports, url)
  checkSettings(env)
  if (given) await holdDatabase(given)
  const databaseUrl = given ?? (await embeddedPostgres(running))
  if (!given) void keepPostgres(running, databaseUrl)
  env.DATABASE_URL = databaseUrl
  await migrate(databaseUrl, say)
  const hasSandbox = !process.env.WHATSAPP_API_URL
  const demo = await demoTeam(
    { url: databaseUrl, secretKey: env.SECRET_KEY ?? '', hasSandbox },
    demoFile(DATA, given),
  )
  for (const file of ['test/sandbox/main.ts', 'api/main.ts', 'workers/main.ts'])
    await startProcess(running, file, env)
  storePort(DATA, ports.api)
  storeGraphApi(DATA, env.WHATSAPP_API_URL ?? '')
  const login = await demoLink(databaseUrl, demo, url)
  greet(demo, url, {
    ...{ inbox: `http://localhost:${ports.inbox}`, login },
    cloud: `http://localhost:${ports.whatsapp}`,
  })
}

async function main(): Promise<void> {
  const running: Running = {
    children: new Set(),
    postgres: null,
    stopping: false,
    stop(error) {
      if (running.stopping) return
      running.stopping = true
      if (error) process.stderr.write(`${startFault(error) ?? error.message}\n`)
      void stopAll(running).finally(() => process.exit(error ? 1 : 0))
    },
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => running.stop())
  stopWithParent(() => running.stop())
  await start(running).catch((error: Error) => running.stop(error))
}

await main()
