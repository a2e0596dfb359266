/**
 * A real PgBouncer in front of the test server, in one of its modes, with default settings. The machine's own
 * PgBouncer isn't read or changed. It stops and is removed with the test.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from './free-port.ts'
import { programMissing } from './programs.ts'
import type { Teardown } from './smtp-sink.ts'

const ATTEMPTS = 5

export type PoolMode = 'session' | 'transaction'

/** Returns why PgBouncer isn't available. Null if it is. */
export const pgbouncerMissing = () => programMissing('pgbouncer', 'pgbouncer')

const configuration = (target: URL, mode: PoolMode, port: number, users: string, settings: string): string =>
  `[databases]
* = host=${target.hostname} port=${target.port || 5432}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = ${mode}
${settings}
`

/** Starts it and waits until it is up. @returns a function that stops it. Null if its port is in use. */
async function launch(file: string): Promise<(() => Promise<void>) | null> {
  // PgBouncer doesn't run as root.
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn('pgbouncer', [...asUser, file], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const said: string[] = []
  const lines = createInterface({ input: child.stderr })
  const up = new Promise<boolean>((resolve) => {
    lines.on('line', (line) => {
      said.push(line)
      if (line.includes('process up')) resolve(true)
    })
    lines.once('close', () => resolve(false))
  })
  if (await up) {
    return async () => {
      child.kill('SIGKILL')
      await ended
    }
  }
  if (said.some((line) => line.includes('in use'))) return null
  throw new Error(`PgBouncer did not start:\n${said.join('\n')}`)
}

/**
 * Starts PgBouncer for the database at `url`, with `settings` of pgbouncer.ini. @returns the URL through it.
 */
export async function startPgbouncer(t: Teardown, url: string, mode: PoolMode, settings = '') {
  const target = new URL(url)
  const home = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  await chmod(home, 0o755)
  const [file, users] = [join(home, 'pgbouncer.ini'), join(home, 'users.txt')]
  await writeFile(users, `"${target.username}" "${decodeURIComponent(target.password)}"\n`)
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const port = await freePort()
    await writeFile(file, configuration(target, mode, port, users, settings))
    const stop = await launch(file)
    if (stop === null) continue
    t.teardown(async () => {
      await stop()
      await rm(home, { recursive: true, force: true })
    })
    return Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href
  }
  throw new Error('PgBouncer found no free port')
}
