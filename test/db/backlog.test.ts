/**
 * Limits the buffers that statements about 500 rows read while 200,000 jobs wait and 50,000 are dead letters.
 * A statement that scans all waiting jobs, once or per row, exceeds its limit by far. Each runs before the
 * tables are first analyzed, and afterwards. Buffers don't depend on the speed of the machine.
 */
import { sql } from 'slonik'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { lostReports } from '../../db/delivery/reports/reports.sql.ts'
import { deliveryState, findDeadLettered, markRequeued } from '../../db/delivery/requeue.sql.ts'
import { lostMessages, lostOfTeam } from '../../db/delivery/sweep.sql.ts'
import { lostBackgroundJobs } from '../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { countWaitingEmails, lostExpansions } from '../../db/messages/broadcasts/waiting.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { seenNow } from '../../db/postgres/snapshot.sql.ts'
import {
  countDeadLetters,
  deadReasons,
  deleteFailedJobs,
  deleteReasons,
  removeDeadLetters,
} from '../../db/queue/dead-letters.sql.ts'
import { readQueuePosition } from '../../db/queue/fair-queue.sql.ts'
import { insertJobs } from '../../db/queue/insert.sql.ts'
import {
  bringForward,
  deleteDoneJobs,
  deleteEndedJobs,
  deleteIdleJobs,
  exhaustRetries,
  jobEnd,
  keysWithJobs,
  oftenLost,
  openJob,
  openJobsBefore,
  postponeJobs,
  queueStatus,
} from '../../db/queue/jobs.sql.ts'
import { isAnyLost, queuesDue } from '../../db/queue/maintenance.sql.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { ownServer } from '../support/own-server.ts'
import { openPool } from '../support/pool.ts'
import { runOn } from '../support/run-on.ts'
import t from '../support/tap.ts'
import { touched } from '../support/touched.ts'

const WAITING = 200_000
const DEAD = 50_000
/** Rows per statement. */
const AFFECTED = 500
const TEAM = '0190a1b2-0000-7000-8000-000000000001'
const BROADCAST = '0190a1b2-0006-7000-8000-000000000001'
const uuid = (n: number): string => `0190a1b2-0005-7000-8000-${String(n).padStart(12, '0')}`
const ids = Array.from({ length: AFFECTED }, (_, n) => uuid(n + 1))
const refs = ids.map((id) => ({ team_id: TEAM, id }))
const attempts = ids.map((id) => ({ id, retryCount: 0 }))

const { url } = await ownServer(t)
const database = await openPool(t, url, { size: 3, statementTimeout: 60_000 })

