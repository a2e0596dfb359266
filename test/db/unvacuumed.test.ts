/**
 * The lists of a team with almost a third of all email, without vacuum: after a load or restore, or during a
 * long transaction. No page is marked as all-visible, so index-only scans aren't cheap.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { contactsOfTeam } from '../../db/audience/contacts/contacts.sql.ts'
import { reachedBy } from '../../db/messages/broadcasts/recipients.sql.ts'
import { countMatching, idsMatching, waitingEmails } from '../../db/messages/emails/bulk.sql.ts'
import { emailsToRequeue } from '../../db/messages/emails/bulk.ts'
import { countFailed } from '../../db/messages/emails/failed.sql.ts'
import { type EmailCriteria, emailsFound } from '../../db/messages/emails/search.sql.ts'
import { messagesFound } from '../../db/messages/whatsapp/search.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { testDatabase } from '../support/database.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { openPool } from '../support/pool.ts'
import t from '../support/tap.ts'
import { readsFewer } from '../support/touched.ts'
import { uuidAt } from '../support/uuid-sql.ts'

const EMAILS = 60_000
const TEAM = '0190a1b2-0000-7000-8000-000000000001'
const OTHER = '0190a1b2-0000-7000-8000-000000000007'

const { url } = await testDatabase(t)
const database = await openPool(t, url, { size: 3, statementTimeout: 60_000 })

/** Three in ten emails belong to the large team. A tenth of all emails is waiting. */
t.before(async () => {
  for (const table of ['accepted_emails', 'email_states', 'whatsapp_messages', 'contacts'])
    await database.query(sql.unsafe`alter table ${sql.identifier([table])} set (autovacuum_enabled = false)`)
  const teams = sql.fragment`
    ('0190a1b2-0000-7000-8000-' || lpad((case when n % 10 < 3 then 1 else n % 500 + 2 end)::text, 12, '0'))::uuid`
  const ids = sql.fragment`
    (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid`
  const items = sql.fragment`(
    select n, date_trunc('milliseconds', now() - interval '60 days' + n * interval '60 days' / ${EMAILS}) as at
    from generate_series(1, ${EMAILS}::int) n) item`
  const rows = sql.fragment`
    select ${teams} as team_id, ${ids} as id, ${TEAM} as domain_id, 'a@demo.test' as from_address,
      array['user' || n % 1000 || '@example.com'] as to_emails, 'Invoice ' || n as subject,
      '<p>Hello</p>' as html, 1 as size_kb, '[]'::json as tags,
      case when n / 10 % 10 = 0 then 'queued' when n % 250 = 51 then 'bounced' else 'delivered' end as status, at as created_at, '' as reply_to,
      'call-' || n as http_request_id, case when n / 10 % 10 <> 0 then 'p-' || n end as provider_message_id
    from ${items}`
  await insertEmailRows({ database }, rows)
  await database.query(sql.unsafe`
    with message as materialized (select ${teams} as team_id, ${ids} as id, n, at from ${items}), request as (
      insert into whatsapp_requests (team_id, id, template_id, parameters, created_at)
      select team_id, id, id, '{}', at from message
    )
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
    select team_id, id, id, 0, '+15550000000', case when n / 10 % 10 = 0 then 'queued' else 'read' end, at from message`)
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at) select distinct ${teams}, 'A team', now() from ${items}`)
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${teams}, ${ids}, 'user' || n || '@example.com', 'user' || n || '@example.com', 'subscribed', '{}', '{}', at, at
    from ${items}`)
  await database.query(sql.unsafe`
    update contacts set email = 'user77@b' || chr(252) || 'cher.test', identity = 'user77@xn--bcher-kva.test'
    where team_id = ${OTHER} and id = (select id from contacts where team_id = ${OTHER} order by id limit 1)`)
  await database.query(sql.unsafe`analyze`)
})

const PAGE = { limit: 51 }

