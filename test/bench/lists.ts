/**
 * Measures the first page of each of the dashboard's lists, over HTTP, for a team with 2,000,000 emails and
 * 1,000,000 contacts. The goal is 200 ms and 60 KB. Prints a line for each, without assertions. Run:
 * DATABASE_URL=postgres://… node test/bench/lists.ts [EMAILS] (an empty database, which is migrated and
 * filled in minutes). A second run with the same database only measures.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { object, string } from 'yup'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { migrate } from '../../db/migrate.ts'
import { type Database, openDatabase } from '../../db/postgres/pool.ts'
import { idRow } from '../../db/postgres/rows.ts'
import { foldStats } from '../../db/stats/daily/fold.ts'
import { signedIn } from '../support/dashboard.ts'
import { insertEmailRows } from '../support/email-rows.ts'
import { makeTeam, type Service, startService } from '../support/service.ts'
import { uuidAt } from '../support/uuid-sql.ts'
import { makeTemplate } from '../support/whatsapp.ts'

const EMAILS = Number(process.argv[2] ?? 2_000_000)
const CONTACTS = EMAILS / 2
const [AT_ONCE, ROUNDS, DAYS] = [100_000, 7, 60]
const NAME = 'Northwind'

const url = process.env.DATABASE_URL
if (!url) throw new Error('set DATABASE_URL to an empty database')
await migrate(url)
const ends: (() => Promise<void>)[] = []
const service = await startService({ teardown: (end: () => Promise<void>) => ends.push(end) } as never, {
  url,
})

const known = await service.database.maybeOne(sql.type(idRow)`select id from teams where name = ${NAME}`)
const team = known?.id ?? (await filled(service))
const measured = await service.database.one(sql.type(
  object({ id: string().defined(), template: string().defined(), topic: string().defined() }),
)`
  select (select id from accepted_emails where team_id = ${team} order by id limit 1) as id,
    (select id from templates where team_id = ${team} limit 1) as template,
    (select id from topics where team_id = ${team} limit 1) as topic`)

/** Paths below /dashboard/teams/ID. A path that starts with /operator is the operator's. */
const PATHS = [
  '',
  '/emails',
  ...['queued', 'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'failed'].map(
    (status) => `/emails?status=${status}`,
  ),
  '/emails?q=person4711@example.com',
  '/emails?q=nobody@example.com',
  `/emails?q=${measured.id}`,
  '/emails?q=invoice',
  '/emails?subject=no+such+word',
  '/emails?recipient=person4711@example.com&status=bounced',
  '/emails?tag=invoice',
  '/emails?tag=rare',
  '/emails?domain=example.com',
  '/emails?domain=example.net',
  `/emails?template=${measured.template}`,
  '/emails?from=2026-01-01&to=2036-01-01',
  '/emails?subject=parcel&status=bounced&tag=invoice',
  `/emails?before=${uuidv7({ msecs: Date.now() - (DAYS / 2) * 86_400_000 })}`,
  `/emails/${measured.id}`,
  '/contacts',
  ...['subscribed', 'unsubscribed', 'bounced', 'complained'].map((status) => `/contacts?status=${status}`),
  '/contacts?email=person4711@',
  '/contacts?email=nobody',
  '/contacts?email=on',
  `/contacts?topic=${measured.topic}`,
  `/contacts?topic=${measured.topic}&status=bounced`,
  '/contacts/person4711@example.com',
  '/suppressions',
  '/topics',
  '/templates',
  `/templates/${measured.template}`,
  '/whatsapp',
  '/whatsapp?status=failed',
  '/whatsapp?recipient=%2B15555500001',
  '/broadcasts',
  '/audit',
  '/audit?actor=ana@example.com',
  '/audit?actor=nobody@example.com',
  '/audit?action=email.delete',
  '/operator/audit',
  '/operator/audit?actor=nobody@example.com',
  '/operator/audit?action=none',
  '/operator/teams',
  '/operator/queues',
  '/operator/senders',
  '/operator/reports',
  '/operator/health',
  '/find?q=person4711@example.com',
  '/find?q=4711',
]

const ana = await signedIn(service, { team, role: 'owner', operator: true })
process.stdout.write('| list | first, ms | median, ms | slowest, ms | KB |\n|---|---|---|---|---|\n')
for (const path of PATHS) {
  const whole = /^\/(operator|find)/.test(path) ? path : `/teams/${team}${path}`
  const times: number[] = []
  let size = 0
  for (let round = 0; round <= ROUNDS; round += 1) {
    const began = performance.now()
    const { status, html } = await ana.get(whole)
    times.push(performance.now() - began)
    size = Buffer.byteLength(html) / 1024
    if (status >= 400) throw new Error(`${path}: ${status}`)
  }
  const [first = 0, ...later] = times
  later.sort((one, other) => one - other)
  const figures = [first, later[Math.floor(ROUNDS / 2)] ?? 0, later.at(-1) ?? 0, size].map(Math.round)
  process.stdout.write(`| ${path.replace(/[0-9a-f-]{36}/g, 'ID') || 'overview'} | ${figures.join(' | ')} |\n`)
}
for (const end of ends) await end()

