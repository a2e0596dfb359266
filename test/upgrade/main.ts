/**
 * `npm run test:upgrade [-- REF]`: an upgrade under load, in the order of db/README.md, *Upgrading*, and the way back.
 * From the version at REF (a tag or commit of this checkout) to this one; without it, from this one to a next one that
 * test/support/next-version.ts makes. Single and scheduled sends go on through all of it, as a client with idempotency
 * keys makes them. Promises: prints what each step met, and exits 1 when a mail was lost or doubled, an answer was
 * another than 201, 200 or 503, somebody waited for a lock longer than a second, or a process did not end by itself.
 * UPGRADE_RATE (20 a second) and UPGRADE_SECONDS (5 a step) set the load.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { startPostgres } from '../../db/dev/postgres.ts'
import { startApi } from '../support/api-process.ts'
import { bareEnvironment, SECRET_KEY } from '../support/environment.ts'
import { nextVersion } from '../support/next-version.ts'
import { MODULES, ROOT } from '../support/program.ts'
import { messageIdOf, startSmtpSink } from '../support/smtp-sink.ts'
import { type OurProcess, startProcess, until } from '../support/worker.ts'

const run = promisify(execFile)
const RATE = Number(process.env.UPGRADE_RATE ?? 20)
const STEP = Number(process.env.UPGRADE_SECONDS ?? 5) * 1_000
/** Every fifth send is for a later time: how much later, in milliseconds. */
const SCHEDULED = { every: 5, wait: 3_000 }
const LONGEST_WAIT = 1
/** For how long a client repeats a send that got no answer or 503, in milliseconds. */
const PATIENCE = 60_000

const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** What is to be undone at the end, the last first. */
const endings: (() => Promise<void>)[] = []
const t = { teardown: (end: () => Promise<void>): void => void endings.push(end) }

/** A command of a version, on the database. @returns what it printed. */
async function command(root: string, url: string, file: string, ...args: string[]): Promise<string> {
  const env = { ...bareEnvironment(), DATABASE_URL: url, SECRET_KEY }
  return (await run(process.execPath, [join(root, file), ...args], { env })).stdout
}

/** The sources of a commit, with this checkout's packages. */
async function sourcesAt(ref: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'heliograph-before-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const archive = `git archive "$1" api db workers package.json | tar -xC "$2"`
  await run('/bin/sh', ['-ec', archive, 'sh', ref, root], { cwd: ROOT })
  await symlink(MODULES, join(root, 'node_modules'))
  return root
}

/** A team that may send, made by the command line of a version. @returns its key. */
async function teamOf(root: string, url: string): Promise<string> {
  const admin = async (...args: string[]) =>
    JSON.parse(await command(root, url, 'db/admin/main.ts', ...args)) as { id: string; key: string }
  const { id } = await admin('team', 'create', '--name', 'Acme', '--plan', 'pro')
  await admin('team', 'plan', id, '--rate', '1000', '--emails', '1000000')
  await admin('domain', 'add', id, 'example.com', '--verified')
  return (await admin('key', 'create', id, '--name', 'load', '--scopes', 'emails:send')).key
}

/** Sends at RATE to the web processes of `bases` until it is stopped, and repeats what got no answer. */
function startLoad(bases: readonly string[], key: string) {
  const met = new Map<string, number>()
  const accepted: string[] = []
  const sending = new Set<Promise<void>>()
  const note = (what: string): void => void met.set(what, (met.get(what) ?? 0) + 1)
  let count = 0
  const send = async (number: number): Promise<void> => {
    const later = number % SCHEDULED.every === 0
    const body = JSON.stringify({
      ...{
        from: 'hello@example.com',
        to: [`ana-${number}@example.org`],
        subject: 'Hello',
        html: '<p>Hi</p>',
      },
      ...{ idempotency_key: `upgrade-${number}` },
      ...(later ? { scheduled_at: new Date(Date.now() + SCHEDULED.wait).toISOString() } : {}),
    })
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(200)) {
      const base = bases[number % bases.length]
      const answer = await fetch(`${base}/v1/emails`, { method: 'POST', headers, body }).catch(() => null)
      note(answer ? String(answer.status) : 'no answer')
      if (answer?.ok) return void accepted.push(((await answer.json()) as { id: string }).id)
      if (answer && answer.status !== 503) return
    }
    note('given up')
  }
  const timer = setInterval(() => {
    const sent = send(count++).finally(() => sending.delete(sent))
    sending.add(sent)
  }, 1_000 / RATE)
  t.teardown(async () => clearInterval(timer))
  return {
    met,
    accepted,
    sent: () => count,
    stop: async (): Promise<void> => {
      clearInterval(timer)
      await Promise.all(sending)
    },
  }
}

