/**
 * A bulk upsert of 1,000 contacts through an API and a worker process, against the same upsert as one SQL statement
 * on the same table: medians of one run, turn and turn about, for new contacts and for stored ones. Prints figures;
 * fails when a ratio reaches 3 (issue 4).
 * Run: DATABASE_URL=postgres://… node test/bench/bulk-upsert.ts (an empty database; it is migrated).
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { pino } from 'pino'
import { v7 as uuidv7 } from 'uuid'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import type { Up } from '../../db/process/shutdown.ts'
import { makeTeam, SECRET_KEY, type Service, type TestTeam } from '../support/service.ts'

const ROUNDS = 30
const WARM_UP = 10
const ITEMS = 1_000
const IDLE_ROUNDS = 15

type Contact = { email: string; properties: Record<string, string> }

const contacts = (prefix: string): Contact[] =>
  Array.from({ length: ITEMS }, (_, index) => ({
    email: `${prefix}.${index}@example.org`,
    properties: { plan: 'free', city: 'Bergen', number: String(index) },
  }))

const STATEMENT = `
  insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
  select $1, id, email, lower(email), 'subscribed', properties, '{}', now(), now()
  from unnest($2::uuid[], $3::text[], $4::jsonb[]) as item (id, email, properties)
  on conflict (team_id, identity) do update set properties = excluded.properties, updated_at = excluded.updated_at
  returning id`

async function byStatement(client: Client, team: TestTeam, items: Contact[]): Promise<void> {
  await client.query({
    name: 'upsert',
    text: STATEMENT,
    values: [
      team.id,
      items.map(() => uuidv7()),
      items.map(({ email }) => email),
      items.map(({ properties }) => JSON.stringify(properties)),
    ],
  })
}

async function byApi(base: string, team: TestTeam, items: Contact[]): Promise<void> {
  const response = await fetch(`${base}/v1/contacts/bulk`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${team.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ contacts: items }),
  })
  const { data } = (await response.json()) as { data: { id?: string }[] }
  if (data.length !== items.length || data.some(({ id }) => id === undefined))
    throw new Error('an item was refused')
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

const median = (times: number[]): number => times.sort((a, b) => a - b)[times.length >> 1] ?? 0

/** Both ways, turn and turn about; `prefix` makes a round's contacts new, or those of the round before. */
async function compare(
  client: Client,
  base: string,
  [one, other]: [TestTeam, TestTeam],
  prefix: (round: number) => string,
) {
  const [statement, api]: [number[], number[]] = [[], []]
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const items = contacts(prefix(round))
    const times = [
      await timed(() => byStatement(client, one, items)),
      await timed(() => byApi(base, other, items)),
    ] as const
    if (round < WARM_UP) continue
    statement.push(times[0])
    api.push(times[1])
  }
  const [statement_ms, api_ms] = [median(statement), median(api)]
  return { statement_ms, api_ms, ratio: api_ms / statement_ms }
}

/** One contact at a time, after a pause in which everything comes to rest: what the way through the worker costs. */
async function idle(base: string, team: TestTeam): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < IDLE_ROUNDS; round++) {
    await sleep(300)
    times.push(await timed(() => byApi(base, team, contacts('idle').slice(0, 1))))
  }
  return median(times)
}

const url = process.env.DATABASE_URL
if (!url) throw new Error('set DATABASE_URL to an empty database')
await migrate(url)
const database = await openDatabase(url)
const deps = { secrets: createSecrets(SECRET_KEY), clock: () => new Date(), log: pino({ level: 'silent' }) }
const service = { database, deps } as unknown as Pick<Service, 'database' | 'deps'>
const limits = { contact_limit: 100_000_000 }
const teams = [await makeTeam(service, limits), await makeTeam(service, limits)] as [TestTeam, TestTeam]
await database.end()

const env = { ...process.env, SECRET_KEY, LOG_LEVEL: 'warn' }
const processes = [
  fork(join(import.meta.dirname, '../../api/main.ts'), { env: { ...env, PORT: '0' } }),
  fork(join(import.meta.dirname, '../../workers/main.ts'), {
    env: { ...env, SMTP_URL: 'smtp://127.0.0.1:9' },
  }),
]
const [[{ port }]] = (await Promise.all(processes.map((each) => once(each, 'message')))) as [[Up], [Up]]
const base = `http://127.0.0.1:${port}`
const client = new Client({ connectionString: url })
await client.connect()
const figures = {
  new: await compare(client, base, teams, (round) => `new${round}`),
  stored: await compare(client, base, teams, () => 'stored'),
}
const idle_ms = await idle(base, teams[0])
await client.end()
for (const each of processes) each.kill('SIGTERM')
await Promise.all(processes.map((each) => once(each, 'exit')))
process.stdout.write(`${JSON.stringify({ ...figures, idle_ms }, null, 2)}\n`)
process.exitCode = Math.max(figures.new.ratio, figures.stored.ratio) < 3 ? 0 : 1