t.test('list pages, counts and batches only read their rows', async (t) => {
  const looks: [string, number, (tx: Tx) => Promise<{ length: number }>][] = [
    ['emails', 600, (tx) => emailsFound(tx, { team_id: TEAM }, PAGE)],
    ['queued emails', 600, (tx) => emailsFound(tx, { team_id: TEAM, status: 'queued' }, PAGE)],
    ['ids of emails', 60, (tx) => idsMatching(tx, TEAM, {}, PAGE)],
    ['ids of queued emails', 60, (tx) => idsMatching(tx, TEAM, { status: 'queued' }, PAGE)],
    ['WhatsApp messages', 400, (tx) => messagesFound(tx, TEAM, {}, PAGE)],
    ['queued WhatsApp messages', 400, (tx) => messagesFound(tx, TEAM, { status: 'queued' }, PAGE)],
  ]
  for (const [what, most, look] of looks) {
    const { nodes } = await readsFewer(t, database, most, async (tx) =>
      t.equal((await look(tx)).length, 51, what),
    )
    t.equal(Math.max(...nodes.map((node) => node['Actual Rows'])), 51, `no more of ${what} is read`)
  }
})

t.test('finds emails of a rare status by their index', async (t) => {
  for (const [criteria, found, most] of [
    [{ status: 'bounced' }, 51, 700],
    [{ status: 'complained' }, 0, 10],
    [{ status: 'bounced', words: ['Invoice'] }, 51, 1_300],
  ] as const) {
    const wanted: EmailCriteria = { ...criteria, words: [...(criteria.words ?? [])], team_id: TEAM }
    const { nodes } = await readsFewer(t, database, most, async (tx) => {
      t.equal((await emailsFound(tx, wanted, PAGE)).length, found, JSON.stringify(criteria))
    })
    t.ok(Math.max(...nodes.map((node) => node['Actual Rows'])) <= 120, 'no other is read')
  }
})

t.test("counts a team's queued emails by their states", async (t) => {
  await readsFewer(t, database, 1_000, async (tx) => {
    const { count, newest } = await countMatching(tx, TEAM, { status: 'queued' }, 501)
    t.equal(count, 501)
    const [first] = await emailsFound(tx, { team_id: TEAM, status: 'queued' }, { limit: 1 })
    t.equal(newest, first?.id)
  })
})

