/**
 * What `npm start` runs: the whole service on one machine, with nothing set up.
 * Owns the order: PostgreSQL (embedded, unless DATABASE_URL names one), migrations, a demo team once, then sandbox,
 * API and one worker side by side. Promises: data are kept in .data/ between runs; whatever is set in the environment
 * is passed through; Ctrl-C or SIGTERM stops everything, also when only npm got the signal. Not for production.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Postgres, startPostgres } from '../db/dev.ts'
import { migrate } from '../db/migrate.ts'
import { type Demo, demoTeam } from './demo.ts'

const ROOT = join(import.meta.dirname, '..')
const DATA = join(ROOT, '.data')
const KILL_AFTER = 30_000
const WHATSAPP_PORT = 8026

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** The secret of this checkout, made once. */
async function secretKey(): Promise<string> {
  const file = join(DATA, 'secret-key')
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept.trim().length >= 32) return kept.trim()
  const made = randomBytes(32).toString('base64url')
  await writeFile(file, `${made}\n`, { mode: 0o600 })
  await chmod(file, 0o600)
  return made
}

/** Listens for a moment. @returns the port, or null when it is taken; 0 finds a free one. */
async function probe(port: number): Promise<number | null> {
  const server = createServer()
  const found = await new Promise<number | null>((resolve) => {
    server.once('error', () => resolve(null))
    server.listen(port, () => resolve((server.address() as AddressInfo).port))
  })
  if (found !== null) await new Promise((resolve) => server.close(resolve))
  return found
}

/** Fails early and clearly when a port is taken. */
async function assertFree(name: string, port: number): Promise<void> {
  if ((await probe(port)) !== null) return
  throw new Error(`port ${port} is taken by another program: stop it, or set ${name} to another port`)
}

/** The port of the sandbox's Cloud API, which only our own processes need to know. */
async function whatsappPort(): Promise<string> {
  const given = process.env.SANDBOX_WHATSAPP_PORT
  if (given) await assertFree('SANDBOX_WHATSAPP_PORT', Number(given))
  return given || String((await probe(WHATSAPP_PORT)) ?? (await probe(0)))
}

/** WhatsApp through the sandbox, as far as nothing else is set. Its number is as fast as the provider allows. */
const whatsappSettings = (port: string, url: string): NodeJS.ProcessEnv => ({
  WHATSAPP_API_URL: `http://127.0.0.1:${port}/v23.0`,
  WHATSAPP_ACCESS_TOKEN: 'sandbox',
  WHATSAPP_PHONE_NUMBER_ID: '100000000000002',
  WHATSAPP_BUSINESS_ACCOUNT_ID: '100000000000001',
  WHATSAPP_MESSAGES_PER_SECOND: '1000',
  WHATSAPP_APP_SECRET: 'sandbox-app-secret',
  WHATSAPP_VERIFY_TOKEN: 'sandbox-verify-token',
  SANDBOX_WHATSAPP_WEBHOOK: `${url}/hooks/whatsapp`,
})

/** Starts one of our processes and waits until it says that it is up. */
async function startProcess(children: ChildProcess[], file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = fork(join(ROOT, file), { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  const exited = once(child, 'exit').then(() => false)
  const up = await Promise.race([once(child, 'message').then(() => true), exited])
  if (!up) throw new Error(`${file} could not start`)
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const late = sleep(KILL_AFTER, undefined, { ref: false }).then(() => child.kill('SIGKILL'))
  await Promise.race([exited, late.then(async () => await exited)])
}

/** Everything that runs, in the order it was started. */
type Running = { children: ChildProcess[]; postgres: Postgres | null }

async function stopAll({ children, postgres }: Running): Promise<void> {
  await Promise.all(children.map(stopProcess))
  await postgres?.stop()
}

/** npm's own death is ours: its shell must not leave orphans. */
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

function greet({ key, email, whatsapp }: Demo, url: string, inbox: string): void {
  say('')
  say(`API      ${url}/v1`)
  say(`inbox    ${inbox}   what the sandbox received`)
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
  say('ready')
}

async function start(running: Running): Promise<void> {
  const port = Number(process.env.PORT || 3000)
  const [smtpPort, inboxPort] = [
    process.env.SANDBOX_SMTP_PORT || '2525',
    process.env.SANDBOX_HTTP_PORT || '8025',
  ]
  await assertFree('PORT', port)
  await assertFree('SANDBOX_SMTP_PORT', Number(smtpPort))
  await assertFree('SANDBOX_HTTP_PORT', Number(inboxPort))
  const cloudPort = await whatsappPort()
  await mkdir(DATA, { recursive: true })
  if (!process.env.DATABASE_URL) {
    say('starting PostgreSQL …')
    running.postgres = await startPostgres({ directory: DATA, log: say })
  }
  const url = `http://localhost:${port}`
  const env: NodeJS.ProcessEnv = {
    SECRET_KEY: await secretKey(),
    LOG_FORMAT: 'pretty',
    SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
    PUBLIC_URL: url,
    DATABASE_URL: running.postgres?.url,
    ...whatsappSettings(cloudPort, url),
    ...process.env,
    PORT: String(port),
    SANDBOX_SMTP_PORT: smtpPort,
    SANDBOX_HTTP_PORT: inboxPort,
    SANDBOX_WHATSAPP_PORT: cloudPort,
  }
  const databaseUrl = env.DATABASE_URL ?? ''
  await migrate(databaseUrl, say)
  const demo = await demoTeam(databaseUrl, env.SECRET_KEY ?? '', join(DATA, 'demo.json'))
  for (const file of ['test/sandbox/main.ts', 'api/main.ts', 'workers/main.ts']) {
    await startProcess(running.children, file, env)
  }
  greet(demo, url, `http://localhost:${inboxPort}`)
}

async function main(): Promise<void> {
  const running: Running = { children: [], postgres: null }
  let stopping: Promise<void> | undefined
  const stop = (code: number): void => {
    stopping ??= stopAll(running).finally(() => process.exit(code))
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(0))
  stopWithParent(() => stop(0))
  try {
    await start(running)
    for (const child of running.children) {
      child.once('exit', () => {
        if (!stopping) process.stderr.write('a process ended; stopping the others\n')
        stop(1)
      })
    }
  } catch (error) {
    if (!stopping) process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    stop(1)
  }
}

await main()
