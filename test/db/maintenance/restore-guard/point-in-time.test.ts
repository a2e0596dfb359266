/**
 * A restore to a point in time leaves the same server and database, except for the timeline, as after a
 * failover does. Only a process that has written since then can detect it.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../../../../db/dev/postgres.ts'
import { migrate } from '../../../../db/migrate.ts'
import { adminCli } from '../../../support/admin.ts'
import { startApi } from '../../../support/api-process.ts'
import { runProgram } from '../../../support/programs.ts'
import { anEmail } from '../../../support/service.ts'
import { startSmtpSink } from '../../../support/smtp-sink.ts'
import t, { type Test } from '../../../support/tap.ts'
import { startProcess, until } from '../../../support/worker.ts'

const SETTINGS = { fsync: 'off', shared_buffers: '16MB', max_connections: '60' }

/** A server that can be restored to an earlier state, on the same port. */
async function startRestorable(t: Test) {
  const scratch = await mkdtemp(join(tmpdir(), 'heliograph-restored-'))
  // The server's user must be able to enter it.
  await chmod(scratch, 0o711)
  t.teardown(() => rm(scratch, { recursive: true, force: true }))
  const options = { directory: join(scratch, 'first'), settings: SETTINGS }
  let server = await startPostgres(options)
  t.teardown(() => server.stop())
  const { url, home } = server
  const port = Number(new URL(url).port)
  await migrate(url)
  const backup = join(scratch, 'backup')
  return {
    url,
    async backUp() {
      await server.stop()
      await runProgram('cp', ['-a', home, backup])
      server = await startPostgres({ ...options, port })
    },
    async restore() {
      await server.stop()
      await writeFile(join(backup, 'data', 'recovery.signal'), '')
      const settings = { ...SETTINGS, restore_command: '/bin/false' }
      server = await startPostgres({ directory: backup, settings, port })
    },
  }
}

t.test('a point-in-time restore under a running process sends nothing', async (t) => {
  const server = await startRestorable(t)
  const { url } = server
  const cli = adminCli({ DATABASE_URL: url })
  const sink = await startSmtpSink(t)
  const { id: team } = await cli.json(['team', 'create', '--name', 'Ours'])
  await cli.json(['domain', 'add', team, 'example.com', '--verified'])
  const { key } = await cli.json(['key', 'create', team, '--name', 'k', '--scopes', 'emails:send'])
  const { call } = await startApi(t, url)
  const accepts = async () => (await call('POST', '/v1/emails', { key, body: anEmail() })).status === 201
  t.ok(await accepts())
  await server.backUp()
  await until('it is accepted after the backup', accepts)
  // The process writes a heartbeat every second.
  await sleep(3_000)

  await server.restore()
  await startProcess(t, 'workers/main.ts', { DATABASE_URL: url, SMTP_URL: sink.url })
  const email = async () =>
    (await cli.json(['queue', 'status'])).find((each: { queue: string }) => each.queue === 'deliver-email')
  t.match(await email(), { paused: true, pause_reason: 'restored' })
  await until('it is settled', async () => (await email()).paused_at !== null)
  t.match(await email(), { paused: true, pause_reason: 'restored', ready: 1 })
  await sleep(2_000)
  t.equal(sink.messages().length, 0)

  t.match(await cli.json(['queue', 'resume', '--restored']), { broadcasts: 0 })
  await until('what waited is sent', () => sink.messages().length === 1)
})
