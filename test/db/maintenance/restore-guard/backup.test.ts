/**
 * The commands and steps of db/README.md, *Backup and restore*. They copy a database with the machine's own
 * pg_dump, without a superuser, and start the copy without repeated sends.
 */

import { mkdtemp, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { DELIVERIES } from '../../../../db/channels/channels.sql.ts'
import { adminCli } from '../../../support/admin.ts'
import { startApi } from '../../../support/api-process.ts'
import { startCluster } from '../../../support/cluster.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { ROOT } from '../../../support/program.ts'
import { runProgram } from '../../../support/programs.ts'
import { anEmail } from '../../../support/service.ts'
import { startSmtpSink } from '../../../support/smtp-sink.ts'
import t, { type Test } from '../../../support/tap.ts'
import { startProcess, until } from '../../../support/worker.ts'

/** In this time, a worker would have sent everything several times, in milliseconds. */
const LONG = 4_000

/** The directory of the machine's own PostgreSQL, where pg_dump and server have the same version. */
async function ownPrograms(): Promise<string | null> {
  const debian = '/usr/lib/postgresql'
  const [newest] = (await readdir(debian).catch(() => [])).sort((a, b) => Number(b) - Number(a))
  if (newest !== undefined) return join(debian, newest, 'bin')
  const found = await runProgram('/bin/sh', ['-c', 'command -v initdb']).catch(() => null)
  return found && dirname(await realpath(found.stdout.trim()))
}

/** Returns the commands of the chapter, and its example URL of the new database. */
async function chapter(): Promise<{ commands: string; example: string }> {
  const text = await readFile(join(ROOT, 'db/README.md'), 'utf8')
  const [, commands = ''] = /## Backup and restore[\s\S]*?```sh\n([\s\S]*?)```/.exec(text) ?? []
  const [example = ''] = /postgres:\S+/.exec(commands) ?? []
  return { commands, example }
}

/** Starts a server with a database. Its owner isn't a superuser, but can create databases. */
async function startServer(t: Test, bin: string): Promise<string> {
  const home = await realpath(await mkdtemp(join(tmpdir(), 'heliograph-backup-')))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const { url, stop } = await startCluster(bin, home)
  t.teardown(stop)
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('create role app login createdb')
  await client.query('create database heliograph owner app')
  await client.end()
  return Object.assign(new URL(url), { username: 'app', pathname: '/heliograph' }).href
}

const MISSING = 'PostgreSQL is not installed (Debian: apt-get install -y postgresql)'

t.test('restores a dump as db/README.md describes', async (t) => {
  const bin = await ownPrograms()
  if (bin === null) return void t.plan(0, MISSING)
  const url = await startServer(t, bin)
  const release = (to: string) =>
    runProgram(process.execPath, ['db/migrate.ts'], { cwd: ROOT, env: { DATABASE_URL: to, SECRET_KEY } })
  await release(url)
  const cli = adminCli({ DATABASE_URL: url })
  const { id: team } = await cli.json(['team', 'create', '--name', 'Acme', '--plan', 'pro'])
  await cli.json(['domain', 'add', team, 'example.com', '--verified'])
  const key = (await cli.json(['key', 'create', team, '--name', 'k', '--scopes', 'emails:send'])).key
  const sink = await startSmtpSink(t)
  const subjects = () => sink.messages().map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw.toString())?.[1])
  const web = await startApi(t, url)
  const send = async (subject: string): Promise<string> =>
    (await web.call('POST', '/v1/emails', { key, body: anEmail({ subject }) })).body.id
  const gone = await send('it went out after the copy')
  await send('it never went out')

  const { commands, example } = await chapter()
  const copy = Object.assign(new URL(url), { pathname: new URL(example).pathname }).href
  const folder = t.testdir()
  const env = { PATH: `${bin}:${process.env.PATH}`, DATABASE_URL: url }
  await runProgram('/bin/bash', ['-ec', commands.replace(example, copy)], { cwd: folder, env })
  t.strictSame(await readdir(folder), ['heliograph.dump'])

  await release(copy)
  await startProcess(t, 'workers/main.ts', { DATABASE_URL: copy, SMTP_URL: sink.url })
  const restored = adminCli({ DATABASE_URL: copy })
  const standing = (await restored.json(['queue', 'status'])).filter(
    ({ pause_reason }: { pause_reason: string | null }) => pause_reason === 'restored',
  )
  t.equal(standing.length, DELIVERIES.length, 'the queues that deliver')
  await sleep(LONG)
  t.strictSame(subjects(), [])
  const waiting = await restored.json(['email', 'list', team, '--status', 'queued'])
  t.equal(waiting.length, 2)
  await restored.json(['email', 'delete', team, gone])
  await restored.json(['queue', 'resume', '--restored'])
  await until('the rest is sent', () => subjects().length > 0)
  await sleep(1_000)
  t.strictSame(subjects(), ['it never went out'])
})
