/**
 * Builds the database of row 12: 10,000,000 emails of 180 days, 4,000,000 from one team and the rest from
 * 1,999, with their states, 10,000,000 events, 3,000,000 contacts, 1,000,000 WhatsApp messages, reports,
 * stats and audit log. 200,000 emails are waiting, with jobs deferred until long after the bench. It is
 * loaded once, by set-based statements that skip the WAL, into a separate server, and kept there under a
 * digest of this file. It has 18 GB, and loading lasts about ten minutes. Later migrations are applied to it
 * as usual. If it has different migrations from ours, it is loaded again. Only this module and
 * test/support/email-rows.ts know that emails are two tables, because a view can't load millions of rows.
 */
import { createHash } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { Client } from 'pg'
import { type Postgres, startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { databaseUrl } from '../support/database.ts'
import { QUICK } from './figures.ts'

/** The default directory, unless `--store` is given. */
export const STORE = '/var/tmp/heliograph-bench'

export const EMAILS = QUICK ? 100_000 : 10_000_000
const [DAYS, TEAMS, PEOPLE, WAITING] = [180, 2_000, EMAILS / 10, EMAILS / 50]
const MESSAGES = EMAILS / 10
/**
 * A crash while loading may lose everything, and loading starts over. The stored database runs with default
 * durability.
 */
const LOADING = {
  ...{ fsync: 'off', wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '8GB', autovacuum: 'off' },
  ...{ shared_buffers: '1GB', maintenance_work_mem: '512MB', max_parallel_maintenance_workers: '0' },
}
const KEPT = { max_connections: '200', shared_buffers: '2GB', max_wal_size: '4GB' }

/** Expressions that derive an ID from a number. */
const teamId = (n: string) => `('01900000-0000-7000-8000-' || lpad((${n})::text, 12, '0'))::uuid`
const contactId = (team: string, person: string) =>
  `('01900001-' || lpad(to_hex(${team}), 4, '0') || '-7000-8000-' || lpad((${person})::text, 12, '0'))::uuid`
const templateId = (team: string, n: string) =>
  `('01900002-' || lpad(to_hex(${team}), 4, '0') || '-7000-8000-' || lpad((${n})::text, 12, '0'))::uuid`
const timedId = (at: string, n: string) =>
  `(lpad(to_hex((${at} * 1000)::bigint), 12, '0') || '7' || substr(md5(${n}::text), 1, 3) || '8'
    || substr(md5(${n}::text), 4, 15))::uuid`

/**
 * Returns the view of all emails. Its rows are deterministic, so several connections can load parts of it.
 * `k` decides an email's result, and `n` its team.
 * @param newest seconds since 1970.
 */
const mails = (newest: number): string => `
  create view bench_mails as
  select n, n / 10 as k, team, person, ${teamId('team')} as team_id, ${timedId('seconds', 'n')} as id,
    to_timestamp(seconds) as at,
    'person' || person || '.' || team || '@example.com' as address, n > ${EMAILS - 1.5 * WAITING} and n % 3 > 0 as waits
  from (
    select n, team, seconds, hash % case team when 1 then ${PEOPLE} else 1000 end as person from (
      select n, ${newest} - (${EMAILS} - n) * ${(DAYS * 86_400) / EMAILS}::float8 as seconds, hash,
        case when n % 10 < 4 then 1
          else 2 + floor(${TEAMS - 1} * power((hash % 100003) / 100003.0::float8, 3))::int end as team
      from (select n, abs(hashint4(n)::bigint) as hash from (
        select generate_series(1, ${EMAILS}) as n) ns) hashed) numbered) item`

const accounts = [
  `insert into teams (id, name, created_at)
    select ${teamId('n')}, 'Team ' || n, now() - interval '${DAYS + 1} days' from generate_series(1, ${TEAMS}) n`,
  `insert into subscriptions (team_id, plan_key, email_limit, contact_limit, whatsapp_limit, send_rate_per_second)
    select id, 'pro', 100000000, 100000000, 100000000, 100000 from teams`,
  `insert into allowances (team_id, period_start, period_end, bucket_tokens, refilled_at)
    select id, date_trunc('month', now()), date_trunc('month', now()) + interval '1 month', 0, now() from teams`,
  `insert into topics (team_id, id, name, created_at)
    select t.id, ${templateId('1', 'n')}, 'Topic ' || n, now() from teams t, generate_series(1, 20) n`,
  `insert into templates (team_id, id, name, version_id, created_at, updated_at)
    select ${teamId('team')}, ${templateId('team', 'n')}, 'Template ' || n, ${templateId('team', 'n')}, now(), now()
    from generate_series(1, ${TEAMS}) team, generate_series(0, 19) n`,
  `insert into template_versions (team_id, id, template_id, html, body_text, slots, created_at, created_by)
    select team_id, id, id, '<p>Hello {{name}}</p>', 'Hello {{name}}', array['name'], now(), 'cli' from templates`,
]

const accepted = [
  `insert into accepted_emails (
      team_id, id, domain_id, template_id, template_version_id, variables, from_address, to_emails, subject, html, tags,
      idempotency_key, created_at, contact_id, body_text, headers, reply_to, http_request_id)
    select team_id, id, team_id, case when n % 5 < 3 then ${templateId('team', 'n % 20')} end,
      case when n % 5 < 3 then ${templateId('team', 'n % 20')} end,
      case when n % 5 < 3 then ('{"name": "Ana", "order": "' || n
        || '", "link": "https://shop.example/orders/' || n || '?from=mail", "total": "129.00 EUR"}')::json end,
      'Northwind <hello@example.com>',
      case when n % 20 = 9 then array[address, 'second.' || address] else array[address] end,
      (array['Your invoice ', 'Your parcel ', 'Welcome '])[1 + n % 3] || n,
      case when n % 5 > 2 then repeat('<p>Hello, this is about what a short letter says.</p>', 12) end,
      case when n % 3 = 0 then '["invoice"]' when n % 400000 = 1 then '["rare"]' else '[]' end::json,
      case when n % 2 = 0 then 'order-' || n end, at,
      case when n % 4 > 0 then ${contactId('team', 'person')} end,
      case when n % 5 = 4 then repeat('Hello, this is about what a short letter says. ', 6) end,
      case when n % 10 = 5 then '{"X-Campaign": "spring"}'::json end, '', 'req-' || md5(n::text)
    from bench_mails`,
]

const states = [
  `insert into email_states (team_id, id, created_at, internal, status, size_kb, provider_message_id)
    select team_id, id, at, false,
      case when waits then 'queued' when k % 1000 = 0 then 'complained' when k % 100 = 7 then 'bounced'
        when k % 500 = 6 then 'sent' when k % 10 = 1 then 'clicked' when k % 10 < 4 then 'opened' else 'delivered' end,
      1, case when not waits then md5(n::text) || '-000000' end
    from bench_mails`,
]

/** Events of the newest half, and five consecutive soft bounces for some of the large team's contacts. */
const events = [
  `insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail)
    select team_id, id, decode(md5(kind || n), 'hex'), kind, case when kind <> 'sent' then address end,
      at + interval '1 second', '250 2.0.0 Ok: queued as ' || upper(substr(md5(n::text), 1, 10))
    from bench_mails cross join lateral (values ('sent'), (
      case when k % 100 = 7 then 'bounced' when k % 500 = 6 then null else 'delivered' end)) as v (kind)
    where n > ${EMAILS / 2} and not waits and kind is not null`,
  `insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail, contact_id, effect)
    select team_id, id, decode(md5('soft' || n || '/' || hour), 'hex'), 'bounced', address,
      at + hour * interval '1 hour', '452 4.2.2 mailbox full', ${contactId('1', `(n - ${EMAILS / 2}) / 10`)}, 'soft'
    from bench_mails, generate_series(1, 5) hour
    where n > ${EMAILS / 2} and n % 10 = 0 and (n - ${EMAILS / 2}) / 10 < ${PEOPLE / 100}`,
]

const contacts = [
  `insert into contacts (team_id, id, email, identity, status, suppression, suppressed_softly, status_before,
      properties, topic_ids, created_at, updated_at)
    select ${teamId('team')}, ${contactId('team', 'person')}, email, email, status,
      case when status in ('bounced', 'complained') then status end, is_soft, case when is_soft then 'subscribed' end,
      '{"name": "Ana", "city": "Graz"}',
      case when person % 2 = 0 then array[${templateId('1', '1 + person % 20')}] else '{}'::uuid[] end,
      now() - person * interval '1 second', now()
    from (
      select 1 as team, generate_series(0, ${PEOPLE - 1}) as person
      union all
      select team, person from generate_series(2, ${TEAMS}) team, generate_series(0, ${PEOPLE / 1_000 - 1}) person) p
    cross join lateral (select team = 1 and person < ${PEOPLE / 100} as is_soft) s
    cross join lateral (
      select 'person' || person || '.' || team || '@example.com' as email,
        case when is_soft then 'bounced' when person % 50 = 0 then 'unsubscribed' when person % 200 = 3 then 'bounced'
          when person % 5000 = 4 then 'complained' else 'subscribed' end as status) c`,
]

const whatsapp = (newest: number): string[] => {
  const messages = `(
    select n, ${teamId('1 + n % 100')} as team_id, ${timedId('seconds', 'n')} as id, to_timestamp(seconds) as at,
      n > ${MESSAGES} * 0.98 as waits
    from (select n, ${newest} - (${MESSAGES} - n) * ${(DAYS * 86_400) / MESSAGES}::float8 as seconds
      from generate_series(1, ${MESSAGES}) n) numbered) message`
  return [
    `insert into whatsapp_requests (team_id, id, template_id, parameters, http_request_id, created_at)
      select team_id, id, ${templateId('1', '1')}, '{"body:1": "Ana", "body:2": "12345"}', 'req-' || md5(n::text), at
      from ${messages}`,
    `insert into whatsapp_messages (
        team_id, id, request_id, position, recipient, country, status, created_at, accepted_at, provider_message_id)
      select team_id, id, id, 0, '+155555' || lpad((n % 50000)::text, 5, '0'), 'US',
        case when waits then 'queued' when n % 2000 = 0 then 'failed' when n % 3 = 0 then 'read' else 'delivered' end,
        at, case when not waits then at end, case when not waits then 'wamid.' || md5(n::text) end
      from ${messages}`,
    `insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail)
      select team_id, id, decode(md5(kind || n), 'hex'), kind, at, ''
      from ${messages}, (values ('accepted'), ('delivered')) as v (kind) where not waits`,
    `insert into reports (id, provider, event_key, body, received_at, retry_until, state, team_ids)
      select ${timedId('seconds', 'n')}, 'ses', md5(n::text), convert_to(repeat(md5(n::text), 20), 'utf8'),
        to_timestamp(seconds), to_timestamp(seconds + 86400), 'done', array[${teamId('1 + n % 2000')}]
      from (select n, ${newest} - n * 10.0::float8 as seconds from generate_series(1, ${EMAILS / 50}) n) numbered`,
    `insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
      select ${timedId('seconds', 'n')}, case when n % 5 > 0 then ${teamId('1 + n % 7')} end,
        'person' || n % 20 || '@example.com', (array['template.update', 'email.requeue', 'contact.change'])[1 + n % 3],
        gen_random_uuid(), '', to_timestamp(seconds)
      from (select n, ${newest} - n * 30.0::float8 as seconds from generate_series(1, ${EMAILS / 20}) n) numbered`,
  ]
}

/** Deferred until long after the bench, because workers must only send the measured emails. */
const jobs = [
  ...(['email', 'whatsapp'] as const).map((channel) => {
    const [table, key] =
      channel === 'email' ? ['email_states', 'email_id'] : ['whatsapp_messages', 'message_id']
    return `
      insert into pgboss.job (name, id, data, priority, start_after, retry_limit, retry_delay, expire_seconds,
        deletion_seconds, keep_until, policy, heartbeat_seconds)
      select q.name, e.id, jsonb_build_object('team_id', e.team_id, '${key}', e.id),
        -(row_number() over (order by e.id))::int, '2100-01-01', q.retry_limit, q.retry_delay, q.expire_seconds,
        q.deletion_seconds, '2100-02-01', q.policy, q.heartbeat_seconds
      from ${table} e, pgboss.queue q where e.unfinished and q.name = 'deliver-${channel}'`
  }),
  `insert into daily_figures (team_id, channel, day, status, count)
    select team_id, 'email', (created_at at time zone 'utc')::date, status, count(*) from email_states
    group by 1, 3, 4`,
]

type Run = (statements: readonly string[]) => Promise<void>

/** Runs all loads at once, each over a separate connection. */
async function beside(url: string, ...loads: ((run: Run) => Promise<void>)[]): Promise<void> {
  await Promise.all(
    loads.map(async (load) => {
      const client = new Client({ connectionString: url })
      await client.connect()
      try {
        await client.query('set session_replication_role = replica')
        await client.query('set work_mem = "256MB"')
        await load(async (statements) => {
          for (const statement of statements) await client.query(statement)
        })
      } finally {
        await client.end()
      }
    }),
  )
}

/**
 * Fills tables that were truncated in the same transaction, which skips the WAL, and creates their indexes
 * afterwards.
 */
const filled = (tables: readonly string[], statements: readonly string[]) => async (run: Run) => {
  const list = tables.map((table) => `'${table}'::regclass`).join(', ')
  await run([
    'begin',
    `truncate ${tables.join(', ')} cascade`,
    `create temp table later on commit drop as
      select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
      where indrelid in (${list}) and not exists (select from pg_constraint where conindid = indexrelid)`,
    `do $$ declare name text; begin
      for name in select l.name from later l loop execute 'drop index ' || name; end loop; end $$`,
    ...statements,
    `do $$ declare definition text; begin
      for definition in select l.definition from later l loop execute definition; end loop; end $$`,
    'commit',
    ...tables.map((table) => `vacuum (freeze, analyze) ${table}`),
  ])
}

async function load(url: string): Promise<void> {
  const newest = Math.floor(Date.now() / 1_000)
  await migrate(url)
  await beside(url, (run) => run([mails(newest), ...accounts]))
  await beside(
    url,
    filled(['accepted_emails'], accepted),
    async (run) => {
      await filled(['email_states'], states)(run)
      await filled(['email_events'], events)(run)
    },
    async (run) => {
      await filled(['contacts'], contacts)(run)
      const others = ['whatsapp_requests', 'whatsapp_messages', 'whatsapp_events', 'reports', 'audit_entries']
      await filled(others, whatsapp(newest))(run)
    },
  )
  await beside(url, (run) => run([...jobs, 'drop view bench_mails', 'vacuum analyze', 'checkpoint']))
}

const digest = async (): Promise<string> => {
  const loader = await readFile(new URL(import.meta.url))
  return createHash('sha256').update(loader).update(String(EMAILS)).digest('hex').slice(0, 12)
}

/** Deletes the stored database. */
export const dropTenMillion = (store: string): Promise<void> => rm(store, { recursive: true, force: true })

/**
 * Starts the server of the ten million emails, and loads them first if they are missing.
 * @returns the server, and the URL of the database.
 */
export async function startTenMillion(store: string, say: (line: string) => void) {
  const name = `full_${await digest()}`
  const kept = await startPostgres({ directory: store, settings: KEPT })
  if (await isUsable(kept, name)) return { url: databaseUrl(kept.url, name), server: kept }
  await kept.stop()
  say(`loading ${EMAILS.toLocaleString('en')} emails into ${store}, which takes ten minutes and keeps 18 GB`)
  const began = performance.now()
  const loading = await startPostgres({ directory: store, settings: LOADING })
  try {
    // Removes earlier databases, including incomplete ones.
    const stale = (await databases(loading)).filter((each) => /^(full|loading)_/.test(each))
    await query(
      loading,
      ...stale.map((each) => `drop database "${each}"`),
      'create database loading_ten_million',
    )
    await load(databaseUrl(loading.url, 'loading_ten_million'))
    await query(loading, `alter database loading_ten_million rename to "${name}"`)
  } finally {
    await loading.stop()
  }
  say(`loaded in ${Math.round((performance.now() - began) / 1_000)} s`)
  const server = await startPostgres({ directory: store, settings: KEPT })
  return { url: databaseUrl(server.url, name), server }
}

/** Applies new migrations. @returns false if the database is missing or has different migrations. */
async function isUsable(server: Postgres, name: string): Promise<boolean> {
  if (!(await databases(server)).includes(name)) return false
  return migrate(databaseUrl(server.url, name)).then(
    () => true,
    () => false,
  )
}

async function query({ url }: Postgres, ...statements: string[]): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const rows: unknown[] = []
    for (const statement of statements) rows.push(...(await client.query(statement)).rows)
    return rows
  } finally {
    await client.end()
  }
}

const databases = async (server: Postgres): Promise<string[]> =>
  ((await query(server, 'select datname from pg_database')) as { datname: string }[]).map(
    ({ datname }) => datname,
  )