/** Fills an empty database. @returns the team. */
async function filled(service: Service): Promise<string> {
  const database = await openDatabase(service.url, { size: 1, statementTimeout: 1_800_000 })
  const { id, domain_id } = await makeTeam(service, { plan: 'pro' })
  const by = { now: new Date(), actor: 'ana@example.com' }
  const template = await service.database.transaction((tx) =>
    saveTemplate({ tx, ...by }, id, { name: 'Invoice', html: '<p>Hi {{name}}</p>', text: 'Hi' }),
  )
  await database.query(sql.unsafe`
    insert into topics (team_id, id, name, created_at) select ${id}, ${uuidAt(sql.fragment`now()`)}, 'Topic ' || n, now() from generate_series(1, 20) n`)
  await fillEmails(database, { id, domain_id, template: template.id })
  await fillContacts(database, id)
  await fillOthers(service, database, id)
  await database.query(sql.unsafe`vacuum analyze`)
  await database.query(sql.unsafe`
    update teams set name = ${NAME}, created_at = now() - make_interval(days => ${DAYS + 1}) where id = ${id}`)
  await database.end()
  return id
}

async function fillEmails(
  database: Database,
  { id, domain_id, template }: { id: string; domain_id: string; template: string },
): Promise<void> {
  const step = (DAYS * 86_400) / EMAILS
  for (let done = 0; done < EMAILS; done += AT_ONCE) {
    const rows = sql.fragment`
      select ${id} as team_id, i.id, ${domain_id} as domain_id, 'Northwind <hello@example.com>' as from_address,
        array['person' || n % 700000 || '@example.com'] as to_emails, '' as reply_to,
        (array['Your invoice ', 'Your parcel ', 'Welcome '])[1 + n % 3] || n as subject,
        repeat('<p>Hello, this is about what a short letter says.</p>', 5) as html, 1 as size_kb,
        case when n % 3 = 0 then '["invoice"]' when n % 400000 = 1 then '["rare"]' else '[]' end::json as tags,
        case when n % 1000 = 0 then 'complained' when n % 100 = 7 then 'bounced' when n > ${EMAILS - 500} then 'queued'
          when n % 10 = 1 then 'clicked' when n % 10 < 4 then 'opened' when n % 500 = 6 then 'sent'
          else 'delivered' end as status,
        i.at as created_at, gen_random_uuid()::text as http_request_id,
        gen_random_uuid()::text as provider_message_id
      from generate_series(${done + 1}::int, ${done + AT_ONCE}::int) n
      cross join lateral (select now() + make_interval(secs => (n - ${EMAILS}) * ${step}::float8) as at) a
      cross join lateral (select a.at, ${uuidAt(sql.fragment`a.at`)} as id) i`
    await insertEmailRows({ database }, rows)
  }
  // One in ten uses a template, which the rows above can't express.
  await database.query(sql.unsafe`
    update accepted_emails e set template_id = ${template}, template_version_id = t.version_id, html = null
    from templates t where t.team_id = e.team_id and t.id = ${template} and e.team_id = ${id}
      and right(e.subject, 1) = '5'`)
  await foldStats(database)
}

async function fillContacts(database: Database, id: string): Promise<void> {
  for (let done = 0; done < CONTACTS; done += AT_ONCE)
    await database.query(sql.unsafe`
      insert into contacts (team_id, id, email, identity, status, suppression, properties, topic_ids, created_at, updated_at)
      select ${id}, ${uuidAt(sql.fragment`clock_timestamp()`)}, email, email, status,
        case when status in ('bounced', 'complained') then status end, '{"name": "Ana", "city": "Graz"}',
        case when n % 2 = 0 then array[(select t.id from topics t where t.team_id = ${id} and t.name = 'Topic ' || 1 + n % 20)]
          else '{}'::uuid[] end,
        now() - make_interval(secs => ${CONTACTS} - n), now()
      from generate_series(${done + 1}::int, ${done + AT_ONCE}::int) n
      cross join lateral (select 'person' || n || '@example.com' as email,
        case when n % 50 = 0 then 'unsubscribed' when n % 200 = 3 then 'bounced' when n % 5000 = 4 then 'complained'
          else 'subscribed' end as status) c`)
}

/** Stores 500,000 entries of the audit log and 200,000 WhatsApp messages. */
async function fillOthers(service: Service, database: Database, id: string): Promise<void> {
  await database.query(sql.unsafe`
    insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
    select i.id, case when n % 5 > 0 then ${id}::uuid end, 'person' || n % 20 || '@example.com',
      (array['template.update', 'email.requeue', 'contact.change'])[1 + n % 3], gen_random_uuid(), '',
      i.at
    from generate_series(1, 500000) n
    cross join lateral (select now() + make_interval(secs => n - 500000) as at) a
    cross join lateral (select a.at, ${uuidAt(sql.fragment`a.at`)} as id) i`)
  const template = await makeTemplate(service, id)
  await database.query(sql.unsafe`
    with message as materialized (
      select ${uuidAt(sql.fragment`at`)} as id, at, gen_random_uuid() as request_id, n
      from generate_series(1, 200000) n
      cross join lateral (select now() + make_interval(secs => n - 200000) as at) a
    ), request as (
      insert into whatsapp_requests (team_id, id, template_id, parameters, created_at)
      select ${id}, request_id, ${template.id}, '{"body:1": "Ana"}', at from message
    )
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, country, status, created_at, accepted_at)
    select ${id}, id, request_id, 0, '+155555' || lpad((n % 50000)::text, 5, '0'), 'US',
      case when n % 2000 = 0 then 'failed' when n % 3 = 0 then 'read' else 'delivered' end,
      at, now() from message`)
}
