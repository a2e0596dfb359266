/**
 * Limits the buffers of statements on large tables, like growth.test.ts, for queues, reports, webhooks,
 * WhatsApp messages, contacts and the audit log.
 */
import { sql } from 'slonik'
import { number, string } from 'yup'
import { auditEntries, entriesOfBroadcast, memberAdditions } from '../../db/accounts/audit/audit.sql.ts'
import { ROLES } from '../../db/accounts/members/roles.ts'
import { countSubscribers } from '../../db/audience/contacts/topic-counts.sql.ts'
import { deleteTopic, hasTopic, insertTopic } from '../../db/audience/contacts/topics.sql.ts'
import { countSuppressed } from '../../db/audience/suppressions/addresses.sql.ts'
import { WEBHOOK_SENDERS } from '../../db/channels/webhook.sql.ts'
import { countParked } from '../../db/delivery/reports/reports.sql.ts'
import { failingSenders } from '../../db/delivery/senders/circuit-breaker.ts'
import { clearSkips } from '../../db/maintenance/retention/erase.sql.ts'
import { skipsToShow } from '../../db/maintenance/retention/export.sql.ts'
import {
  readOutcomes,
  replayable,
  webhookByEvent,
  webhooksAbout,
  webhooksOf,
} from '../../db/messages/webhooks/listing.sql.ts'
import { messagesFound } from '../../db/messages/whatsapp/search.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { idRow, row } from '../../db/postgres/rows.ts'
import { seenNow } from '../../db/postgres/snapshot.sql.ts'
import { deferredJobs } from '../../db/queue/deferred.sql.ts'
import { readQueuePosition } from '../../db/queue/fair-queue.sql.ts'
import { claimByGroup } from '../../db/queue/group-claims.sql.ts'
import { deleteDoneJobs, dueTimes, queueStatus, teamsWaiting } from '../../db/queue/jobs.sql.ts'
import { isAnyLost, queuesDue, spreadCounts } from '../../db/queue/maintenance.sql.ts'
import { foldStats } from '../../db/stats/daily/fold.ts'
import { openReports } from '../../db/stats/fleet/fleet.sql.ts'
import { startLargeTables, TEAM, TEMPLATE, uuid } from '../support/large-tables.ts'
import { runOn } from '../support/run-on.ts'
import t from '../support/tap.ts'
import { touched } from '../support/touched.ts'

const JOBS = 20_000

const { database, reads, descendsByValue } = await startLargeTables(t)

/** Many deferred jobs of one queue. */
t.before(async () => {
  await database.query(sql.unsafe`
    insert into pgboss.job (id, name, data, priority, start_after)
    select gen_random_uuid(), 'deliver-email', '{}', -n, now() + interval '1 hour'
    from generate_series(1, ${JOBS}::int) n`)
  await database.query(sql.unsafe`vacuum analyze`)
})

t.test('queue status counts up to a limit', async (t) => {
  const look = async (most: number) => {
    const { buffers, result } = await touched(database, (tx) => queueStatus(tx as typeof database, most))
    return { buffers, deferred: result.find(({ queue }) => queue === 'deliver-email')?.deferred }
  }
  t.equal((await look(JOBS + 1)).deferred, JOBS)
  const { buffers, deferred } = await look(200)
  t.equal(deferred, 200)
  t.ok(buffers < 150, `${buffers} buffers for all queues`)
})

t.test('metrics count waiting reports without reading finished ones', async (t) => {
  await database.query(sql.unsafe`
    insert into reports (id, provider, event_key, body, received_at, retry_until, state)
    select gen_random_uuid(), 'ses', n, 'a report', now() - interval '1 hour', now(),
      case when n % 4000 = 0 then 'parked' when n % 2000 = 0 then 'pending' else 'done' end
    from generate_series(1, 20000) n`)
  await database.query(sql.unsafe`analyze reports`)
  await reads(t, 30, async (tx) => {
    const reports = (await openReports(tx)).map(({ state, reports }) => [state, reports])
    t.strictSame(reports, [
      ['parked', 5],
      ['pending', 5],
    ])
  })
  await reads(t, 30, async (tx) => t.strictSame(await countParked(tx, 3), 3))
})

