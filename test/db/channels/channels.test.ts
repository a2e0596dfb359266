/** Each channel is complete: columns, scope, providers. If a new channel lacks something, this test fails. */
import { sql } from 'slonik'
import { array, string } from 'yup'
import { SCOPES } from '../../../db/accounts/credentials/credentials.sql.ts'
import { QUOTAS } from '../../../db/accounts/plans/quotas.ts'
import { CHANNEL_QUEUES, CHANNELS } from '../../../db/channels/channels.sql.ts'
import { CHANNEL_FACTS } from '../../../db/channels/list.ts'
import { queueOf } from '../../../db/channels/queues.ts'
import { PROVIDERS } from '../../../db/delivery/reports/reports.sql.ts'
import { row } from '../../../db/postgres/rows.ts'
import { isSharedJob, JOBS } from '../../../db/queue/jobs.ts'
import { CHANNEL_PROVIDERS, EMAIL_PROVIDERS, OTHER_REPORTERS } from '../../../workers/providers/list.ts'
import { HOSTED_RELAYS } from '../../../workers/providers/relays/list.ts'
import { SIMULATOR } from '../../../workers/providers/test/reports.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const database = await openPool(t, url)

const columnsOf = async (table: string): Promise<readonly string[]> => {
  const { columns } = await database.one(sql.type(row({ columns: array(string()) }))`
    select array_agg(column_name::text) as columns from information_schema.columns where table_name = ${table}`)
  return columns
}

const missing = (wanted: readonly string[], there: readonly string[]) =>
  wanted.filter((column) => !there.includes(column))

t.test('each limit has its columns in plans and allowances', async (t) => {
  const limits = QUOTAS.map(({ limit }) => limit)
  t.ok(limits.length > CHANNELS.length, 'a limit for each channel, and contacts')
  for (const table of ['plans', 'subscriptions']) t.strictSame(missing(limits, await columnsOf(table)), [])
  const used = QUOTAS.map(({ used }) => used)
  const places = CHANNEL_FACTS.flatMap(({ lines }) => lines.map((line) => `${line}_place`))
  t.strictSame(missing([...used, ...places], await columnsOf('allowances')), [])
})

t.test('each channel has tables, a scope and queues with lanes', async (t) => {
  const names = CHANNELS.map(({ name }) => name)
  const withFacts = CHANNEL_FACTS.map(({ name }) => name)
  t.strictSame(names, withFacts)
  for (const { scope, rows, events, message, requests } of CHANNELS) {
    t.ok((SCOPES as readonly string[]).includes(scope), scope)
    const status = ['team_id', 'id', 'status', 'unfinished', 'created_at']
    t.strictSame(missing(status, await columnsOf(rows.sql)), [], rows.sql)
    const lacking = missing(['team_id', message.sql, 'kind', 'event_key'], await columnsOf(events.sql))
    t.strictSame(lacking, [], events.sql)
    if (!requests) continue
    t.strictSame(missing([requests.content.sql], await columnsOf(requests.rows.sql)), [], requests.rows.sql)
    t.strictSame(missing([requests.named_by.sql], await columnsOf(rows.sql)), [], rows.sql)
  }
  for (const { job } of CHANNEL_QUEUES) t.ok(job in JOBS && isSharedJob(job), job)
})

t.test("the channels' providers and the workers' providers match", async (t) => {
  const channels = [...Object.values(CHANNEL_PROVIDERS), ...OTHER_REPORTERS]
  const providers = [...EMAIL_PROVIDERS, ...HOSTED_RELAYS, ...channels, SIMULATOR]
  const names = providers.map(({ name }) => name)
  t.strictSame(names, PROVIDERS)
})

t.test('accepted and stored messages have the same queue', async (t) => {
  const [live, test] = ['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002']
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at, test) values (${live}, 'Live', now(), false), (${test}, 'Test', now(), true)`)
  const stored = async (
    job_of: (typeof CHANNELS)[number]['job_of'],
    team: string,
    broadcast: string | null,
    number: string | null,
    parts: boolean,
  ) =>
    (
      await database.one(sql.type(row({ job: string() }))`
        select ${job_of} as job from (
          select ${team}::uuid as team_id, ${broadcast}::uuid as broadcast_id, ${number}::text as phone_number_id, ${parts}::bool as parts) m`)
    ).job
  for (const { job_of, lines } of CHANNELS)
    for (const line of lines as readonly Parameters<typeof queueOf>[0][])
      for (const [id, isTest, number] of [
        [live, false, null],
        [live, false, '1'],
        [test, true, null],
      ] as const)
        t.equal(
          await stored(job_of, id, line === 'broadcast' ? live : null, number, line.includes('parts')),
          queueOf(line, { test: isTest, number }),
          `${line}, ${isTest}, ${number}`,
        )
})