/** 500 waiting emails with the first jobs, and 500 failed ones. */
t.before(async () => {
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at) values (${TEAM}, 'Team', now() - interval '90 days')`)
  const rows = sql.fragment`
    select ${TEAM} as team_id, ('0190a1b2-0005-7000-8000-' || lpad(n::text, 12, '0'))::uuid as id,
      ${TEAM} as domain_id, 'a@demo.test' as from_address, array['user@example.com'] as to_emails,
      'Invoice' as subject, '<p>Hello</p>' as html, 1 as size_kb, '[]'::json as tags, 'queued' as status,
      now() - interval '1 day' + n * interval '1 second' as created_at, '' as reply_to, 'call' as http_request_id
    from generate_series(1, ${2 * AFFECTED}::int) n`
  await insertEmailRows({ database }, rows)
  await database.query(sql.unsafe`
    insert into pgboss.job (id, name, data, priority, start_after)
    select case when n <= ${AFFECTED} then ('0190a1b2-0005-7000-8000-' || lpad(n::text, 12, '0'))::uuid
        else gen_random_uuid() end, 'deliver-email', json_build_object('team_id', ${TEAM}::text), -n, now() + interval '1 hour'
    from generate_series(1, ${WAITING}::int) n`)
  await database.query(sql.unsafe`
    insert into pgboss.job (id, name, data, source_id, source_output)
    select gen_random_uuid(), 'deliver-email-dead', json_build_object('team_id', ${TEAM}::text),
      case when n <= ${AFFECTED} then ('0190a1b2-0005-7000-8000-' || lpad((n + ${AFFECTED})::text, 12, '0'))::uuid
        else gen_random_uuid() end, '{"reason": "no answer"}'
    from generate_series(1, ${DEAD}::int) n`)
  await database.query(sql.unsafe`
    update email_states set broadcast_id = ${BROADCAST} where id <> all(${sql.array(ids, 'uuid')})`)
})

/** The limits per statement. They are about ten times its reads, and less than a scan of all waiting jobs. */
const [EACH, ONCE] = [12_000, 300]

const newJobs = ids.map((id) => ({
  name: 'deliver-email' as const,
  id,
  data: {},
  priority: 0,
  group_id: null,
}))
const part = { after: '-infinity', size: 2_000 }
const loseJobs = (tx: Tx) =>
  tx.query(sql.unsafe`
    delete from pgboss.job where name = 'deliver-email' and id = any(${sql.array(ids, 'uuid')})`)
const activate = (tx: Tx) =>
  tx.query(sql.unsafe`
    update pgboss.job set state = 'active' where name = 'deliver-email' and id = any(${sql.array(ids, 'uuid')})`)
const idArray = sql.fragment`select unnest(${sql.array(ids, 'uuid')})`

/** Per statement: its limit, the statement, and what runs before it. */
const STATEMENTS: Record<string, [number, (tx: Tx) => Promise<unknown>, ((tx: Tx) => Promise<unknown>)?]> = {
  markRequeued: [
    EACH * 2,
    (tx) => markRequeued(tx, EMAIL, refs, { by: 'person', force: false, now: new Date() }),
  ],
  lostMessages: [
    EACH * 2,
    (tx) => lostMessages(tx, EMAIL, part, { before: new Date(), limit: AFFECTED }),
    loseJobs,
  ],
  lostOfTeam: [
    EACH * 2,
    (tx) => lostOfTeam(tx, EMAIL, { team_id: TEAM, after: uuid(0), size: AFFECTED }),
    loseJobs,
  ],
  deliveryState: [ONCE, (tx) => deliveryState(tx, EMAIL, refs[0] ?? { team_id: '', id: '' })],
  findDeadLettered: [EACH, (tx) => findDeadLettered(tx, EMAIL, AFFECTED)],
  deadReasons: [EACH, (tx) => deadReasons(tx, 'deliver-email', 100)],
  countDeadLetters: [EACH, (tx) => countDeadLetters(tx, 'deliver-email')],
  removeDeadLetters: [
    EACH,
    async (tx) => {
      const seen = await seenNow(tx)
      await removeDeadLetters(tx, 'deliver-email', { seen, reason: 'no answer', limit: AFFECTED })
    },
  ],
  deleteFailedJobs: [EACH, (tx) => deleteFailedJobs(tx, ['deliver-email'], ids)],
  deleteReasons: [EACH, (tx) => deleteReasons(tx, ['deliver-email'], ids, 'answer')],
  insertJobs: [EACH * 2, (tx) => insertJobs(tx, newJobs), loseJobs],
  deleteDoneJobs: [EACH, (tx) => deleteDoneJobs(tx, 'deliver-email', attempts), activate],
  deleteEndedJobs: [EACH, (tx) => deleteEndedJobs(tx, 'deliver-email', ids)],
  deleteIdleJobs: [EACH, (tx) => deleteIdleJobs(tx, 'deliver-email', ids)],
  postponeJobs: [
    EACH * 2,
    (tx) =>
      postponeJobs(
        tx,
        'deliver-email',
        ids.map((id) => ({ id, attempt: 0, tried: true, seconds: 60 })),
      ),
    activate,
  ],
  oftenLost: [EACH, (tx) => oftenLost(tx, 'deliver-email', ids, 3)],
  exhaustRetries: [EACH * 2, (tx) => exhaustRetries(tx, 'deliver-email', attempts), activate],
  bringForward: [EACH * 2, (tx) => bringForward(tx, 'deliver-email', idArray)],
  keysWithJobs: [
    EACH,
    (tx) =>
      keysWithJobs(tx, [
        { key: 'all', job: 'deliver-email', grouped_by: null },
        { key: 'none', job: 'deliver-email', grouped_by: 'whatsapp:1' },
      ]),
  ],
  openJob: [ONCE, (tx) => openJob(tx, 'deliver-email', uuid(1))],
  jobEnd: [ONCE, (tx) => jobEnd(tx, 'deliver-email', uuid(1))],
  readQueuePosition: [EACH, (tx) => readQueuePosition(tx, 'deliver-email', 1)],
  queuesDue: [ONCE, (tx) => queuesDue(runOn(tx), ['deliver-email', 'ingest-report'])],
  isAnyLost: [ONCE, (tx) => isAnyLost(runOn(tx))],
  openJobsBefore: [ONCE, (tx) => openJobsBefore(tx, 'upsert-contacts', { team_id: TEAM, id: uuid(1) })],
  lostBackgroundJobs: [ONCE, (tx) => lostBackgroundJobs(tx, new Date(), AFFECTED)],
  lostExpansions: [ONCE, (tx) => lostExpansions(tx, AFFECTED)],
  countWaitingEmails: [EACH, (tx) => countWaitingEmails(tx, { team_id: TEAM, id: BROADCAST }, AFFECTED)],
  lostReports: [ONCE, (tx) => lostReports(tx, new Date(), AFFECTED)],
  queueStatus: [
    EACH,
    (tx) => queueStatus({ transaction: (work: (tx: Tx) => unknown) => work(tx) } as never, AFFECTED),
  ],
}

/** True if a node of a plan ran and read jobs. */
const readsJobs = (node: Awaited<ReturnType<typeof touched>>['nodes'][number]): boolean =>
  node['Actual Loops'] > 0 && (node['Index Name'] ?? node['Relation Name'] ?? '').startsWith('j')

/** Adds the tests of all statements. */
function testStatements(when: string): void {
  for (const [name, [bound, run, prepare]] of Object.entries(STATEMENTS))
    t.test(`${name} only reads its own rows ${when}`, async (t) => {
      const { buffers, nodes } = await touched(
        database,
        async (tx) => {
          await run(tx)
        },
        prepare,
      )
      t.ok(buffers < bound, `${buffers} buffers, bound ${bound}`)
      if (prepare === loseJobs) t.ok(nodes.some(readsJobs), 'it looks for jobs')
    })
}

testStatements('before the first analyze')
t.test('the tables are analyzed', async () => {
  await database.query(sql.unsafe`vacuum analyze`)
})
testStatements('after an analyze')
