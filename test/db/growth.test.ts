/**
 * Limits the buffers that statements read on tables large enough for the planner to choose a bad plan. Each
 * limit is far below the statement's number without an index. Buffers don't depend on the speed of the
 * machine.
 */
import { sql } from 'slonik'
import { boolean, number, object, string } from 'yup'
import { auditEntries, entriesOfBroadcast } from '../../db/accounts/audit/audit.sql.ts'
import { createTeam } from '../../db/accounts/teams/create.ts'
import { countSubscribers } from '../../db/audience/contacts/topic-counts.sql.ts'
import { deleteTopic, hasTopic, insertTopic } from '../../db/audience/contacts/topics.sql.ts'
import { countSuppressed, softFacts } from '../../db/audience/suppressions/addresses.sql.ts'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { WEBHOOK_SENDERS } from '../../db/channels/webhook.sql.ts'
import { WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import { orphanUnused, unusedFiles } from '../../db/content/files/collect.sql.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { messagesWithId } from '../../db/delivery/locate.sql.ts'
import { markRequeued } from '../../db/delivery/requeue.sql.ts'
import { releaseDue, whatIsDue } from '../../db/delivery/schedule.sql.ts'
import { failingSenders } from '../../db/delivery/senders/circuit-breaker.ts'
import { lostMessages } from '../../db/delivery/sweep.sql.ts'
import { clearSkips } from '../../db/maintenance/retention/erase.sql.ts'
import { skipsToShow } from '../../db/maintenance/retention/export.sql.ts'
import { emailsTo } from '../../db/maintenance/retention/person.sql.ts'
import {
  emptyEmails,
  messagesOf,
  teamsAndWhetherTheyHave,
} from '../../db/maintenance/retention/retention.sql.ts'
import { nextMembers } from '../../db/messages/broadcasts/audience.sql.ts'
import { acceptEmails } from '../../db/messages/emails/accept.ts'
import { countsOfTemplate } from '../../db/messages/emails/of-template.sql.ts'
import { emailsToDeliver } from '../../db/messages/emails/outgoing.sql.ts'
import { type EmailCriteria, emailsFound } from '../../db/messages/emails/search.sql.ts'
import { searchEmails } from '../../db/messages/emails/search.ts'
import { replayable, webhookByEvent, webhooksOf } from '../../db/messages/webhooks/listing.sql.ts'
import { messagesFound } from '../../db/messages/whatsapp/search.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { seenNow } from '../../db/postgres/snapshot.sql.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { readQueuePosition } from '../../db/queue/fair-queue.sql.ts'
import { claimByGroup } from '../../db/queue/group-claims.sql.ts'
import { deleteDoneJobs, queueStatus } from '../../db/queue/jobs.sql.ts'
import { isAnyLost, queuesDue, spreadCounts } from '../../db/queue/maintenance.sql.ts'
import type { Run } from '../../db/queue/pgboss.sql.ts'
import { createProducer } from '../../db/queue/producer.ts'
import { foldStats } from '../../db/stats/daily/fold.ts'
import { openReports, queuedByAge } from '../../db/stats/fleet/fleet.sql.ts'
import { firstIdAt } from '../../db/validation/ids.ts'
import { verifiedDomain } from '../support/domain.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { SECRET_KEY } from '../support/environment.ts'
import { ownServer } from '../support/own-server.ts'
import { openPool } from '../support/pool.ts'
import { anItem } from '../support/stored-emails.ts'
import t from '../support/tap.ts'
import { touched } from '../support/touched.ts'

const EMAILS = 40_000
const JOBS = 20_000
const TEAM = '0190a1b2-0000-7000-8000-000000000001'
/** The template of one in forty emails of the large team. */
const TEMPLATE = '0190a1b2-0002-7000-8000-000000000001'
const uuid = (kind: string, n: number): string => `0190a1b2-${kind}-7000-8000-${String(n).padStart(12, '0')}`

const { url } = await ownServer(t)
const database = await openPool(t, url, { size: 3, statementTimeout: 60_000 })
/** Before PostgreSQL 17, an index is searched once per value of a list. */
const descendsByValue = await database.oneFirst(sql.type(object({ is: boolean().defined() }))`
  select current_setting('server_version_num')::int < 170000 as is`)

/** One large team among small ones. Nearly all of its email is delivered, to a thousand recipients. */
t.before(async () => {
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at)
    select ('0190a1b2-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Team ' || n, now() - interval '90 days'
    from generate_series(1, 200) n`)
  const rows = sql.fragment`
    select '0190a1b2-0000-7000-8000-' || lpad((case when n % 10 < 8 then 1 else n % 200 + 1 end)::text, 12, '0') as team_id,
      lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0') as id,
      ${TEAM} as domain_id, 'a@demo.test' as from_address, array['user' || n % 1000 || '@example.com'] as to_emails,
      'Invoice ' || n as subject, '<p>Hello</p>' as html, 1 as size_kb, '[]'::json as tags,
      case when n > ${EMAILS - 20} then 'queued' when n % 20 = 0 then 'sent' else 'delivered' end as status,
      at as created_at, '' as reply_to, 'call-' || n as http_request_id,
      case when n > ${EMAILS - 20} then null else 'p-' || n end as provider_message_id
    from (
      select n, now() - interval '60 days' + n * interval '60 days' / ${EMAILS} as at
      from generate_series(1, ${EMAILS}::int) n) item`
  await insertEmailRows({ database }, rows)
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail)
    select team_id, id, decode(md5(id::text), 'hex'), case status when 'sent' then 'sent' else 'delivered' end,
      to_emails[1], created_at, ''
    from emails where status <> 'queued'`)
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, suppression, suppressed_softly, status_before,
      properties, topic_ids, created_at, updated_at)
    select ${TEAM}, ('0190a1b2-0001-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'user' || n || '@example.com',
      'user' || n || '@example.com', 'bounced', 'bounced', true, 'subscribed', '{}', '{}', now(), now()
    from generate_series(0, 999) n`)
  await database.query(sql.unsafe`
    insert into pgboss.job (id, name, data, priority, start_after)
    select gen_random_uuid(), 'deliver-email', '{}', -n, now() + interval '1 hour'
    from generate_series(1, ${JOBS}::int) n`)
  // A picture that nearly all emails contain, among files that were sent once.
  await database.query(sql.unsafe`
    insert into files (team_id, id, sha256, size, state, created_at, last_used_at)
    select ${TEAM}, gen_random_uuid(), sha256(n::text::bytea), 10, 'ready', now(), now() - interval '10 days'
    from generate_series(1, 3000) n`)
  await database.query(sql.unsafe`
    insert into email_files (team_id, email_id, sha256) select team_id, id, sha256('1') from emails where team_id = ${TEAM}`)
  await database.query(sql.unsafe`
    update accepted_emails set attachments = '[]'
    where (team_id, id) in (select team_id, id from email_states where unfinished)`)
  await database.query(sql.unsafe`
    update accepted_emails set template_id = ${TEMPLATE} where team_id = ${TEAM} and hashtext(subject) % 40 = 0`)
  await database.query(sql.unsafe`vacuum analyze`)
})

t.test("reads a range of a team's emails once", async (t) => {
  const rereads: string[] = []
  for (let day = 1; day < 55; day += 1) {
    const [from, to] = [day * 86_400_000, day * 86_400_000 - 5 * 3_600_000].map(
      (ago) => new Date(Date.now() - ago),
    )
    const stretch = { team_id: TEAM, words: ['Invoice'], from, to }
    const { nodes } = await touched(database, (tx) => emailsFound(tx, stretch, { limit: 51 }))
    const again = nodes.filter((node) => node['Actual Loops'] > 1 && node['Actual Rows'] > 1)
    rereads.push(...again.map((node) => `${day} days ago: ${node['Index Name']}`))
  }
  t.strictSame(rereads, [])
})

t.test('the file collector only reads waiting email', async (t) => {
  const before = new Date()
  const accepted = firstIdAt(new Date(before.getTime() - 3_600_000))
  const { buffers } = await touched(database, (tx) => unusedFiles(tx, before, 100))
  t.ok(buffers < 1_000, `${buffers} buffers for a hundred of three thousand`)
  const [first] = await unusedFiles(database, before, 1)
  const shared = await database.oneFirst(sql.type(object({ id: string().defined() }))`
    select id from files where sha256 = sha256('1')`)
  t.not(first?.id, shared, 'what waits keeps it')
  const orphaned = await touched(database, (tx) => orphanUnused(tx, TEAM, [shared], { before, accepted }))
  t.ok(orphaned.buffers < 100, `${orphaned.buffers} buffers to orphan one`)
})

t.test('the file collector skips uploads that are kept', async (t) => {
  await database
    .transaction(async (tx) => {
      await tx.query(sql.unsafe`
      with kept as (
        update files set kept_until = now() + interval '1 day', last_used_at = last_used_at - interval '1 day'
        where sha256 not in (select sha256(n::text::bytea) from generate_series(1, 6) n)
        returning team_id, sha256, kept_until
      )
      insert into uploads (team_id, id, sha256, filename, content_type, size, created_at, expires_at)
      select team_id, gen_random_uuid(), sha256, 'a.pdf', 'application/pdf', 10, now(), kept_until from kept`)
      await tx.query(sql.unsafe`analyze files, uploads`)
      const { buffers } = await touched(tx as never, async (own) => {
        t.equal((await unusedFiles(own, new Date(), 100)).length, 5, 'the picture is needed')
      })
      t.ok(buffers < 300, `${buffers} buffers for five of three thousand`)
      throw new Error('undone')
    })
    .catch((error: Error) => t.equal(error.message, 'undone'))
})

t.test("judges soft bounces by the address's own email", async (t) => {
  const now = new Date()
  const refs = [1, 2, 3].map((n) => {
    const email = `user${n}@example.com`
    return { team_id: TEAM, identity: email, email }
  })
  const rule = { most: 5, undisputed: now }
  const { buffers } = await touched(database, (tx) => softFacts(tx, refs, rule))
  t.ok(buffers < 900, `${buffers} buffers for three`)
})

t.test('metrics only read queued messages, up to a limit', async (t) => {
  const all = await database.oneFirst(sql.type(object({ count: number().defined() }))`
    select count(*) as count from email_states where unfinished`)
  const figures = async (most: number) => {
    let found: readonly { messages: number }[] = []
    const { buffers } = await touched(database, async (tx) => {
      found = (await queuedByAge(tx, [0, 60, 600], most)).filter(({ channel }) => channel === 'email')
    })
    return { buffers, messages: found.map(({ messages }) => messages) }
  }
  const some = await figures(10)
  t.strictSame(some.messages, [10, 10, 10], 'no more is counted')
  t.ok(some.buffers < 40, `${some.buffers} buffers for ten`)
  const each = await figures(1_000)
  t.equal(each.messages[0], all, 'below that, each figure is exact')
  t.ok(each.buffers < 60, `${each.buffers} buffers`)
})

t.test('queue status counts up to a limit', async (t) => {
  const look = async (most: number) => {
    let found: Awaited<ReturnType<typeof queueStatus>> = []
    const { buffers } = await touched(database, async (tx) => {
      found = await queueStatus(tx as typeof database, most)
    })
    return { buffers, deferred: found.find(({ queue }) => queue === 'deliver-email')?.deferred }
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
  const { buffers } = await touched(database, async (tx) => {
    const reports = (await openReports(tx)).map(({ state, reports }) => [state, reports])
    t.strictSame(reports, [
      ['parked', 5],
      ['pending', 5],
    ])
  })
  t.ok(buffers < 30, `${buffers} buffers`)
})

/** Runs SQL text as pg-boss's connections do. */
const runOn =
  (tx: Tx): Run =>
  async (text, values = []) => {
    const { rows } = await tx.query({ ...sql.unsafe`select`, sql: text, values: values as never })
    return { rows: [...rows] as Record<string, unknown>[] }
  }

t.test('checks a queue of deferred jobs without reading them', async (t) => {
  const line = await touched(database, (tx) => readQueuePosition(tx, 'deliver-email', 0))
  t.ok(line.buffers < 20, `${line.buffers} buffers for its line`)
  const due = await touched(database, (tx) => queuesDue(runOn(tx), ['deliver-email', 'ingest-report']))
  t.ok(due.buffers < 10, `${due.buffers} buffers before it is fetched from`)
})

t.test('finds paused endpoints among many', async (t) => {
  await database.query(sql.unsafe`
    insert into senders (key, rate, tokens, refilled_at, troubles, paused_until)
    select 'webhook:' || n, 1000, 1000, now(), (n < 3)::int, case when n < 3 then now() + interval '1 hour' end
    from generate_series(1, 20000) n`)
  await database.query(sql.unsafe`analyze senders`)
  const { buffers } = await touched(database, async (tx) => {
    const { states } = await failingSenders(tx, WEBHOOK_SENDERS)
    t.strictSame([...states.keys()].sort(), ['webhook:1', 'webhook:2'])
  })
  t.ok(buffers < 20, `${buffers} buffers`)
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
  const page = await touched(database, async (tx) => {
    t.equal((await webhooksOf(tx, ref, { status: 'failed' }, { limit: 51 })).length, 40)
  })
  t.ok(page.buffers < 60, `${page.buffers} buffers for the page of 40 that failed`)
  const row = object({ event_id: string().defined() })
  const event_id = await database.oneFirst(sql.type(row)`
    select event_id from webhook_messages where team_id = ${TEAM} order by id offset 7000 limit 1`)
  const one = await touched(database, async (tx) => {
    t.equal((await webhookByEvent(tx, TEAM, { endpoint_id: ref.id, event_id }))?.event_id, event_id)
  })
  t.ok(one.buffers < 100, `${one.buffers} buffers for the one about an event`)
  const none = await touched(database, (tx) => webhooksOf(tx, ref, { status: 'queued' }, { limit: 51 }))
  t.ok(none.buffers < 20, `${none.buffers} buffers for none that wait`)
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
  const { buffers } = await touched(database, (tx) => isAnyLost(runOn(tx)))
  t.ok(buffers < (descendsByValue ? 100 : 20), `${buffers} buffers`)
})

t.test('pg-boss counts less often only if there are many jobs', async (t) => {
  const pause = async (jobs: number) => {
    await database.query(sql.unsafe`update pgboss.version set monitor_backoff_on = null`)
    await database.query(
      sql.unsafe`update pgboss.queue set total_count = case name when 'deliver-email' then ${jobs} else 0 end`,
    )
    await spreadCounts(runOn(database))
    const row = object({ seconds: number().defined().nullable() })
    return database.oneFirst(sql.type(row)`
      select extract(epoch from monitor_backoff_on - now())::int as seconds from pgboss.version`)
  }
  t.equal(await pause(9_000), null)
  t.equal(await pause(100_000), 20)
  t.equal(await pause(10_000_000), 60)
})

t.test("finds emails to erase by the recipients' index", async (t) => {
  const { buffers, nodes } = await touched(database, (tx) =>
    emailsTo(tx, TEAM, ['user7@example.com'], { after: uuid('0000', 0), limit: 500 }),
  )
  t.ok(nodes.some((node) => node['Index Name'] === 'accepted_emails_recipients'))
  t.ok(buffers < 300, `${buffers} buffers`)
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
  const shown = await touched(database, async (tx) =>
    t.equal((await skipsToShow(tx, TEAM, person)).length, 1),
  )
  t.ok(shown.buffers < 20, `${shown.buffers} buffers`)
  const emptied = await touched(database, (tx) => clearSkips(tx, TEAM, person))
  t.ok(emptied.buffers < 50, `${emptied.buffers} buffers`)
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
  const { buffers } = await touched(database, async (tx) =>
    t.equal((await messagesFound(tx, team, { status: 'failed' }, { limit: 51 })).length, 5),
  )
  t.ok(buffers < 60, `${buffers} buffers`)
})

t.test('vacuums growing tables long before a fifth is dead', async (t) => {
  const row = object({ relname: string().defined() })
  const careless = await database.any(sql.type(row)`
    select relname from pg_class
    where relname ~ '^(accepted_emails|email_states|email_files|contacts|reports|whatsapp_requests|whatsapp_messages|(email|whatsapp|webhook|sender)_events|webhook_messages|audit_entries|daily_figures|broadcast_skips)$'
      and relkind = 'r' and coalesce(array_to_string(reloptions, ' '), '') !~ 'autovacuum_vacuum_scale_factor=0.02'`)
  t.strictSame(careless, [])
})

t.test('finds a message by its ID without a team', async (t) => {
  const row = object({ id: string().defined() })
  const id = await database.oneFirst(sql.type(row)`select id from emails where provider_message_id = 'p-777'`)
  await database.query(sql.unsafe`
    update accepted_emails set idempotency_key = 'order-' || subject where hashtext(subject) % 40 = 0 or id = ${id}`)
  await database.query(sql.unsafe`vacuum analyze accepted_emails`)
  const key = await database.oneFirst(sql.type(object({ key: string().defined() }))`
    select idempotency_key as key from accepted_emails where id = ${id}`)
  const lookUp = (given: string) => async (tx: Tx) => {
    const found = await messagesWithId(tx, given, { teams: null, limit: 50 })
    const wanted = given === 'of nobody' ? undefined : id
    if (found.length > 1 || found[0]?.id !== wanted)
      throw new Error(`${given} leads to ${found.length} others`)
  }
  for (const [given, most] of [
    ['p-777', 100],
    ['call-777', 100],
    [key, 100],
    ['of nobody', 100],
    [id, descendsByValue ? 600 : 400],
  ] as const) {
    const { buffers } = await touched(database, lookUp(given))
    t.ok(buffers < most, `${buffers} buffers for ${given}`)
  }
  const ofAll = (criteria: EmailCriteria) => (tx: Tx) => emailsFound(tx, criteria, { limit: 50 })
  const { buffers } = await touched(database, ofAll({ recipients: ['user7@example.com'], whose: 'all' }))
  t.ok(buffers < 600, `${buffers} buffers for a recipient`)
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
      const { buffers } = await touched(database, async (tx) => {
        const entries = await auditEntries(tx, { ...filter, team, limit: 51 })
        t.equal(entries.length, team && found === 30 ? 24 : found)
      })
      t.ok(buffers < 100, `${buffers} buffers for ${JSON.stringify({ ...filter, team })}`)
    }
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
    const { buffers } = await touched(database, async (tx) => {
      const entries = await entriesOfBroadcast(tx, { team_id: TEAM, id }, actions, limit)
      t.equal(entries.length, found)
    })
    t.ok(buffers < 60, `${buffers} buffers for ${found} of ${id}`)
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
  const { buffers, nodes } = await touched(database, async (tx) => {
    await deleteTopic(tx, uuid('0000', 2), topic.id, new Date())
    t.equal((await having(tx)).length, 5, 'another team cannot take it off')
    await deleteTopic(tx, TEAM, topic.id, new Date())
    t.strictSame(await having(tx), [])
  })
  t.ok(nodes.some((node) => node['Index Name'] === 'contacts_topics'))
  t.ok(buffers < 300, `${buffers} buffers for five contacts of a thousand and more`)
})

t.test('retention checks up to a thousand teams with one statement', async (t) => {
  const span = { from: uuid('0000', 0), before: firstIdAt(new Date(Date.now() - 59 * 86_400_000)) }
  const { buffers } = await touched(database, async (tx) => {
    const teams = await teamsAndWhetherTheyHave(tx, messagesOf(EMAIL), span, {
      after: span.from,
      limit: 1_000,
    })
    if (teams.length !== 200) throw new Error(`${teams.length} teams`)
  })
  t.ok(buffers < 1_000, `${buffers} buffers for 200 teams`)
})

t.test('purges bodies by ranges read once for all teams', async (t) => {
  const [from, to] = [30, 29.5].map((days) => firstIdAt(new Date(Date.now() - days * 86_400_000)))
  const { buffers } = await touched(database, async (tx) => {
    const { found, done } = await emptyEmails(tx, { after: from ?? '', before: to ?? '', limit: 1_000 }, 4)
    t.ok(found > 300 && done > 20 && done < found, `${done} of ${found}`)
  })
  t.ok(buffers < 4_000, `${buffers} buffers for 330 of 40,000`)
})

t.test('a sweep batch only reads its own rows and jobs', async (t) => {
  await database.query(sql.unsafe`
    with waiting as (
      insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
      select ${TEAM}, ('0190a1b2-0003-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${uuid('0004', 1)}, n,
        '+15550000000', 'queued', now() - interval '1 day' + n * interval '1 second'
      from generate_series(1, 10000) n returning id
    )
    insert into pgboss.job (id, name, data)
    select id, 'deliver-whatsapp', '{}' from waiting where id <> ${uuid('0003', 700)}`)
  await database.query(sql.unsafe`vacuum analyze`)
  const found: string[] = []
  const { buffers } = await touched(database, async (tx) => {
    let after = '-infinity'
    for (let part = 0; part < 2; part++) {
      const { lost, next } = await lostMessages(
        tx,
        WHATSAPP,
        { after, size: 500 },
        { before: new Date(), limit: 10 },
      )
      found.push(...lost.map(({ id }) => id))
      after = next ?? after
    }
  })
  t.ok(buffers < 500, `${buffers} buffers for two parts of 500`)
  t.strictSame(found, [uuid('0003', 700)])
  const all = await touched(database, async (tx) => {
    await lostMessages(tx, WHATSAPP, { after: '-infinity', size: 20_000 }, { before: new Date(), limit: 10 })
  })
  t.ok(all.buffers < 1_500, `${all.buffers} buffers for 10,000 of which one is lost`)
})

t.test('requeues and sweeps read no other jobs', async (t) => {
  const refs = Array.from({ length: 100 }, (_, index) => ({ team_id: TEAM, id: uuid('0003', 1_001 + index) }))
  const ids = sql.array(
    refs.map(({ id }) => id),
    'uuid',
  )
  const { buffers } = await touched(database, async (tx) => {
    const requeued = await markRequeued(tx, WHATSAPP, refs, { by: 'person', force: false, now: new Date() })
    t.equal(requeued.length, 100)
  })
  t.ok(buffers < 6_000, `${buffers} buffers to requeue a hundred`)
  await database.query(
    sql.unsafe`delete from pgboss.job where name = 'deliver-whatsapp' and id = any(${ids})`,
  )
  const sweep = await touched(database, async (tx) => {
    const part = { after: '-infinity', size: 2_000 }
    const { lost } = await lostMessages(tx, WHATSAPP, part, { before: new Date(), limit: 500 })
    t.equal(lost.length, 101)
  })
  t.ok(sweep.buffers < 20_000, `${sweep.buffers} buffers for a part with a hundred lost ones`)
})

t.test('searches emails of all teams by time', async (t) => {
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at)
    select ('0190a1b2-0006-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Silent ' || n, now()
    from generate_series(1, 5000) n`)
  await database.query(sql.unsafe`analyze teams`)
  const [from, to] = [29.5, 29].map((days) => new Date(Date.now() - days * 86_400_000))
  const { buffers } = await touched(database, async (tx) => {
    const found = await emailsFound(tx, { words: ['invoice'], from, to }, { limit: 1_000 })
    t.ok(found.length > 300, `${found.length} emails in half a day`)
  })
  t.ok(buffers < 3_000, `${buffers} buffers among 5,200 teams`)
})