t.test('finds failed emails by their failures, however many wait or were requeued', async (t) => {
  const events = (kind: string, which: ReturnType<typeof sql.fragment>) =>
    database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
      select team_id, id, uuid_send(gen_random_uuid()), ${kind}, now(), '' from email_states where ${which}`)
  await events('delivered', sql.fragment`status = 'delivered'`)
  const oldest = sql.fragment`
    select id from email_states where team_id = ${TEAM} and status = 'queued' order by id limit 80`
  await events('gave_up', sql.fragment`id in (${oldest}) or team_id = ${OTHER}`)
  await database.query(sql.unsafe`
    update email_states set tries_from = now() + interval '1 hour' where id in (${oldest} offset 60)`)
  await database.query(sql.unsafe`analyze email_events`)
  const looks: [string, number, (tx: Tx) => Promise<{ length: number }>][] = [
    ['failed emails', 51, (tx) => emailsFound(tx, { team_id: TEAM, failed: true }, PAGE)],
    [
      'failed emails with a word',
      51,
      (tx) => emailsFound(tx, { team_id: TEAM, failed: true, words: ['Invoice'] }, PAGE),
    ],
    ['ids of failed emails', 51, (tx) => idsMatching(tx, TEAM, { failed: true }, PAGE)],
    ['waiting emails', 51, (tx) => emailsFound(tx, { team_id: TEAM, status: 'queued', failed: false }, PAGE)],
  ]
  for (const [what, found, look] of looks) {
    const { nodes } = await readsFewer(t, database, 1_500, async (tx) => {
      t.equal((await look(tx)).length, found, what)
    })
    t.ok(Math.max(...nodes.map((node) => node['Actual Rows'])) <= 80, `no other is read for ${what}`)
  }
  await readsFewer(t, database, 1_000, async (tx) => {
    t.equal(await countFailed(tx, TEAM, { from: new Date(0), most: 100, apart: false }), 60)
  })
})

t.test('finds requeueable emails in batches of waiting ones', async (t) => {
  const before = 'ffffffff-ffff-7000-8000-000000000000'
  await readsFewer(t, database, 1_500, async (tx) => {
    const batch = await waitingEmails(tx, TEAM, { words: ['1'], whose: 'all' }, { before, limit: 100 })
    t.equal(batch.length, 100)
    t.ok(batch.some(({ fits }) => fits) && batch.some(({ fits }) => !fits))
  })
  const all = await emailsToRequeue(database, TEAM, { force: false })
  t.equal(new Set(all).size, 1_800)
  const some = await emailsToRequeue(database, TEAM, { force: false, subject: '77' })
  t.ok(some.length > 0 && some.length < 200, `${some.length} of them`)
})

t.test("searches parts of addresses among the team's contacts only", async (t) => {
  const all = { offset: 0, limit: 51 }
  for (const [team, part, found] of [
    [TEAM, 'example', 51],
    [TEAM, 'xn--bcher', 0],
    [OTHER, 'EXAMPLE.com', 51],
    [OTHER, 'xn--bcher', 1],
    [OTHER, 'B\u00fccher', 1],
  ] as const) {
    const { nodes } = await readsFewer(t, database, 400, async (tx) => {
      t.equal((await contactsOfTeam(tx, team, { email: part }, all)).length, found, part)
    })
    t.notOk(nodes.some((node) => node['Node Type'] === 'Seq Scan'))
  }
})

t.test('finds single emails behind thousands of newer broadcast emails', async (t) => {
  for (const table of ['accepted_emails', 'email_states'])
    await database.query(sql.unsafe`
      update ${sql.identifier([table])} set broadcast_id = ${OTHER} where team_id = ${TEAM} and id in (
        select id from email_states where team_id = ${TEAM} order by id desc limit 15000)`)
  await database.query(sql.unsafe`analyze`)
  const { nodes } = await readsFewer(t, database, 700, async (tx) => {
    const found = await emailsFound(tx, { team_id: TEAM, in_broadcast: false }, PAGE)
    t.equal(found.length, 51)
    t.ok(found.every(({ broadcast_id }) => broadcast_id === null))
  })
  t.equal(Math.max(...nodes.map((node) => node['Actual Rows'])), 51, 'none of the broadcast is read')
})

t.test('finds the failed emails of a broadcast, however many are queued', async (t) => {
  const broadcast_id = uuidv7()
  const [team_id, failed] = [TEAM, { statuses: ['queued'], failed: true } as const]
  await insertEmailRows(
    { database },
    sql.fragment`
      select ${TEAM}::uuid as team_id, ${uuidAt(sql.fragment`now()`)} as id, ${TEAM}::uuid as domain_id,
        'hello@example.com' as from_address, array[n || '@example.net'] as to_emails, '' as subject, '' as html,
        '[]'::json as tags, '' as reply_to, 'queued' as status, now() as created_at,
        ${broadcast_id}::uuid as broadcast_id, gen_random_uuid() as contact_id
      from generate_series(1, 3000) n`,
  )
  const fail = (where: ReturnType<typeof sql.fragment>) =>
    database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
      select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', now() + interval '1 second', '' from email_states
      where team_id = ${TEAM} and ${where}`)
  await fail(sql.fragment`id in (
    select id from email_states where broadcast_id = ${broadcast_id} order by contact_id desc limit 3)`)
  const { nodes } = await readsFewer(t, database, 200, async (tx) => {
    t.equal((await reachedBy(tx, { team_id, broadcast_id }, failed, { limit: 51 })).length, 3)
  })
  t.ok(Math.max(...nodes.map((node) => node['Actual Rows'])) <= 3, 'no queued email is read')
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select ${TEAM}, ${uuidAt(sql.fragment`now()`)}, uuid_send(gen_random_uuid()), 'gave_up', now(), ''
    from generate_series(1, 5000)`)
  const page = await reachedBy(database, { team_id, broadcast_id }, failed, { limit: 2 })
  t.equal(page.length, 2, 'among many failures')
  const rest = await reachedBy(database, { team_id, broadcast_id }, failed, {
    after: page[1]?.contact_id,
    limit: 51,
  })
  t.equal(rest.length, 1)
})