/** Looks ten times a second for how long anybody waits for a lock. @returns the longest wait so far, in seconds. */
async function watchLocks(url: string): Promise<() => number> {
  const client = new Client({ connectionString: url })
  await client.connect()
  let longest = 0
  let watching = true
  const watch = async (): Promise<void> => {
    while (watching) {
      const { rows } = await client.query<{ seconds: number }>(
        `select coalesce(max(extract(epoch from clock_timestamp() - waitstart)), 0)::float8 as seconds
         from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`,
      )
      longest = Math.max(longest, rows[0]?.seconds ?? 0)
      await sleep(100)
    }
    await client.end()
  }
  const watched = watch()
  t.teardown(() => {
    watching = false
    return watched
  })
  return () => longest
}

async function rehearse(ref: string | undefined): Promise<string[]> {
  const scratch = await realpath(await mkdtemp(join(tmpdir(), 'heliograph-upgrade-')))
  t.teardown(() => rm(scratch, { recursive: true, force: true }))
  await chmod(scratch, 0o711)
  const { url, stop } = await startPostgres({ directory: join(scratch, 'postgres') })
  t.teardown(stop)
  const [before, after] =
    ref === undefined ? [ROOT, (await nextVersion(t)).root] : [await sourcesAt(ref), ROOT]
  const sink = await startSmtpSink(t)
  const faults: string[] = []
  const worker = (root: string) =>
    startProcess(t, 'workers/main.ts', { DATABASE_URL: url, SMTP_URL: sink.url }, root)
  const bases: string[] = []
  const web = async (root: string) => {
    const process = await startApi(t, url, {}, root)
    bases.push(process.base)
    return process
  }
  const end = async (process: OurProcess & { base?: string }): Promise<void> => {
    if (process.base !== undefined) bases.splice(bases.indexOf(process.base), 1)
    process.kill('SIGTERM')
    const code = await process.exited
    if (code !== 0) faults.push(`a process ended with ${code}`)
  }

  await command(before, url, 'db/migrate.ts')
  const key = await teamOf(before, url)
  const [oldWeb, oldWorker] = [await web(before), await worker(before)]
  const load = startLoad(bases, key)
  const longestWait = await watchLocks(url)
  const arrived = () => sink.messages().map((message) => messageIdOf(message).split('@')[0] ?? '')
  const step = async (name: string, change: () => Promise<unknown>): Promise<void> => {
    await change()
    await sleep(STEP)
    const answers = [...load.met].map(([what, count]) => `${what} × ${count}`).join(', ')
    print(
      `${name}: ${answers}; ${arrived().length} at the relay; longest wait for a lock ${longestWait().toFixed(2)} s`,
    )
  }
  const running: { web: Awaited<ReturnType<typeof web>>; worker: OurProcess } = {
    web: oldWeb,
    worker: oldWorker,
  }
  const exchange = async <K extends 'web' | 'worker'>(kind: K, next: Promise<(typeof running)[K]>) => {
    const last = running[kind]
    running[kind] = await next
    await end(last)
  }
  await step('before', async () => {})
  await step('release', () => command(after, url, 'db/migrate.ts'))
  await step('workers', () => exchange('worker', worker(after)))
  await step('web', () => exchange('web', web(after)))
  await step('back: web', () => exchange('web', web(before)))
  await step('back: workers', async () => {
    // What the newer web has let in is for newer workers.
    const there = new Set(load.accepted)
    await until('the queue holds nothing newer', () => there.isSubsetOf(new Set(arrived())))
    await exchange('worker', worker(before))
  })
  await load.stop()
  const all = new Set(load.accepted)
  await until('all has arrived', () => all.isSubsetOf(new Set(arrived()))).catch(() => {})
  for (const process of [running.web, running.worker]) await end(process)

  const ids = arrived()
  const [lost, doubled] = [all.difference(new Set(ids)).size, ids.length - new Set(ids).size]
  print(`${load.sent()} sent, ${all.size} accepted, ${lost} lost, ${doubled} doubled`)
  if (all.size !== load.sent()) faults.push(`${load.sent() - all.size} were never accepted`)
  if (lost + doubled > 0) faults.push(`${lost} lost, ${doubled} doubled`)
  const odd = [...load.met.keys()].filter((what) => !['200', '201', '503'].includes(what))
  if (odd.length > 0) faults.push(`answers: ${odd.join(', ')}`)
  if (longestWait() > LONGEST_WAIT) faults.push(`somebody waited ${longestWait().toFixed(2)} s for a lock`)
  return faults
}

const faults = await rehearse(process.argv[2]).finally(async () => {
  for (const end of endings.reverse()) await end()
})
for (const fault of faults) print(`not held: ${fault}`)
process.exitCode = faults.length === 0 ? 0 : 1