t.test('counts the waiting jobs of teams up to a limit', async (t) => {
  await database.query(sql.unsafe`
    update pgboss.job set data = json_build_object('team_id', ${uuid('0000', 1)}::text)
    where name = 'deliver-email' and priority > -20`)
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() where name = 'deliver-email' and priority > -20`)
  const { buffers } = await touched(database, async (tx) =>
    t.match(await teamsWaiting(tx, 'deliver-email', { most: 200, limit: 5 }), [
      { team_id: uuid('0000', 1), jobs: 19 },
    ]),
  )
  t.ok(buffers < 250, `${buffers} buffers`)
})

t.test('reads the first deferred jobs of many', async (t) => {
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() + interval '1 hour' where name = 'deliver-email' and priority > -20`)
  const { buffers } = await touched(database, async (tx) =>
    t.equal((await deferredJobs(tx, 'deliver-email', 200)).length, 200),
  )
  t.ok(buffers < 300, `${buffers} buffers`)
})

t.test('checks a queue of deferred jobs without reading them', async (t) => {
  await reads(t, 20, (tx) => readQueuePosition(tx, 'deliver-email', 0))
  await reads(t, 10, (tx) => queuesDue(runOn(tx), ['deliver-email', 'ingest-report']))
})

t.test('finds paused endpoints among many', async (t) => {
  await database.query(sql.unsafe`
    insert into senders (key, rate, tokens, refilled_at, troubles, paused_until)
    select 'webhook:' || n, 1000, 1000, now(), (n < 3)::int, case when n < 3 then now() + interval '1 hour' end
    from generate_series(1, 20000) n`)
  await database.query(sql.unsafe`analyze senders`)
  await reads(t, 20, async (tx) => {
    const { states } = await failingSenders(tx, WEBHOOK_SENDERS)
    t.strictSame([...states.keys()].sort(), ['webhook:1', 'webhook:2'])
  })
})

t.test('lists and requeues failed webhooks without reading delivered ones', async (t) => {
  const ref = { team_id: TEAM, id: uuid('0008', 1) }
  await database.query(sql.unsafe`
    insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
    select ${TEAM}, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000'
        || lpad(to_hex(n), 12, '0'))::uuid, ${ref.id}, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
        || '70008000' || lpad(to_hex(n - 1), 12, '0'))::uuid, 'email.sent', '{}',
      case when n % 1000 = 0 then 'failed' else 'delivered' end, at
    from (select n, now() - interval '30 days' + n * interval '1 minute' as at from generate_series(1, 40000) n) made`)
  await database.query(sql.unsafe`vacuum analyze webhook_messages`)
  await reads(t, 60, async (tx) => {
    t.equal((await webhooksOf(tx, ref, { status: 'failed' }, { limit: 51 })).length, 40)
  })
  const event_id = await database.oneFirst(sql.type(row({ event_id: string() }))`
    select event_id from webhook_messages where team_id = ${TEAM} order by id offset 7000 limit 1`)
  await reads(t, 100, async (tx) => {
    t.equal((await webhookByEvent(tx, TEAM, { endpoint_id: ref.id, event_id }))?.event_id, event_id)
  })
  await reads(t, 20, (tx) => webhooksOf(tx, ref, { status: 'queued' }, { limit: 51 }))
  await database.query(sql.unsafe`
    insert into webhook_events (team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail, counts, kind)
    select team_id, endpoint_id, uuid_send(id), id, created_at, 503, 1, '', true, 'attempt' from webhook_messages
    where team_id = ${TEAM}`)
  await database.query(sql.unsafe`vacuum analyze webhook_events`)
  const newest = (await webhooksOf(database, ref, {}, { limit: 50 })).map(({ id }) => id)
  await reads(t, 500, async (tx) => {
    t.equal((await readOutcomes(tx, TEAM, newest)).length, 50)
    t.equal((await dueTimes(tx, 'deliver-webhook', newest)).size, 0)
  })
  const subjects = Array.from({ length: 10 }, (_, at) => uuid('0009', at + 1))
  await database.query(sql.unsafe`
    update webhook_messages m set subject_id = s.id
    from unnest(${sql.array(subjects, 'uuid')}) with ordinality s (id, n)
    where team_id = ${TEAM} and event_id = (
      select event_id from webhook_messages where team_id = ${TEAM} order by id offset s.n * 3000 limit 1)`)
  await reads(t, 100, async (tx) => {
    t.equal((await webhooksAbout(tx, TEAM, { subjects }, { limit: 51 })).length, 10)
  })
  const seen = await seenNow(database)
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000)
  const batch = (what: 'failed' | 'over') =>
    touched(database, async (tx) => {
      const range = { what, from: day(10), to: day(9), seen }
      const found = await replayable(tx, { ...ref, after: uuid('0000', 0), limit: 2_000 }, range)
      t.equal(Math.round(found.length / 10), what === 'over' ? 144 : 0)
    })
  const failed = await batch('failed')
  t.ok(failed.buffers < 30, `${failed.buffers} buffers for those of a day that failed`)
  const over = await batch('over')
  // Locking a row reads its page and, because all rows are visible, the visibility map.
  t.ok(over.buffers < 2 * 1_440 + 100, `${over.buffers} buffers for all 1,440 of a day`)
})

