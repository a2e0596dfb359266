/** Rows 1 to 4: how fast sends are accepted, compared with storing the same rows and jobs without HTTP. */

import { randomUUID } from 'node:crypto'
import { PgBoss } from 'pg-boss'
import { sql } from 'slonik'
import { type EmailRow, insertEmails } from '../../db/messages/emails/emails.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { anEmailRow } from '../support/reports.ts'
import type { TestTeam } from '../support/service.ts'
import { uuidAt } from '../support/uuid-sql.ts'
import { atLeast, atMost, type Figure, median, QUICK, upTo, withoutGoal } from './figures.ts'
import { flood, mail, offered, oneByOne } from './load.ts'
import { type Place, type Rig, takeTurns, type Watched } from './rig.ts'

const SECONDS = QUICK ? 1 : 4
const RUNS = QUICK ? 1 : 3
const CONNECTIONS = 64
const TEAMS = 50
const HTML = '<p>'.padEnd(2_048, 'Hello there. ')

const rowOf = ({ id, domain_id }: TestTeam): EmailRow =>
  anEmailRow({ team_id: id, domain_id, from_address: 'Acme <hello@example.com>', html: HTML, size_kb: 2 })

/** Runs pg-boss's SQL in a slonik transaction, as any user of both would. */
const on = (tx: Tx) => ({
  db: {
    async executeSql(text: string, values: unknown[] = []) {
      const { rows } = await tx.query({ ...sql.unsafe`select`, sql: text, values: values as never })
      return { rows: [...rows] }
    },
  },
})

async function withBoss<T>({ url }: Place, work: (boss: PgBoss) => Promise<T>): Promise<T> {
  const boss = new PgBoss({
    connectionString: url,
    max: 2,
    supervise: false,
    schedule: false,
    migrate: false,
  })
  boss.on('error', () => {})
  await boss.start()
  try {
    return await work(boss)
  } finally {
    await boss.stop({ graceful: false })
  }
}

/** Measures the rows per second that plain loops store. Each transaction inserts rows and their jobs. */
async function loops(place: Place, team: TestTeam, { rows, clients }: { rows: number; clients: number }) {
  return withBoss(place, async (boss) => {
    const until = performance.now() + SECONDS * 1_000
    let stored = 0
    const loop = async (): Promise<void> => {
      while (performance.now() < until) {
        const batch = Array.from({ length: rows }, () => rowOf(team))
        const jobs = batch.map(({ id, team_id }) => ({ id, data: { team_id, email_id: id } }))
        await place.database.transaction(async (tx) => {
          await insertEmails(tx, batch, {
            ...{ charge: sql.fragment`select 1`, jobs: sql.fragment`select 1`, due: 1, last: false },
          })
          const [only] = jobs
          if (rows === 1 && only) await boss.send('deliver-email', only.data, { id: only.id, ...on(tx) })
          else await boss.insert('deliver-email', jobs, on(tx))
        })
        stored += rows
      }
    }
    await Promise.all(Array.from({ length: clients }, loop))
    return stored / SECONDS
  })
}

/** The results of rows 1, 2 and 4, measured in turns with their references. */
export type Accepts = {
  reference: number
  many: number
  one: number
  batch_reference: number
  batches: number
  /** The API's peak memory in megabytes. */
  memory: number
}

/** Measures single sends and batches in a place. The results are medians of several runs. */
export async function measureAccepts(place: Place): Promise<Accepts> {
  const teams = await place.teams(TEAMS)
  const [first] = teams
  if (!first) throw new Error('there must be a team')
  const api: Watched = await place.api()
  const single = `${api.base}/v1/emails`
  const busy = { connections: CONNECTIONS, seconds: SECONDS }
  const samples = { reference: [], many: [], one: [], batch_reference: [], batches: [] } as Record<
    keyof Omit<Accepts, 'memory'>,
    number[]
  >
  await flood(single, teams, mail(2_048), { ...busy, seconds: QUICK ? 1 : 2 })
  for (let run = 0; run < RUNS; run++) {
    samples.reference.push(await loops(place, first, { rows: 1, clients: 10 }))
    samples.many.push(await flood(single, teams, mail(2_048), busy))
    samples.one.push(await flood(single, [first], mail(2_048), busy))
    samples.batch_reference.push(await loops(place, first, { rows: 100, clients: 10 }))
    const hundred = { emails: Array.from({ length: 100 }, () => mail(2_048)) }
    const calls = await flood(`${single}/batch`, teams, hundred, { ...busy, connections: 16 })
    samples.batches.push(calls * 100)
  }
  const memory = await api.peak()
  await api.stop()
  return {
    reference: median(samples.reference),
    many: median(samples.many),
    one: median(samples.one),
    batch_reference: median(samples.batch_reference),
    batches: median(samples.batches),
    memory,
  }
}

