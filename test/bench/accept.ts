/**
 * How fast the API accepts email: single sends of one team and of many, and batches of 100, against a floor that is
 * the same database doing one-row commits. Prints figures and ratios of one run; asserts nothing.
 * Run: DATABASE_URL=postgres://… node test/bench/accept.ts (an empty database; it is migrated).
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { Client } from 'pg'
import { pino } from 'pino'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import type { Up } from '../../db/process/shutdown.ts'
import { anEmail, makeTeam, SECRET_KEY, type Service } from '../support/service.ts'

const SECONDS = 8
const CLIENTS = 16
const TEAMS = 50

/** Commits a second of a single-row insert, by as many clients. */
async function floor(url: string): Promise<number> {
  const clients = Array.from({ length: CLIENTS }, () => new Client({ connectionString: url }))
  await Promise.all(clients.map((client) => client.connect()))
  await clients[0]?.query('create table if not exists bench_floor (id bigserial primary key, at timestamptz)')
  const until = Date.now() + 3_000
  let commits = 0
  await Promise.all(
    clients.map(async (client) => {
      while (Date.now() < until) {
        await client.query('insert into bench_floor (at) values (now())')
        commits += 1
      }
    }),
  )
  await clients[0]?.query('drop table bench_floor')
  await Promise.all(clients.map((client) => client.end()))
  return commits / 3
}

async function load(base: string, path: string, keys: string[], body: unknown) {
  const requests = keys.map((key) => ({
    method: 'POST' as const,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }))
  let clients = 0
  const result = await autocannon({
    url: base + path,
    connections: CLIENTS,
    duration: SECONDS,
    requests,
    // Each client begins with another team: in step they would all wait for one team's lock.
    setupClient: (client) => {
      const at = (clients++ * 3) % requests.length
      client.setRequests([...requests.slice(at), ...requests.slice(0, at)])
    },
  })
  if (result.non2xx > 0) throw new Error(`${result.non2xx} requests failed`)
  return { per_second: result.requests.average, p50: result.latency.p50, p99: result.latency.p99 }
}

const url = process.env.DATABASE_URL
if (!url) throw new Error('set DATABASE_URL to an empty database')
await migrate(url)
const database = await openDatabase(url)
const deps = { secrets: createSecrets(SECRET_KEY), clock: () => new Date(), log: pino({ level: 'silent' }) }
const service = { database, deps } as unknown as Pick<Service, 'database' | 'deps'>
const limits = { email_limit: 100_000_000, rate: 1_000_000 }
const teams = await Promise.all(Array.from({ length: TEAMS }, () => makeTeam(service, limits)))
await database.end()
const keys = teams.map((team) => team.key)

const api = fork(join(import.meta.dirname, '../../api/main.ts'), {
  env: { ...process.env, PORT: '0', SECRET_KEY, LOG_LEVEL: 'warn' },
})
const [{ port }] = (await once(api, 'message')) as [Up]
const base = `http://127.0.0.1:${port}`
const figures = {
  floor_commits_per_second: await floor(url),
  singles_of_many_teams: await load(base, '/v1/emails', keys, anEmail()),
  singles_of_one_team: await load(base, '/v1/emails', keys.slice(0, 1), anEmail()),
  batches_of_100: await load(base, '/v1/emails/batch', keys, {
    emails: Array.from({ length: 100 }, () => anEmail()),
  }),
}
api.kill('SIGTERM')
await once(api, 'exit')
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`)
process.stdout.write(
  `a commit costs ${(figures.floor_commits_per_second / figures.singles_of_many_teams.per_second).toFixed(1)} × the floor; ` +
    `an email in a batch ${(figures.singles_of_many_teams.per_second / (figures.batches_of_100.per_second * 100)).toFixed(3)} × a single\n`,
)