t.test('looks for dead workers among active jobs only', async (t) => {
  await reads(t, descendsByValue ? 100 : 20, (tx) => isAnyLost(runOn(tx)))
})

t.test('pg-boss counts less often only if there are many jobs', async (t) => {
  const pause = async (jobs: number) => {
    await database.query(sql.unsafe`update pgboss.version set monitor_backoff_on = null`)
    await database.query(sql.unsafe`
      update pgboss.queue set total_count = case name when 'deliver-email' then ${jobs} else 0 end`)
    await spreadCounts(runOn(database))
    return database.oneFirst(sql.type(row({ seconds: number().nullable() }))`
      select extract(epoch from monitor_backoff_on - now())::int as seconds from pgboss.version`)
  }
  t.equal(await pause(9_000), null)
  t.equal(await pause(100_000), 20)
  t.equal(await pause(10_000_000), 60)
})

t.test("finds a contact's skips by an index", async (t) => {
  const broadcast = uuid('0006', 2)
  await database.query(sql.unsafe`
    insert into broadcasts (team_id, id, name, state, from_address, reply_to, subject, template_id, topic_ids,
      exclude_topic_ids, conditions, variables, tags, created_at, updated_at)
    values (${TEAM}, ${broadcast}, 'News', 'draft', '', '', '', ${TEMPLATE}, '{}', '{}', '[]', '{}', '[]', now(), now())`)
  await database.query(sql.unsafe`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
    select ${TEAM}, ${broadcast}, gen_random_uuid(), 'Skipped' || n || '@example.com', 'variables', 'name', now()
    from generate_series(1, 20000) n`)
  await database.query(sql.unsafe`vacuum analyze broadcast_skips`)
  const person = ['skipped77@example.com']
  await reads(t, 20, async (tx) => t.equal((await skipsToShow(tx, TEAM, person)).length, 1))
  await reads(t, 50, (tx) => clearSkips(tx, TEAM, person))
})

t.test('lists failed WhatsApp messages without reading delivered ones', async (t) => {
  const team = uuid('0000', 199)
  await database.query(sql.unsafe`
    with message as materialized (
      select ('0190a1b2-000b-7000-8000-' || lpad(n::text, 12, '0'))::uuid as id, n from generate_series(1, 20000) n
    ), request as (
      insert into whatsapp_requests (team_id, id, template_id, parameters, created_at)
      select ${team}, id, id, '{}', now() from message
    )
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
    select ${team}, id, id, 0, '+15550000001', case when n % 4000 = 0 then 'failed' else 'read' end, now() from message`)
  await database.query(sql.unsafe`vacuum analyze whatsapp_messages, whatsapp_requests`)
  await reads(t, 60, async (tx) =>
    t.equal((await messagesFound(tx, team, { status: 'failed' }, { limit: 51 })).length, 5),
  )
})

t.test('vacuums growing tables long before a fifth is dead', async (t) => {
  const careless = await database.any(sql.type(row({ relname: string() }))`
    select relname from pg_class
    where relname ~ '^(accepted_emails|email_states|email_files|contacts|reports|whatsapp_requests|whatsapp_messages|(email|whatsapp|webhook|sender)_events|webhook_messages|audit_entries|daily_figures|broadcast_skips)$'
      and relkind = 'r' and coalesce(array_to_string(reloptions, ' '), '') !~ 'autovacuum_vacuum_scale_factor=0.02'`)
  t.strictSame(careless, [])
})