/** Returns rows 1, 2 and 4 of the measurement. Row 25 has the goals of accepts. */
export const acceptFigures = (measured: Accepts): Figure[] => [
  withoutGoal({
    row: '1',
    measure: 'POST /v1/emails, 64 connections, 50 teams, 2 KB',
    ours: measured.many,
    reference: measured.reference,
    unit: 'emails/s',
    note: 'reference: a loop without HTTP, 10 connections, a transaction each with its row and boss.send',
  }),
  atLeast(1, {
    row: '2',
    measure: 'the same with one team',
    ours: measured.one,
    reference: measured.many,
    unit: 'emails/s',
    note: 'reference: row 1',
  }),
  withoutGoal({
    row: '4',
    measure: 'POST /v1/emails/batch of 100, 2 KB',
    ours: measured.batches,
    reference: measured.batch_reference,
    unit: 'emails/s',
    note: 'reference: INSERT … SELECT FROM unnest of 100 rows and one boss.insert, a transaction each',
  }),
]

/** Measures emails per second as in row 1 in each of these places, in turns. */
export async function acceptInTurns(places: readonly Place[]): Promise<number[]> {
  const own = await Promise.all(
    places.map(async (place) => ({ teams: await place.teams(TEAMS), ...(await place.api()) })),
  )
  const send = ({ base, teams }: { base: string; teams: TestTeam[] }, seconds: number) =>
    flood(`${base}/v1/emails`, teams, mail(2_048), { connections: CONNECTIONS, seconds })
  await takeTurns(own, 1, (one) => send(one, QUICK ? 1 : 2))
  const rates = await takeTurns(own, QUICK ? 1 : 5, (one) => send(one, QUICK ? 1 : 3))
  for (const api of own) await api.stop()
  return rates.map(median)
}

/** Row 3: the latency of sends at a tenth of the maximum load, compared with one send at a time. */
export async function measureQuiet(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const teams = await place.teams(TEAMS)
  const api = await place.api()
  const [first] = teams
  if (!first) throw new Error('there must be a team')
  await oneByOne(api.base, first, 200)
  const bare = median(await oneByOne(api.base, first, 300))
  const p99 = await offered(api.base, teams, { rate: 100, seconds: upTo(20) })
  await place.close()
  return [
    atMost(3, {
      row: '3',
      measure: 'p99 of row 1 at 100 emails a second',
      ours: p99,
      reference: bare,
      unit: 'ms',
      note: 'reference: the median of one send after another',
    }),
  ]
}

/** Stores emails of a team without the API, accepted evenly within the last day, with or without jobs. */
export async function fill(
  place: Place,
  { id, domain_id }: TestTeam,
  { emails, jobs = 'none' }: { emails: number; jobs?: 'none' | 'waiting' | 'deferred' },
): Promise<void> {
  const tag = randomUUID()
  const state = jobs === 'none' ? 'sent' : 'queued'
  const count = upTo(emails)
  const at = sql.fragment`now() - interval '1 day' * (1 - n::float8 / ${count}::int)`
  const rows = sql.fragment`
    select ${id} as team_id, ${uuidAt(at)} as id, ${domain_id} as domain_id,
      'hello@example.com' as from_address, array['person' || n || '@example.org'] as to_emails,
      ${tag} as subject, '<p>Hello</p>' as html, 0.01 as size_kb, '[]'::json as tags, ${state} as status,
      ${at} as created_at, '' as reply_to
    from generate_series(1, ${count}::int) n`
  await insertEmailRows(place, rows)
  if (jobs === 'none') {
    await place.database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
      select team_id, id, uuid_send(gen_random_uuid()), 'sent', created_at, '' from emails where subject = ${tag}`)
    return
  }
  const wait = jobs === 'deferred' ? '1 hour' : '0'
  await place.database.query(sql.unsafe`
    insert into pgboss.job (name, id, data, priority, start_after, retry_limit, retry_delay, expire_seconds,
      deletion_seconds, keep_until, policy, heartbeat_seconds)
    select q.name, e.id, jsonb_build_object('team_id', e.team_id, 'email_id', e.id),
      -(row_number() over (order by e.id))::int, now() + ${wait}::interval, q.retry_limit, q.retry_delay,
      q.expire_seconds, q.deletion_seconds, now() + interval '30 days', q.policy, q.heartbeat_seconds
    from emails e, pgboss.queue q where e.subject = ${tag} and q.name = 'deliver-email'`)
}
