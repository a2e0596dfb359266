/**
 * Limits the buffers that statements read on tables large enough for the planner to choose a bad plan. Each
 * limit is far below the statement's number without an index. Buffers don't depend on the speed of the
 * machine.
 */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { createTeam } from '../../db/accounts/teams/create.ts'
import { softFacts } from '../../db/audience/suppressions/addresses.sql.ts'
import { EMAIL } from '../../db/channels/email.sql.ts'
import { WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import { orphanUnused, unusedFiles } from '../../db/content/files/collect.sql.ts'
import { createVersions } from '../../db/content/templates/versions.ts'
import { messagesWithId } from '../../db/delivery/locate.sql.ts'
import { markRequeued } from '../../db/delivery/requeue.sql.ts'
import { releaseDue, whatIsDue } from '../../db/delivery/schedule.sql.ts'
import { lostMessages } from '../../db/delivery/sweep.sql.ts'
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
import { messagesFound } from '../../db/messages/whatsapp/search.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { createSecrets } from '../../db/process/secrets.ts'
import { queuesDue } from '../../db/queue/maintenance.sql.ts'
import { createProducer } from '../../db/queue/producer.ts'
import { queuedByAge } from '../../db/stats/fleet/fleet.sql.ts'
import { firstIdAt } from '../../db/validation/ids.ts'
import { verifiedDomain } from '../support/domain.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { SECRET_KEY } from '../support/environment.ts'
import { startLargeTables, TEAM, TEMPLATE, uuid } from '../support/large-tables.ts'
import { runOn } from '../support/run-on.ts'
import { byCli } from '../support/service.ts'
import { anItem } from '../support/stored-emails.ts'
import t from '../support/tap.ts'
import { touched } from '../support/touched.ts'

const EMAILS = 40_000
const JOBS = 20_000

const { database, reads, descendsByValue } = await startLargeTables(t)

/** One large team among small ones. Nearly all of its email is delivered, to a thousand recipients. */
t.before(async () => {
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
    const [from, to] = [day * 24, day * 24 - 5].map((hours) => new Date(Date.now() - hours * 3_600_000))
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
  await reads(t, 1_000, (tx) => unusedFiles(tx, before, 100))
  const [first] = await unusedFiles(database, before, 1)
  const shared = await database.oneFirst(sql.type(object({ id: string().defined() }))`
    select id from files where sha256 = sha256('1')`)
  t.not(first?.id, shared, 'what waits keeps it')
  await reads(t, 100, (tx) => orphanUnused(tx, TEAM, [shared], { before, accepted }))
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
  const emails = [1, 2, 3].map((n) => `user${n}@example.com`)
  const refs = emails.map((email) => ({ team_id: TEAM, identity: email, email }))
  const rule = { most: 5, undisputed: new Date() }
  await reads(t, 900, (tx) => softFacts(tx, refs, rule))
})

t.test('metrics only read queued messages, up to a limit', async (t) => {
  const all = await database.oneFirst(sql.type(object({ count: number().defined() }))`
    select count(*) as count from email_states where unfinished`)
  const figures = async (most: number) => {
    const { result } = await reads(t, most < 100 ? 40 : 60, (tx) => queuedByAge(tx, [0, 60, 600], most))
    return result.filter(({ channel }) => channel === 'email').map(({ messages }) => messages)
  }
  t.strictSame(await figures(10), [10, 10, 10], 'no more is counted')
  t.equal((await figures(1_000))[0], all, 'below that, each figure is exact')
})

t.test("finds emails to erase by the recipients' index", async (t) => {
  const { nodes } = await reads(t, 300, (tx) =>
    emailsTo(tx, TEAM, ['user7@example.com'], { after: uuid('0000', 0), limit: 500 }),
  )
  t.ok(nodes.some((node) => node['Index Name'] === 'accepted_emails_recipients'))
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
    await reads(t, most, lookUp(given), given)
  }
  const ofAll = (criteria: EmailCriteria) => (tx: Tx) => emailsFound(tx, criteria, { limit: 50 })
  await reads(t, 600, ofAll({ recipients: ['user7@example.com'], whose: 'all' }))
})

t.test('retention checks up to a thousand teams with one statement', async (t) => {
  const span = { from: uuid('0000', 0), before: firstIdAt(new Date(Date.now() - 59 * 86_400_000)) }
  const page = { after: span.from, limit: 1_000 }
  const { result } = await reads(t, 1_000, (tx) => teamsAndWhetherTheyHave(tx, messagesOf(EMAIL), span, page))
  t.equal(result.length, 200, 'teams')
})

t.test('purges bodies by ranges read once for all teams', async (t) => {
  const [from, to] = [30, 29.5].map((days) => firstIdAt(new Date(Date.now() - days * 86_400_000)))
  const range = { after: from ?? '', before: to ?? '', limit: 1_000 }
  const { found, done } = (await reads(t, 4_000, (tx) => emptyEmails(tx, range, 4))).result
  t.ok(found > 300 && done > 20 && done < found, `${done} of ${found}`)
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
  const wanted = { before: new Date(), limit: 10 }
  await reads(t, 500, async (tx) => {
    let after = '-infinity'
    for (let part = 0; part < 2; part++) {
      const { lost, next } = await lostMessages(tx, WHATSAPP, { after, size: 500 }, wanted)
      found.push(...lost.map(({ id }) => id))
      after = next ?? after
    }
  })
  t.strictSame(found, [uuid('0003', 700)])
  await reads(t, 1_500, (tx) => lostMessages(tx, WHATSAPP, { after: '-infinity', size: 20_000 }, wanted))
})

