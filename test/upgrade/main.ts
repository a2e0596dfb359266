/**
 * Runs `npm run test:upgrade [-- REF]`: an upgrade under load, in the order of db/README.md, *Upgrading*, and
 * the way back. It upgrades from the version at REF (a tag or commit of this checkout) to this one. Without
 * REF it goes from this one to a next one that test/support/next-version.ts makes. The database has half a
 * year of data (lived-in.ts). Sends, scheduled emails, reports, an import and an owner on the dashboard
 * continue throughout (load.ts). WhatsApp messages are sent while an old worker runs with new web processes
 * (whatsapp.ts). One broadcast starts before the release and one before the web processes are replaced. It
 * prints each step's result. It exits 1 if an email was lost or doubled, a report had no effect, the import
 * is incomplete, a response was other than 200, 201, 202 or 503, a lock wait or a migration's blocking lock
 * (watch.ts) lasted longer than a second, or a process didn't end by itself. UPGRADE_RATE (20 per second) and
 * UPGRADE_SECONDS (5 per step) set the load. With these defaults it runs for 75 s.
 */
import { chmod, mkdtemp, readFile, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { program } from 'commander'
import { Client } from 'pg'
import { NUMBER_WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import { startPostgres } from '../../db/dev/postgres.ts'
import { startApi } from '../support/api-process.ts'
import { bareEnvironment, SECRET_KEY } from '../support/environment.ts'
import { nextVersion } from '../support/next-version.ts'
import { MODULES, ROOT } from '../support/program.ts'
import { runProgram } from '../support/programs.ts'
import { messageIdOf, startSmtpSink } from '../support/smtp-sink.ts'
import { type OurProcess, startProcess, until } from '../support/worker.ts'
import { AUDIENCE, liveIn } from './lived-in.ts'
import { REPORT_TOKEN, startLoad } from './load.ts'
import { watchLocks } from './watch.ts'
import { startWhatsapp } from './whatsapp.ts'

const RATE = Number(process.env.UPGRADE_RATE ?? 20)
const STEP = Number(process.env.UPGRADE_SECONDS ?? 5) * 1_000
/** The maximum seconds of lock waits, and of migration locks that block writes. */
const LONGEST = 1
/** The responses that README allows. 503 is for a stopping process or an unavailable database. */
const STATED = new Set(['200', '201', '202', '503'])

const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** Clean-up to run at the end, last first. */
const endings: (() => Promise<void>)[] = []
const t = { teardown: (end: () => Promise<void>): void => void endings.push(end) }

/** Runs a command of a version with the database. @returns its output. */
async function command(root: string, url: string, file: string, ...args: string[]): Promise<string> {
  const env = { ...bareEnvironment(), DATABASE_URL: url, SECRET_KEY }
  try {
    return (await runProgram(process.execPath, [join(root, file), ...args], { env })).stdout
  } catch (error) {
    throw new Error(`${file}: ${(error as { stderr: string }).stderr.trim()}`)
  }
}

/** The sources of a commit with their own packages, which are this checkout's unless its lock file differs. */
async function sourcesAt(ref: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'heliograph-before-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const archive = `git archive "$1" api db workers package.json package-lock.json | tar -xC "$2"`
  await runProgram('/bin/sh', ['-ec', archive, 'sh', ref, root], { cwd: ROOT })
  const [theirs, ours] = await Promise.all(
    [root, ROOT].map((folder) => readFile(join(folder, 'package-lock.json'), 'utf8')),
  )
  if (theirs === ours) await symlink(MODULES, join(root, 'node_modules'))
  else await runProgram('npm', ['ci', '--omit=dev', '--prefer-offline', '--no-audit'], { cwd: root })
  return root
}

/** Returns a broadcast's results from the database: its emails, and the number of their recipients. */
async function broadcastOf(client: Client, id: string): Promise<{ ids: string[]; people: number }> {
  const { rows } = await client.query<{ id: string; person: string }>(
    'select id, to_emails[1] as person from emails where broadcast_id = $1',
    [id],
  )
  return { ids: rows.map((row) => row.id), people: new Set(rows.map(({ person }) => person)).size }
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
  const whatsapp = await startWhatsapp(t)
  const faults: string[] = []
  const worker = (root: string) =>
    startProcess(
      t,
      'workers/main.ts',
      { DATABASE_URL: url, SMTP_URL: sink.url, PUBLIC_URL: 'http://127.0.0.1', ...whatsapp.env },
      root,
    )
  const bases: string[] = []
  const web = async (root: string) => {
    const env = { SMTP_REPORT_TOKEN: REPORT_TOKEN, PUBLIC_URL: 'http://127.0.0.1' }
    const process = await startApi(t, url, env, root)
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
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  const admin = async (...args: string[]) =>
    JSON.parse(await command(before, url, 'db/admin/main.ts', ...args))
  const livedIn = await liveIn(client, admin, scratch)
  const [oldWeb, oldWorker] = [await web(before), await worker(before)]
  const load = await startLoad(t, { bases, sink, livedIn, rate: RATE })
  const locks = await watchLocks(t, url)
  const broadcasts: string[] = []
  const broadcast = async (): Promise<void> => void broadcasts.push(await load.broadcast())
  const arrived = () => sink.messages().map((message) => messageIdOf(message).split('@')[0] ?? '')
  const step = async (name: string, change: () => Promise<unknown>): Promise<void> => {
    await change()
    await sleep(STEP)
    const answers = [...load.met].map(([what, count]) => `${what} × ${count}`).join(', ')
    print(
      `${name}: ${answers}; ${arrived().length} at the relay; longest wait for a lock ${locks.waited().toFixed(2)} s, longest held by a migration ${locks.held().toFixed(2)} s`,
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
  await step('before', broadcast)
  await step('release', () => command(after, url, 'db/migrate.ts'))
  await step('workers', () => exchange('worker', worker(after)))
  await step('web', async () => {
    await broadcast()
    await exchange('web', web(after))
  })
  await step('an old worker with new web', async () => {
    await exchange('worker', worker(before))
    const program = [process.execPath, join(after, 'db/admin/main.ts')]
    const newAdmin: Parameters<typeof whatsapp.begin>[0] = async (args, input = '') => {
      const env = { ...bareEnvironment(), DATABASE_URL: url, SECRET_KEY, INPUT: input, ...whatsapp.env }
      const { stdout } = await runProgram(
        '/bin/sh',
        ['-c', 'printf %s "$INPUT" | "$@"', 'sh', ...program, ...args],
        { env },
      )
      return JSON.parse(stdout)
    }
    await whatsapp.begin(newAdmin, scratch)
    const queues = await readFile(join(before, 'db/queue/jobs.ts'), 'utf8')
    await whatsapp.send(running.web.base, { onlyText: !queues.includes(NUMBER_WHATSAPP.job) })
    await exchange('worker', worker(after))
    faults.push(...(await whatsapp.end()))
  })
  await step('back: web', () => exchange('web', web(before)))
  await step('back: workers', async () => {
    // Emails accepted by newer API processes are for newer workers, like the emails of a broadcast that those
    // created.
    const there = new Set(load.accepted)
    await until('the queue holds nothing newer', async () => {
      const { rows } = await client.query<{ id: string }>(
        'select id from emails where broadcast_id = any($1)',
        [broadcasts],
      )
      const known = new Set(arrived())
      const isWhole = rows.length >= AUDIENCE * broadcasts.length
      return isWhole && rows.every(({ id }) => known.has(id)) && there.isSubsetOf(known)
    })
    await exchange('worker', worker(before))
  })
  await load.stop()
  const of = new Map<string, Awaited<ReturnType<typeof broadcastOf>>>()
  const all = new Set(load.accepted)
  await until('all has arrived', async () => {
    for (const id of broadcasts) of.set(id, await broadcastOf(client, id))
    const ids = [...of.values()].flatMap((each) => each.ids)
    for (const id of ids) all.add(id)
    return ids.length >= AUDIENCE * broadcasts.length && all.isSubsetOf(new Set(arrived()))
  }).catch(() => {})
  await load.stopReports()
  const wrong = async (): Promise<number> => {
    const { rows } = await client.query<{ id: string; status: string }>(
      'select id, status from email_states where id = any($1)',
      [[...load.reported.keys()]],
    )
    return load.reported.size - rows.filter(({ id, status }) => load.reported.get(id) === status).length
  }
  await until('all reports are applied', async () => (await wrong()) === 0, 60).catch(() => {})
  for (const process of [running.web, running.worker]) await end(process)

  const ids = arrived()
  const [lost, doubled] = [all.difference(new Set(ids)).size, ids.length - new Set(ids).size]
  print(`${load.sent()} sent, ${load.accepted.length} accepted, ${lost} lost, ${doubled} doubled`)
  if (load.accepted.length !== load.sent())
    faults.push(`${load.sent() - load.accepted.length} were never accepted`)
  if (new Set(load.accepted).size !== load.accepted.length) faults.push('two sends have one email')
  if (lost + doubled > 0) faults.push(`${lost} lost, ${doubled} doubled`)
  for (const [id, { ids, people }] of of) {
    print(`a broadcast: ${ids.length} emails to ${people} of ${AUDIENCE} contacts`)
    if (ids.length !== AUDIENCE || people !== AUDIENCE) faults.push(`the broadcast ${id} missed or met twice`)
  }
  const unapplied = await wrong()
  print(`${load.reported.size} reports, ${unapplied} of them without effect`)
  if (unapplied > 0 || load.reported.size !== load.accepted.length)
    faults.push(
      `of ${load.accepted.length} emails ${load.reported.size} were reported, ${unapplied} without effect`,
    )
  const { rows } = await client.query<{ count: number }>(
    "select count(*)::int as count from contacts where email like 'import-%'",
  )
  print(`${load.imported()} contacts imported, ${rows[0]?.count} there`)
  if (rows[0]?.count !== load.imported()) faults.push('the import is not whole')
  const odd = [...load.met.keys()].filter((what) => !STATED.has(what.split(' ')[1] ?? ''))
  if (odd.length > 0) faults.push(`answers: ${odd.join(', ')}`)
  if (locks.waited() > LONGEST) faults.push(`somebody waited ${locks.waited().toFixed(2)} s for a lock`)
  if (locks.held() > LONGEST)
    faults.push(`a migration held a lock on ${locks.holder()} for ${locks.held().toFixed(2)} s`)
  return faults
}

const [ref] = program
  .name('npm run test:upgrade --')
  .description(
    'Rehearses an upgrade under load, and the way back. UPGRADE_RATE and UPGRADE_SECONDS set the load.',
  )
  .argument(
    '[ref]',
    'the tag or commit to upgrade from (default: from this version to a newer one that the test creates)',
  )
  .parse().args
const faults = await rehearse(ref)
  .catch((error: Error) => [error.message])
  .finally(async () => {
    for (const end of endings.reverse()) await end()
  })
for (const fault of faults) print(`not held: ${fault}`)
process.exitCode = faults.length === 0 ? 0 : 1
