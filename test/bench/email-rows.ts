/**
 * Measures the database cost of an email: bytes of WAL and buffers for its acceptance, delivery and delivery
 * report, and the share of updates that stay within their page (HOT). The table is filled first. Prints the
 * results of one run, without assertions. It only counts one connection's writes, so other activity on the
 * server doesn't matter (PostgreSQL 18). Run: DATABASE_URL=postgres://… node test/bench/email-rows.ts [ROWS]
 * (an empty database, which is migrated), or with a copy of the ten million (ten-million.ts), where 8 of 20
 * emails belong to the large team.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number } from 'yup'
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../db/messages/emails/events.sql.ts'
import { emailsToDeliver } from '../../db/messages/emails/outgoing.sql.ts'
import type { EmailEventKind } from '../../db/messages/emails/status.ts'
import { migrate } from '../../db/migrate.ts'
import { type Database, openDatabase } from '../../db/postgres/pool.ts'
import { idRow, row } from '../../db/postgres/rows.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { storeEmails } from '../support/reports.ts'
import { uuidAt } from '../support/uuid-sql.ts'

const ROWS = Number(process.argv[2] ?? 1_000_000)
const [ROUNDS, MAILS, BATCH] = [20, 1_000, 20]
const FILLED_AT_ONCE = 100_000
const BODY = '<p>Hello, this is about what a short letter says, and nothing of it is said twice.</p>'.repeat(
  5,
)

const url = process.env.DATABASE_URL
if (!url) throw new Error('set DATABASE_URL to an empty database')
await migrate(url)
const database: Database = await openDatabase(url, { size: 1, statementTimeout: 600_000 })
const known = await database.anyFirst(sql.type(idRow)`select id from teams order by id limit ${ROUNDS - 7}`)
const [large] = known
const teams =
  large === undefined
    ? Array.from({ length: 200 }, () => uuidv7())
    : [...Array.from({ length: 7 }, () => large), ...known]

const read = async () => {
  await database.query(sql.unsafe`select pg_stat_force_next_flush()`)
  return database.one(sql.type(row({ wal: number(), buffers: number() }))`
    select (select wal_bytes::float8 from pg_stat_get_backend_wal(pg_backend_pid())) as wal,
      (select sum(hits + reads)::float8 from pg_stat_get_backend_io(pg_backend_pid())) as buffers`)
}

const cost = {
  accept: { wal: 0, buffers: 0 },
  deliver: { wal: 0, buffers: 0 },
  report: { wal: 0, buffers: 0 },
}

/** Runs some work and counts its cost. */
async function counted<T>(what: keyof typeof cost, work: () => Promise<T>): Promise<T> {
  const before = await read()
  const result = await work()
  const after = await read()
  cost[what].wal += after.wal - before.wal
  cost[what].buffers += after.buffers - before.buffers
  return result
}

type Mail = { team_id: string; email_id: string }

async function accept(team_id: string): Promise<Mail[]> {
  const mails: Mail[] = []
  for (let at = 0; at < MAILS; at++) {
    const to = [[`person${Math.floor(Math.random() * 100_000)}@example.com`]]
    const changes = { html: BODY, http_request_id: uuidv7(), subject: 'What we have done for you' }
    const [email_id = ''] = await storeEmails({ database } as never, team_id, to, changes)
    mails.push({ team_id, email_id })
  }
  return mails
}

async function apply(mails: readonly Mail[], kind: EmailEventKind): Promise<void> {
  for (let at = 0; at < mails.length; at += BATCH) {
    const batch = mails.slice(at, at + BATCH)
    const now = new Date()
    const events = batch.map(
      (mail): EmailEvent => ({
        ...{ ...mail, kind, occurred_at: now, recipient: null, detail: '250 2.0.0 Ok: queued' },
        event_key: uuidv7(),
      }),
    )
    const attempts = batch.map((mail) => ({
      ...{ ...mail, provider_message_id: `${uuidv7()}-000000`, size_kb: null, pending_recipients: null },
      undecided: [],
      seen: { provider_message_id: null, pending_recipients: null },
    }))
    if (kind === 'sent') await emailsToDeliver(database, batch)
    await database.transaction((tx) => applyEmailEvents(tx, events, now, kind === 'sent' ? attempts : []))
  }
}

for (let filled = 0; large === undefined && filled < ROWS; filled += FILLED_AT_ONCE) {
  const rows = sql.fragment`
    select (${sql.array(teams, 'uuid')})[1 + n % 200] as team_id, ${uuidAt(sql.fragment`clock_timestamp()`)} as id, ${teams[0] ?? ''} as domain_id,
      'hello@example.com' as from_address, array['person' || n % 100000 || '@example.com'] as to_emails,
      'Invoice ' || n as subject, ${BODY} as html, 1 as size_kb, '[]'::json as tags, 'delivered' as status,
      now() as created_at, '' as reply_to, gen_random_uuid()::text as http_request_id,
      gen_random_uuid()::text as provider_message_id
    from generate_series(1, ${FILLED_AT_ONCE}::int) n`
  await insertEmailRows({ database }, rows)
}
if (large === undefined) {
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'sent', now(), '' from emails limit 200000`)
  await database.query(sql.unsafe`vacuum analyze`)
}
await database.query(sql.unsafe`select pg_stat_reset()`)
for (let round = 0; round < ROUNDS; round++) {
  const mails = await counted('accept', () => accept(teams[round] ?? ''))
  await counted('deliver', () => apply(mails, 'sent'))
  await counted('report', () => apply(mails, 'delivered'))
}

await database.query(sql.unsafe`select pg_stat_force_next_flush()`)
const hot = await database.one(sql.type(row({ updates: number(), hot: number() }))`
  select sum(n_tup_upd)::float8 as updates, sum(n_tup_hot_upd)::float8 as hot from pg_stat_user_tables
  where relname ~ 'email' and relname <> 'email_events'`)
const total = ROUNDS * MAILS
for (const [what, { wal, buffers }] of Object.entries(cost))
  process.stdout.write(
    `${what}: ${(wal / total / 1_000).toFixed(2)} KB of WAL, ${(buffers / total).toFixed(1)} buffers\n`,
  )
process.stdout.write(`updates of rows: ${hot.updates}, HOT: ${hot.hot}\n`)
await database.end()
