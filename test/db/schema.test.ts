/** Rules of the schema: migrations without gaps, and the first column of every key. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type FragmentSqlToken, sql } from 'slonik'
import { array, boolean, string } from 'yup'
import { WORDING } from '../../api/dashboard/components/timeline.ts'
import { row } from '../../db/postgres/rows.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { testDatabase } from '../support/database.ts'
import { openPool } from '../support/pool.ts'
import { ROOT } from '../support/sources.ts'
import t from '../support/tap.ts'

const { url } = await testDatabase(t)
const database = await openPool(t, url, { size: 1 })

t.test('migrations have consecutive numbers and a reason in line one', async (t) => {
  for (const { file } of await migrationFiles())
    t.match(await readFile(join(ROOT, 'db/migrations', file), 'utf8'), /^-- \w/, file)
})

/** The migrations of all releases, from .ci/release. They never change, so each change needs a new file. */
const RELEASED = join(import.meta.dirname, 'released.sha256')

t.test('a released migration never changes', async (t) => {
  const released = (await readFile(RELEASED, 'utf8')).trim().split('\n')
  const found = (await migrationFiles()).map(({ file, digest }) => `${digest}  ./${file}`)
  t.strictSame(found.slice(0, released.length), released)
})

t.test('compresses email content with LZ4 if available, otherwise pglz', async (t) => {
  const { has_lz4, columns } = await database.one(sql.type(
    row({ has_lz4: boolean(), columns: array(string()) }),
  )`
    select (select 'lz4' = any (enumvals) from pg_settings where name = 'default_toast_compression') as has_lz4,
      array(select attrelid::regclass || '.' || attname from pg_attribute
        where attcompression = 'l' order by 1) as columns`)
  const content = ['body_text', 'headers', 'html', 'variables'].map((column) => `accepted_emails.${column}`)
  t.strictSame(columns, has_lz4 ? content : [])
})

// Read before the team is known, or not owned by a team.
const DIRECTORIES = [
  // Domain names, which several teams can have.
  'domain_ramps',
  'domain_ramp_reports',
  ...'plans users api_keys sessions schema_migrations secret_canary senders sender_reports recipient_pauses'.split(
    ' ',
  ),
  ...'pause_history sender_events paused_queues database_home process_marks reports relay_tokens'.split(' '),
  ...'login_links login_requests openid_identities dashboard_sessions dashboard_seats'.split(' '),
  ...'whatsapp_numbers whatsapp_account_events'.split(' '),
  ...'audit_entries processes counters upkeep background_jobs'.split(' '),
]

const keyRow = row({ table: string(), name: string(), columns: array(string()) })

t.test("team_id comes first in every key of teams' tables", async (t) => {
  const keys = await database.any(sql.type(keyRow)`
    select c.conrelid::regclass::text as table, c.conname as name,
      array(select attname::text from unnest(c.conkey) with ordinality k (attnum, position)
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum order by position) as columns
    from pg_constraint c join pg_namespace n on n.oid = c.connamespace
    where n.nspname = 'public' and c.contype in ('p', 'u', 'f')
    union all
    select i.indrelid::regclass::text, i.indexrelid::regclass::text,
      array(select attname::text from unnest(i.indkey::int2[]) with ordinality k (attnum, position)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum order by position)
    from pg_index i join pg_class t on t.oid = i.indrelid join pg_namespace n on n.oid = t.relnamespace
    where n.nspname = 'public' and i.indisunique`)
  const owned = keys.filter(({ table }) => !DIRECTORIES.includes(table))
  t.ok(owned.length > 10)
  // In teams, the ID is the team_id. The plan of a subscription belongs to no team.
  const fits = ({ table, columns }: { table: string; columns: string[] }) =>
    columns[0] === (table === 'teams' ? 'id' : 'team_id')
  const exempt = [
    'subscriptions_plan_key_fkey',
    'teams_whatsapp_number_fkey',
    'memberships_user_id_fkey',
    // An operator searches all teams for a key.
    'accepted_emails_idempotency_key',
    'whatsapp_requests_idempotency_key',
  ]
  const unfit = owned.filter((key) => !fits(key) && !exempt.includes(key.name))
  t.strictSame(unfit, [])
})

t.test('each kind of an email’s event can be stored', async (t) => {
  const { definition } = await database.one(sql.type(row({ definition: string() }))`
    select pg_get_constraintdef(oid) as definition from pg_constraint where conname = 'email_events_kind_check'`)
  const kinds = [...definition.matchAll(/'(\w+)'/g)].map(([, kind]) => kind)
  const unknown = Object.keys(WORDING).filter((kind) => !kinds.includes(kind))
  t.strictSame(unknown, [])
})

t.test('rejects rows that contradict themselves', async (t) => {
  const id = '0190a1b2-0000-7000-8000-000000000001'
  await database.query(sql.unsafe`insert into teams (id, name, created_at) values (${id}, 'Acme', now())`)
  await database.query(sql.unsafe`
    insert into users (id, email, identity, created_at) values (${id}, 'a@b.test', 'a@b.test', now())`)
  const refused: [string, FragmentSqlToken][] = [
    [
      'a role that is none',
      sql.fragment`
      login_links (hash, user_id, role, created_at, expires_at) values ('', ${id}, 'admin', now(), now())`,
    ],
    [
      'a verified domain, nobody knows since when',
      sql.fragment`
      domains (team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at)
      values (${id}, ${id}, 'b.test', 'verified', '', '', '', now())`,
    ],
    [
      'a complaint that soft bounces made',
      sql.fragment`
      contacts (team_id, id, email, identity, status, suppression, suppressed_softly, properties, topic_ids,
        created_at, updated_at)
      values (${id}, ${id}, '', '', 'complained', 'complained', true, '{}', '{}', now(), now())`,
    ],
    [
      'an endpoint that is disabled since never',
      sql.fragment`
      webhook_endpoints (team_id, id, url, name, types, state, secret, created_at)
      values (${id}, ${id}, '', '', '{}', 'disabled', '', now())`,
    ],
    ['a queue that nobody has paused', sql.fragment`paused_queues (queue, paused_at) values ('q', now())`],
    [
      'a job that is over and still says what it was asked',
      sql.fragment`
      background_jobs (id, kind, given, begun_by, begun_at, progressed_at, finished_at)
      values (${id}, '', '{}', '', now(), now(), now())`,
    ],
  ]
  for (const [what, row] of refused)
    await t.rejects(database.query(sql.unsafe`insert into ${row}`), /check/i, what)
})