t.test('counts the contacts of topics by deltas', async (t) => {
  const topic = uuid('0002', 1)
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ('0190a1b2-0000-7000-8000-' || lpad((n % 3 + 1)::text, 12, '0'))::uuid,
      ('0190a1b2-0001-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'member' || n || '@example.com',
      'member' || n || '@example.com', 'subscribed', '{}',
      case when n % 21 = 0 then array[${topic}::uuid] else '{}' end, now(), now()
    from generate_series(1000, 21999) n`)
  for (let n = 1; n <= 500; n += 1)
    await database.query(sql.unsafe`
      update contacts set topic_ids = case when topic_ids = '{}' then array[${topic}::uuid] else '{}' end
      where team_id = ${TEAM} and id = ${uuid('0001', 1_002)}`)
  await database.query(sql.unsafe`vacuum analyze contacts, topic_counts`)
  const count = (most: number) =>
    touched(database, async (tx) => {
      t.strictSame([...(await countSubscribers(tx, TEAM, [topic]))], [[topic, 1_000]])
    }).then(({ buffers, nodes }) => {
      t.ok(buffers <= most, `${buffers} buffers for a thousand`)
      t.notOk(nodes.some((node) => node['Relation Name'] === 'contacts'))
    })
  await count(40)
  await foldStats(database)
  await count(10)
})

t.test('filters the audit log with an index', async (t) => {
  await database.query(sql.unsafe`
    insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
    select ('0190a1b2-0007-7000-8000-' || lpad(n::text, 12, '0'))::uuid, case when n % 5 > 0 then ${TEAM}::uuid end,
      case when n <= 30 then 'Rare@example.com' else 'person' || n % 20 || '@example.com' end,
      case when n <= 30 then 'key.revoke' else (array['template.update', 'email.requeue'])[1 + n % 2] end, '', '', now()
    from generate_series(1, 40000) n`)
  await database.query(sql.unsafe`vacuum analyze audit_entries`)
  for (const [filter, found] of [
    [{ actor: 'rare@example.com' }, 30],
    [{ actor: 'nobody@example.com' }, 0],
    [{ actor: 'person7@example.com' }, 51],
    [{ action: 'key.revoke' }, 30],
    [{ action: 'key' }, 30],
    [{ action: 'none' }, 0],
    [{ action: 'none.at.all' }, 0],
    [{ action: 'email' }, 51],
    [{ action: 'email.requeue' }, 51],
    [{ actor: 'rare@example.com', action: 'key' }, 30],
    [{ actor: 'rare@example.com', action: 'email' }, 0],
  ] as const)
    for (const team of [undefined, TEAM]) {
      await reads(t, 100, async (tx) => {
        const entries = await auditEntries(tx, { ...filter, team, limit: 51 })
        t.equal(entries.length, team && found === 30 ? 24 : found, JSON.stringify({ ...filter, team }))
      })
    }
})

t.test('finds when members were added without reading the entries of other teams', async (t) => {
  await database.query(sql.unsafe`
    insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
    select ('0190a1b2-000a-7000-8000-' || lpad(n::text, 12, '0'))::uuid, case when n % 4 > 0 or n % 1000 = 0 then ${TEAM}::uuid end,
      'ana@example.com', case when n % 4 > 0 then 'email.open' else 'member.add' end, 'person' || n % 3000 || '@example.com',
      (array['viewer', 'was viewer'])[1 + n % 8 / 4], now()
    from generate_series(1, 40000) n`)
  await database.query(sql.unsafe`vacuum analyze audit_entries`)
  const { buffers } = await touched(database, async (tx) => {
    const added = await memberAdditions(tx, TEAM, ROLES)
    t.strictSame(
      [...added.keys()].sort(),
      [0, 1000, 2000].map((n) => `person${n}@example.com`),
    )
  })
  t.ok(buffers < 60, `${buffers} buffers`)
})

t.test('finds the audit entries of one broadcast by an index', async (t) => {
  const broadcast = uuid('0008', 1)
  await database.query(sql.unsafe`
    insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
    select ('0190a1b2-0009-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${TEAM}, 'person@example.com',
      (array['broadcast.pause', 'broadcast.resume', 'broadcast.test', 'template.update'])[1 + n % 4], 'News',
      case when n <= 40 then ${broadcast} else '0190a1b2-0008-7000-8000-' || lpad((n % 500 + 2)::text, 12, '0') end, now()
    from generate_series(1, 40000) n`)
  await database.query(sql.unsafe`vacuum analyze audit_entries`)
  const actions = ['broadcast.pause', 'broadcast.resume']
  for (const [id, limit, found] of [
    [broadcast, 50, 20],
    [broadcast, 5, 5],
    [uuid('0008', 999), 50, 0],
  ] as const) {
    await reads(t, 60, async (tx) => {
      const entries = await entriesOfBroadcast(tx, { team_id: TEAM, id }, actions, limit)
      t.equal(entries.length, found)
    })
  }
})

t.test('deletes a rare topic without reading other contacts', async (t) => {
  const topic = { id: uuid('0002', 2), name: 'Few have it' }
  await insertTopic(database, TEAM, topic, new Date())
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${TEAM}, ('0190a1b2-0005-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'few' || n || '@example.com',
      'few' || n || '@example.com', 'subscribed', '{}', array[${topic.id}::uuid], now(), now()
    from generate_series(1, 5) n`)
  await database.query(sql.unsafe`vacuum analyze contacts`)
  const having = (tx: Tx) => tx.anyFirst(sql.unsafe`select id from contacts where ${hasTopic(topic.id)}`)
  const { nodes } = await reads(t, 300, async (tx) => {
    await deleteTopic(tx, uuid('0000', 2), topic.id, new Date())
    t.equal((await having(tx)).length, 5, 'another team cannot take it off')
    await deleteTopic(tx, TEAM, topic.id, new Date())
    t.strictSame(await having(tx), [])
  })
  t.ok(nodes.some((node) => node['Index Name'] === 'contacts_topics'))
})

t.test('a claim by group only reads the claimed jobs', async (t) => {
  // The planner has no statistics about these rows yet, so it would estimate one row.
  await database.query(sql.unsafe`
    insert into pgboss.job (name, data, group_id)
    select 'deliver-webhook', '{}', case when n > ${JOBS} then 'webhook:free' else 'webhook:full' end
    from generate_series(1, ${JOBS + 5}::int) n`)
  const claim = (full: number, free: number) =>
    touched(database, async (tx) => {
      const of = new Map(Object.entries({ 'webhook:full': full, 'webhook:free': free }))
      const claimed = await claimByGroup(runOn(tx), 'deliver-webhook', 64, { of, others: 8 })
      t.equal(claimed.length, Math.min(full, JOBS) + Math.min(free, 5))
    })
  for (const [full, free, most] of [
    [0, 0, 60],
    [0, 8, 250],
    [32, 0, 900],
  ] as const) {
    const { buffers } = await claim(full, free)
    t.ok(buffers < most, `${buffers} buffers for ${full} and ${free}`)
  }
})

t.test('a claim reads as much among 80,000 jobs as 80', async (t) => {
  const job = 'deliver-whatsapp-number'
  const store = (each: number) =>
    database.query(sql.unsafe`
      insert into pgboss.job (name, data, group_id, priority)
      select ${job}, '{}', 'whatsapp:' || n % 4, -n from generate_series(1, ${4 * each}::int) n`)
  const measure = async () => {
    const claim = await touched(database, async (tx) => {
      const claimed = await claimByGroup(runOn(tx), job, 32, { of: new Map(), others: 8 })
      t.equal(claimed.length, 32)
    })
    const position = await touched(database, (tx) => readQueuePosition(tx, job, 0, 'whatsapp:1'))
    return { claim: claim.buffers, position: position.buffers }
  }
  await store(20)
  const few = await measure()
  // The table has no statistics about these.
  await store(19_980)
  const many = await measure()
  t.ok(many.claim < 2 * few.claim + 200, `${many.claim} buffers for a claim, ${few.claim} with 80 jobs`)
  t.ok(many.position < few.position + 20, `${many.position} buffers for a position, ${few.position} with 80`)
})

// Runs last, because it leaves many dead versions of jobs.
t.test('finds completed jobs by key among many others', async (t) => {
  const running = await database.any(sql.type(idRow)`
    update pgboss.job set state = 'active' where name = 'deliver-email' and priority > -4000 returning id`)
  const done = running.slice(0, 20).map(({ id }) => ({ id, retryCount: 0 }))
  const { nodes } = await reads(t, 200, (tx) => deleteDoneJobs(tx, 'deliver-email', done))
  t.ok(nodes.some((node) => node['Index Name']?.endsWith('_pkey')))
})

t.test('counts suppressions with an index, despite other teams', async (t) => {
  const [none, many] = [uuid('000a', 1), uuid('000a', 2)]
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at) values (${none}, 'None', now()), (${many}, 'Many', now())`)
  await database.query(sql.unsafe`
    insert into suppressed_addresses (team_id, identity, email, cause, since)
    select ${many}, 'of' || n || '@example.net', 'of' || n || '@example.net', 'manual', now()
    from generate_series(1, 20000) n`)
  await database.query(sql.unsafe`vacuum analyze suppressed_addresses`)
  for (const [team, most, found] of [
    [none, 10_001, 0],
    [many, 101, 101],
  ] as const) {
    await reads(t, 60, async (tx) => t.equal(await countSuppressed(tx, team, {}, most), found))
  }
})