t.test('requeues and sweeps read no other jobs', async (t) => {
  const refs = Array.from({ length: 100 }, (_, index) => ({ team_id: TEAM, id: uuid('0003', 1_001 + index) }))
  const ids = refs.map(({ id }) => id)
  const by = { by: 'person', force: false, now: new Date() } as const
  const { result: requeued } = await reads(t, 6_000, (tx) => markRequeued(tx, WHATSAPP, refs, by))
  t.equal(requeued.length, 100)
  await database.query(sql.unsafe`
    delete from pgboss.job where name = 'deliver-whatsapp' and id = any(${sql.array(ids, 'uuid')})`)
  const [part, wanted] = [
    { after: '-infinity', size: 2_000 },
    { before: new Date(), limit: 500 },
  ]
  const { result } = await reads(t, 20_000, (tx) => lostMessages(tx, WHATSAPP, part, wanted))
  t.equal(result.lost.length, 101)
})

t.test('searches emails of all teams by time', async (t) => {
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at)
    select ('0190a1b2-0006-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'Silent ' || n, now()
    from generate_series(1, 5000) n`)
  await database.query(sql.unsafe`analyze teams`)
  const [from, to] = [29.5, 29].map((days) => new Date(Date.now() - days * 86_400_000))
  const halfDay = { words: ['invoice'], from, to }
  const { result: found } = await reads(t, 3_000, (tx) => emailsFound(tx, halfDay, { limit: 1_000 }))
  t.ok(found.length > 300, `${found.length} emails in half a day`)
})

t.test('template stats only read its newest emails', async (t) => {
  const since = new Date(Date.now() - 30 * 86_400_000)
  const figures = (most: number) => (tx: Tx) =>
    countsOfTemplate(tx, { team_id: TEAM, id: TEMPLATE }, { since, most })
  const { nodes } = await reads(t, 1_500, figures(200))
  t.ok(nodes.some((node) => node['Index Name'] === 'accepted_emails_template'))
  t.notOk(nodes.some((node) => node['Node Type'] === 'Seq Scan'))
  const counts = await figures(200)(database)
  const counted = counts.reduce((sum, { count }) => sum + count, 0)
  t.equal(counted, 200)
  const all = await figures(1_000_000)(database)
  const rows = await database.one(sql.type(object({ count: number().defined(), sent: number().defined() }))`
    select count(*) as count, count(*) filter (where status = 'sent') as sent from emails
    where team_id = ${TEAM} and template_id = ${TEMPLATE} and id >= ${firstIdAt(since)}`)
  const total = all.reduce((sum, { count }) => sum + count, 0)
  t.equal(total, rows.count)
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
  const deps = { versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
  const wanted = { status: 'queued' as const, since: new Date(0), now }
  const { nodes, result } = await reads(t, 4_000, (tx) =>
    searchEmails({ ...deps, tx }, wanted, { limit: 100 }, { patience: Number.POSITIVE_INFINITY }),
  )
  const found = result.rows.map(({ id }) => id)
  t.strictSame(found, newest)
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

t.test('30,000 waiting jobs change no plan of accepts and claims', async (t) => {
  const secrets = createSecrets(SECRET_KEY)
  const team_id = await database.transaction(async (tx) => {
    const { id } = await createTeam(byCli(tx), { name: 'Nine o’clock', plan: 'pro' })
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
      const { buffers, nodes } = await touched<unknown>(database, run)
      const plan = nodes.map((node) => `${node['Node Type']} ${node['Index Name'] ?? ''}`)
      found.push({ operation, buffers, plan })
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
t.test('an expansion checks each contact by key', async (t) => {
  const [topic, broadcast] = [uuid('0002', 3), uuid('0006', 1)]
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${TEAM}, ('0190a1b2-0007-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'walk' || n || '@example.com',
      'walk' || n || '@example.com', 'subscribed', '{}', array[${topic}::uuid], now() - interval '1 day', now()
    from generate_series(1, 3000) n`)
  // The first broadcast of a team with many emails, so statistics contain no broadcast.
  const rows = sql.fragment`
    select team_id, id, ${TEAM} as domain_id, 'a@demo.test' as from_address, array[email] as to_emails,
      'News' as subject, '<p>Hello</p>' as html, 1 as size_kb, '[]'::json as tags, 'sent' as status, created_at,
      '' as reply_to, ${broadcast} as broadcast_id, id as contact_id, 'w-' || id as provider_message_id
    from contacts where topic_ids = array[${topic}::uuid]`
  await insertEmailRows({ database }, rows)
  const audience = { team_id: TEAM, id: broadcast, topic_ids: [topic], exclude_topic_ids: [], conditions: [] }
  const look = { after: uuid('0007', 2_800), look: 100, limit: 100 }
  await reads(t, 1_000, async (tx) => {
    const until = new Date().toISOString()
    t.strictSame((await nextMembers(tx, { ...audience, until }, look)).members, [])
  })
})
