/**
 * A bulk upsert of 1,000 contacts through an API and a worker process, against the same upsert as one SQL statement
 * on the same table: medians of one run, turn and turn about, for new contacts and for stored ones. Prints figures;
 * fails when a ratio reaches 3 (issue 4).
 * Run: DATABASE_URL=postgres://… node test/bench/bulk-upsert.ts (an empty database; it is migrated).
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Client } from 'pg'
import { pino } from 'pino'
import { v7 as uuidv7 } from 'uuid'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/pool.ts'
import { createSecrets } from '../../db/secrets.ts'
import { makeTeam, SECRET_KEY, type Service, type TestTeam } from '../support/service.ts'

const ROUNDS = 30
const WARM_UP = 10
const ITEMS = 1_000
const PORT = '3998'

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

async function byApi(team: TestTeam, items: Contact[]): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${PORT}/v1/contacts/bulk`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${team.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ contacts: items }),
  })
  const { data } = (await response.json()) as { data: { id?: string }[] }
  if (data.length !== ITEMS || data.some(({ id }) => id === undefined)) throw new Error('an item was refused')
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
  [one, other]: [TestTeam, TestTeam],
  prefix: (round: number) => string,
) {
  const [statement, api]: [number[], number[]] = [[], []]
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const items = contacts(prefix(round))
    const times = [
      await timed(async () => await byStatement(client, one, items)),
      await timed(async () => await byApi(other, items)),
    ] as const
    if (round < WARM_UP) continue
    statement.push(times[0])
    api.push(times[1])
  }
  const [statement_ms, api_ms] = [median(statement), median(api)]
  return { statement_ms, api_ms, ratio: api_ms / statement_ms }
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
  fork(join(import.meta.dirname, '../../api/main.ts'), { env: { ...env, PORT } }),
  fork(join(import.meta.dirname, '../../workers/main.ts'), {
    env: { ...env, SMTP_URL: 'smtp://127.0.0.1:9' },
  }),
]
await Promise.all(processes.map((each) => once(each, 'message')))
const client = new Client({ connectionString: url })
await client.connect()
const figures = {
  new: await compare(client, teams, (round) => `new${round}`),
  stored: await compare(client, teams, () => 'stored'),
}
await client.end()
for (const each of processes) each.kill('SIGTERM')
await Promise.all(processes.map((each) => once(each, 'exit')))
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`)
process.exitCode = Math.max(figures.new.ratio, figures.stored.ratio) < 3 ? 0 : 1
