/** The data of operators' pages in lived-in.ts. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { idRow } from '../../db/postgres/rows.ts'
import { storeSignOfLife } from '../../db/stats/fleet/fleet.sql.ts'
import { idleGauges } from './gauges.ts'
import type { Service, TestTeam } from './service.ts'
import { uuidAt } from './uuid-sql.ts'

const REPORT = `From: MAILER-DAEMON@mx.example.net
To: bounces@example.com
Subject: Undelivered Mail Returned to Sender
Content-Type: text/plain

<ana.lindqvist@example.net>: host mx.example.net said: 550 5.1.1 No such user`

/** Stores parked reports, a running worker and a background job in progress. */
export async function storeOperatorData({ database }: Service, { id }: TestTeam) {
  await database.query(sql.unsafe`
    insert into reports (id, provider, event_key, body, received_at, retry_until, state, reason)
    select ${uuidAt(sql.fragment`now() - make_interval(mins => n)`)}, (array['smtp', 'ses', 'whatsapp'])[1 + n % 3], n, ${REPORT}, now() - make_interval(mins => n), now(),
      'parked', (array['no such message', 'it has no signed reference to one of our emails'])[1 + n % 2]
    from generate_series(1, 60) n`)
  const queues = ['deliver-email', 'deliver-whatsapp', 'deliver-webhook', 'ingest-report', 'count-stats']
  const life = { id: uuidv7(), kind: 'worker', host: 'worker-7d9f8b6c5-x2x9p', pid: 7, queues } as const
  const senders = { 'deliver-email': 'smtp:relay.example.com:587' }
  const signs = {
    gauges: { ...idleGauges(), busy: 0.4, resident_memory_bytes: 187e6 },
    senders,
    completed: {},
  }
  await storeSignOfLife(database, { ...life, ...signs, started_at: new Date(Date.now() - 86_400_000) }, [])
  const report = await database.oneFirst(sql.type(idRow)`select id from reports order by id desc limit 1`)
  const job = await database.oneFirst(sql.type(idRow)`
    insert into background_jobs (id, team_id, kind, given, done, total, begun_by, begun_at, progressed_at)
    values (${uuidv7()}, ${id}, 'email.requeue', '{"query": "status=queued"}', 1200, 7051, 'ana@example.com',
      now() - interval '2 minutes', now()) returning id`)
  return { report, job }
}
