/**
 * A PostgreSQL with a streaming standby, both of the embedded server, migrated and without a team. The
 * standby starts as a cold copy, so only the server's own programs are needed. Once synchronous, it has
 * everything that the primary reported as committed. Both end with the test.
 */
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { type Postgres, startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { runProgram } from './programs.ts'
import { until } from './worker.ts'

const SETTINGS = { fsync: 'off', shared_buffers: '16MB', max_connections: '60' }

export type Pair = {
  primary: string
  standby: string
  /** `away` stops the standby, and `back` starts it again. */
  away(): Promise<void>
  back(): Promise<void>
  /** `freeze` pauses its replay, and `thaw` resumes it. Both wait until that is effective. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Makes replication synchronous: the primary only confirms commits that the standby has written. */
  synchronise(): Promise<void>
  /** Kills every process of the primary at once. */
  kill(): Promise<void>
  /** Makes the standby a separate primary. */
  promote(): Promise<void>
}

/** Returns the pid of a process's parent. 0 if the process has ended. */
export async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/PPid:\s+(\d+)/.exec(status)?.[1] ?? 0)
}

/** Returns the processes of a postmaster, itself first. */
export async function processesOf(postmaster: number): Promise<number[]> {
  const entries = await readdir('/proc')
  const pids = entries.filter((name) => /^[0-9]+$/.test(name)).map(Number)
  const parents = await Promise.all(pids.map(parentOf))
  return [postmaster, ...pids.filter((_, at) => parents[at] === postmaster)]
}

/** Runs one statement. @returns the first column of its row. */
async function ask(url: string, text: string): Promise<string> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<[string]>({ text, rowMode: 'array' })
    return String(rows[0]?.[0] ?? '')
  } finally {
    await client.end()
  }
}

export async function startPair(t: { teardown(end: () => Promise<void>): unknown }): Promise<Pair> {
  const scratch = await mkdtemp(join(tmpdir(), 'heliograph-standby-'))
  // The servers' account needs access to the folder.
  await chmod(scratch, 0o711)
  t.teardown(() => rm(scratch, { recursive: true, force: true }))
  const first = { directory: join(scratch, 'first'), settings: SETTINGS }
  const alone = await startPostgres(first)
  await migrate(alone.url).finally(() => alone.stop())
  const second = join(scratch, 'second')
  await runProgram('cp', ['-a', alone.home, second])
  await writeFile(join(second, 'data', 'standby.signal'), '')

  const primary = await startPostgres(first)
  t.teardown(() => primary.stop())
  const { hostname: host, port, username: user, password } = new URL(primary.url)
  const primary_conninfo = `host=${host} port=${port} user=${user} password=${password}`
  const startStandby = (at?: number): Promise<Postgres> =>
    startPostgres({
      directory: second,
      settings: { ...SETTINGS, primary_conninfo },
      ...(at === undefined ? {} : { port: at }),
    })
  let standby = await startStandby()
  t.teardown(() => standby.stop())
  const url = standby.url

  const caughtUp = async () => {
    const written = await ask(primary.url, 'select pg_current_wal_lsn()')
    const behind = `select pg_last_wal_replay_lsn() >= '${written}'`
    await until('the standby has replayed it', async () => (await ask(url, behind)) === 'true')
  }
  return {
    primary: primary.url,
    standby: url,
    away: () => standby.stop(),
    async back() {
      standby = await startStandby(Number(new URL(url).port))
    },
    async freeze() {
      await caughtUp()
      await ask(url, 'select pg_wal_replay_pause()')
      const paused = `select pg_get_wal_replay_pause_state() = 'paused'`
      await until('nothing is replayed', async () => (await ask(url, paused)) === 'true')
    },
    async synchronise() {
      await ask(primary.url, `alter system set synchronous_standby_names = '*'`)
      await ask(primary.url, 'select pg_reload_conf()')
      const inStep = `select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')`
      await until('the standby is synchronous', async () => (await ask(primary.url, inStep)) === '1')
    },
    async kill() {
      const [pid] = (await readFile(join(primary.home, 'data', 'postmaster.pid'), 'utf8')).split('\n')
      for (const each of await processesOf(Number(pid)))
        try {
          process.kill(each, 'SIGKILL')
        } catch (error) {
          // ESRCH: the process has ended since it was listed.
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
        }
    },
    async promote() {
      await ask(url, 'select pg_promote()')
    },
    async thaw() {
      await ask(url, 'select pg_wal_replay_resume()')
      await caughtUp()
    },
  }
}
