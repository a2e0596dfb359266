/** Rules of the schema: migrations without gaps, and whose column begins every key. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import { array, boolean, object, string } from 'yup'
import { openDatabase } from '../../db/postgres/pool.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { testDatabase } from '../support/database.ts'
import { ROOT } from '../support/sources.ts'
import t from '../support/tap.ts'

t.test('migrations are numbered without gaps, and line one says why', async (t) => {
  for (const { file } of await migrationFiles())
    t.match(await readFile(join(ROOT, 'db/migrations', file), 'utf8'), /^-- \w/, file)
})

t.test('what emails hold is compressed with LZ4 by a server that has it, else with pglz', async (t) => {
  const database = await openDatabase((await testDatabase(t)).url, { size: 1 })
  t.teardown(() => database.end())
  const row = object({ has_lz4: boolean().defined(), columns: array(string().defined()).defined() })
  const { has_lz4, columns } = await database.one(sql.type(row)`
    select (select 'lz4' = any (enumvals) from pg_settings where name = 'default_toast_compression') as has_lz4,
      array(select attrelid::regclass || '.' || attname from pg_attribute
        where attcompression = 'l' order by 1) as columns`)
  const content = ['body_text', 'headers', 'html', 'variables'].map((column) => `accepted_emails.${column}`)
  t.strictSame(columns, has_lz4 ? content : [])
})

// Read before the team is known, or belonging to none.
const DIRECTORIES = [
  ...'plans users api_keys sessions schema_migrations secret_canary senders recipient_pauses'.split(' '),
  ...'pause_history sender_events paused_queues database_home process_marks reports'.split(' '),
  ...'login_links login_requests openid_identities dashboard_sessions dashboard_seats'.split(' '),
  ...'audit_entries processes counters upkeep background_jobs'.split(' '),
]

const keyRow = object({
  table: string().defined(),
  name: string().defined(),
  columns: array(string().defined()).defined(),
})

t.test('team_id comes first in every key of every table that a team owns', async (t) => {
  const database = await openDatabase((await testDatabase(t)).url, { size: 1 })
  t.teardown(() => database.end())
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
  // teams is the team: its id is the team_id. A subscription's plan is in a directory.
  const fits = ({ table, columns }: { table: string; columns: string[] }) =>
    columns[0] === (table === 'teams' ? 'id' : 'team_id')
  const exempt = [
    'subscriptions_plan_key_fkey',
    'memberships_user_id_fkey',
    // An operator looks for a key in all teams at once.
    'accepted_emails_idempotency_key',
    'whatsapp_requests_idempotency_key',
  ]
  t.strictSame(
    owned.filter((key) => !fits(key) && !exempt.includes(key.name)),
    [],
  )
})