t.test('template stats only read its newest emails', async (t) => {
  const since = new Date(Date.now() - 30 * 86_400_000)
  const figures = (most: number) => (tx: Tx) =>
    countsOfTemplate(tx, { team_id: TEAM, id: TEMPLATE }, { since, most })
  const { buffers, nodes } = await touched(database, figures(200))
  t.ok(buffers < 1_500, `${buffers} buffers for 200`)
  t.ok(nodes.some((node) => node['Index Name'] === 'accepted_emails_template'))
  t.notOk(nodes.some((node) => node['Node Type'] === 'Seq Scan'))
  const counts = await figures(200)(database)
  t.equal(
    counts.reduce((sum, { count }) => sum + count, 0),
    200,
  )
  const all = await figures(1_000_000)(database)
  const rows = await database.one(sql.type(object({ count: number().defined(), sent: number().defined() }))`
    select count(*) as count, count(*) filter (where status = 'sent') as sent from emails
    where team_id = ${TEAM} and template_id = ${TEMPLATE} and id >= ${firstIdAt(since)}`)
  t.equal(
    all.reduce((sum, { count }) => sum + count, 0),
    rows.count,
  )
  t.equal(all.find(({ status }) => status === 'sent')?.count, rows.sent)
})

t.test("finds all teams' newest waiting emails by an index", async (t) => {
  const [now, waiting] = [new Date(), 10_000]
  const rows = sql.fragment`
    select '0190a1b2-0000-7000-8000-' || lpad((n % 200 + 1)::text, 12, '0') as team_id,
      lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008001' || lpad(to_hex(n), 12, '0') as id,
      ${TEAM} as domain_id, 'a@demo.test' as from_address, array['late@example.com'] as to_emails, 'Late' as subject,
      '<p>Hello</p>' as html, 1 as size_kb, '[]'::json as tags, 'queued' as status, at as created_at, '' as reply_to
    from (
      select n, date_trunc('milliseconds', now() - n * interval '20 days' / ${waiting}::int) as at
      from generate_series(1, ${waiting}::int) n) item`
  await insertEmailRows({ database }, rows)
  await database.query(sql.unsafe`vacuum analyze email_states, accepted_emails`)
  const newest = await database.anyFirst(sql.type(object({ id: string().defined() }))`
    select id from email_states where unfinished order by id desc limit 100`)
  const found: string[] = []
  const { buffers, nodes } = await touched(database, async (tx) => {
    const deps = { tx, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
    const wanted = { status: 'queued' as const, since: new Date(0), now }
    const { rows: emails } = await searchEmails(deps, wanted, { limit: 100 }, Number.POSITIVE_INFINITY)
    found.push(...emails.map(({ id }) => id))
  })
  t.strictSame(found, newest)
  t.ok(buffers < 4_000, `${buffers} buffers for a hundred of ten thousand`)
  const most = Math.max(...nodes.map((node) => node['Actual Rows']))
  t.ok(most < 1_000, `${most} rows read at once`)
  const looked = nodes.filter((node) => node['Relation Name'] === 'accepted_emails')
  const lookups = looked.reduce((sum, node) => sum + node['Actual Rows'] * node['Actual Loops'], 0)
  t.equal(lookups, 100, 'no more is looked up than is shown')
})

t.test('a list page only reads its own rows', async (t) => {
  const team = '0190a1b2-0000-7000-8000-000000000009'
  await database.query(sql.unsafe`
    with message as materialized (
      select ('0190a1b2-0000-7000-8000-' || lpad((n % 20 + 1)::text, 12, '0'))::uuid as team_id,
        ('0190a1b2-0007-7000-8000-' || lpad(n::text, 12, '0'))::uuid as id, n
      from generate_series(1, 6000) n
    ), request as (
      insert into whatsapp_requests (team_id, id, template_id, parameters, created_at)
      select team_id, id, id, '{}', now() from message
    )
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
    select team_id, id, id, 0, '+15550000000', case when n % 2 = 0 then 'read' else 'sent' end, now() from message`)
  await database.query(sql.unsafe`vacuum analyze`)
  const pages: [string, number, (tx: Tx) => Promise<readonly { id: string }[]>][] = [
    ['emails', 200, (tx) => emailsFound(tx, { team_id: team }, { limit: 30 })],
    ['queued emails', 50, (tx) => emailsFound(tx, { team_id: team, status: 'queued' }, { limit: 30 })],
    ['WhatsApp messages', 300, (tx) => messagesFound(tx, team, {}, { limit: 30 })],
  ]
  for (const [what, has, page] of pages) {
    const { nodes } = await touched(database, async (tx) => t.equal((await page(tx)).length, 30, what))
    const most = Math.max(...nodes.map((node) => node['Actual Rows'] * node['Actual Loops']))
    t.ok(most <= 30, `${most} rows of ${has} ${what}`)
  }
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

t.test('30,000 waiting jobs change no plan of accepts and claims', async (t) => {
  const secrets = createSecrets(SECRET_KEY)
  const team_id = await database.transaction(async (tx) => {
    const { id } = await createTeam(
      { tx, now: new Date(), actor: null },
      { name: 'Nine o’clock', plan: 'pro' },
    )
    await verifiedDomain({ tx, secrets, now: new Date() }, id, 'demo.test')
    return id
  })
  const deps = { queue: createProducer(), versions: createVersions() }
  const accept = (tx: Tx) => acceptEmails({ ...deps, tx }, { team_id, domain: null }, [anItem()])
  const [made] = await database.transaction(accept)
  if (made?.kind !== 'stored') throw new Error(made?.kind)
  const countQueued = async (tx: Tx) =>
    (await queuedByAge(tx, [0], 200_000)).find(({ channel }) => channel === 'email')?.messages
  const queued = await database.transaction(countQueued)
  const operations = {
    accept,
    claim: async (tx: Tx) => {
      t.ok((await queuesDue(runOn(tx), ['deliver-email'])).has('deliver-email'))
      t.equal((await emailsToDeliver(tx, [{ team_id, email_id: made.row.id }])).length, 1)
    },
    'the look at what is due': async (tx: Tx) =>
      t.strictSame(await whatIsDue(tx), { channels: [], resumed: false }),
    release: async (tx: Tx) => t.strictSame(await releaseDue(tx, EMAIL, 500), []),
    'the count of what waits': async (tx: Tx) => t.equal(await countQueued(tx), queued),
  }
  const measure = async () => {
    const found: { operation: string; buffers: number; plan: string[] }[] = []
    for (const [operation, run] of Object.entries(operations)) {
      const { buffers, nodes } = await touched(database, run)
      found.push({
        operation,
        buffers,
        plan: nodes.map((node) => `${node['Node Type']} ${node['Index Name'] ?? ''}`),
      })
    }
    return found
  }
  await database.query(sql.unsafe`vacuum analyze accepted_emails, email_states`)
  const before = await measure()
  await database.query(sql.unsafe`
    with made as (
      insert into accepted_emails (team_id, id, domain_id, from_address, to_emails, subject, html, reply_to, tags, created_at)
      select team_id, gen_random_uuid(), domain_id, from_address, to_emails, subject, html, reply_to, tags, created_at
      from accepted_emails, generate_series(1, 30000) where team_id = ${team_id} returning team_id, id, created_at
    )
    insert into email_states (team_id, id, created_at, status, scheduled_at, due_at)
    select team_id, id, created_at, 'queued', now() + interval '1 hour', now() + interval '1 hour' from made`)
  await database.query(sql.unsafe`vacuum analyze accepted_emails, email_states`)
  for (const [nth, { operation, buffers, plan }] of (await measure()).entries()) {
    if (operation === 'accept' || operation === 'claim') t.strictSame(plan, before[nth]?.plan, operation)
    t.ok(
      buffers <= (before[nth]?.buffers ?? 0) + 20,
      `${operation}: ${buffers}, ${before[nth]?.buffers} before`,
    )
  }
})

// Runs last, because it leaves many dead versions of jobs.
t.test('finds completed jobs by key among many others', async (t) => {
  const row = object({ id: string().defined() })
  const running = await database.any(sql.type(row)`
    update pgboss.job set state = 'active' where name = 'deliver-email' and priority > -4000 returning id`)
  const done = running.slice(0, 20).map(({ id }) => ({ id, retryCount: 0 }))
  const { buffers, nodes } = await touched(database, (tx) => deleteDoneJobs(tx, 'deliver-email', done))
  t.ok(nodes.some((node) => node['Index Name']?.endsWith('_pkey')))
  t.ok(buffers < 200, `${buffers} buffers`)
})

t.test('an expansion checks each contact by key', async (t) => {
  const [topic, broadcast] = [uuid('0002', 3), uuid('0006', 1)]
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${TEAM}, ('0190a1b2-0007-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'walk' || n || '@example.com',
      'walk' || n || '@example.com', 'subscribed', '{}', array[${topic}::uuid], now() - interval '1 day', now()
    from generate_series(1, 3000) n`)
  // The first broadcast of a team with many emails, so statistics contain no broadcast.
  await insertEmailRows(
    { database },
    sql.fragment`
      select team_id, id, ${TEAM} as domain_id, 'a@demo.test' as from_address, array[email] as to_emails,
        'News' as subject, '<p>Hello</p>' as html, 1 as size_kb, '[]'::json as tags, 'sent' as status, created_at,
        '' as reply_to, ${broadcast} as broadcast_id, id as contact_id, 'w-' || id as provider_message_id
      from contacts where topic_ids = array[${topic}::uuid]`,
  )
  const audience = { team_id: TEAM, id: broadcast, topic_ids: [topic], exclude_topic_ids: [], conditions: [] }
  const look = { after: uuid('0007', 2_800), look: 100, limit: 100 }
  const { buffers } = await touched(database, async (tx) => {
    const until = new Date().toISOString()
    t.strictSame((await nextMembers(tx, { ...audience, until }, look)).members, [])
  })
  t.ok(buffers < 1_000, `${buffers} buffers for a hundred contacts, of a broadcast that has reached 3,000`)
})

t.test('counts suppressions with an index, despite other teams', async (t) => {
  const [none, many] = [uuid('000a', 1), uuid('000a', 2)]
  await database.query(
    sql.unsafe`insert into teams (id, name, created_at) values (${none}, 'None', now()), (${many}, 'Many', now())`,
  )
  await database.query(sql.unsafe`
    insert into suppressed_addresses (team_id, identity, email, cause, since)
    select ${many}, 'of' || n || '@example.net', 'of' || n || '@example.net', 'manual', now()
    from generate_series(1, 20000) n`)
  await database.query(sql.unsafe`vacuum analyze suppressed_addresses`)
  for (const [team, most, found] of [
    [none, 10_001, 0],
    [many, 101, 101],
  ] as const) {
    const { buffers } = await touched(database, async (tx) => {
      t.equal(await countSuppressed(tx, team, {}, most), found)
    })
    t.ok(buffers < 60, `${buffers} buffers for ${found}`)
  }
})
